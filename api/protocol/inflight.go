package protocol

import (
	"context"

	"golang.org/x/sync/semaphore"

	"antipode/services/storageerr"
)

// InFlight bounds the bytes of request bodies, or of answers, that a service holds at
// once: a body is not read before it is admitted. Methods may be called concurrently.
type InFlight struct {
	max int64
	sem *semaphore.Weighted
}

// NewInFlight returns a bound of bytesMax bytes.
func NewInFlight(bytesMax int64) *InFlight {
	return &InFlight{bytesMax, semaphore.NewWeighted(bytesMax)}
}

// Admit waits until n more bytes may be held, first come first served, and returns
// what to Release: n, or the whole bound for what is larger than it. ServerBusy where
// ctx ends before: nothing happened.
func (f *InFlight) Admit(ctx context.Context, n int64) (held int64, err error) {
	held = min(n, f.max)
	if f.sem.Acquire(ctx, held) != nil {
		return 0, storageerr.ServerBusy
	}
	return held, nil
}

// TryAdmit is Admit that does not wait; ok is false where it would.
func (f *InFlight) TryAdmit(n int64) (held int64, ok bool) {
	held = min(n, f.max)
	return held, f.sem.TryAcquire(held)
}

// Release gives back what Admit returned.
func (f *InFlight) Release(held int64) { f.sem.Release(held) }
