package linear

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/test/rest"
)

// ErrNotLinearizable means that no order of the operations explains what clients saw.
var ErrNotLinearizable = errors.New("history is not linearizable")

const (
	// keys are used of each service at a time, and others after so many operations: the
	// search for an order grows with the unanswered operations of one key.
	keys       = 3
	keysRenews = 150
	// checkWait bounds that search, and with it the memory that it takes: up to a gigabyte in
	// some seconds.
	checkWait = 20 * time.Second
	// clientsMax is above every client's number.
	clientsMax = 1000
	// refusedPause is how long a client waits when nothing happened.
	refusedPause = 10 * time.Millisecond
)

// Table and Container are what Clients use: they must be there.
const (
	Table     = "linear"
	Container = "linear"
)

// History collects operations. Methods may be called concurrently.
type History struct {
	clock clock.Clock
	start time.Time
	model porcupine.Model

	mu  sync.Mutex
	ops []porcupine.Operation
	// unknown and refused count operations without an answer, and those that did not
	// happen.
	unknown, refused int
	// starts has the call of each transaction, by the value that it writes.
	starts map[string]int64
}

// New returns an empty history of single objects, for Client.
func New(c clock.Clock) *History { return &History{clock: c, start: c.Now(), model: register()} }

// NewOfTransactions returns an empty history of partitions, for Transactor and Follower.
func NewOfTransactions(c clock.Clock) *History {
	return &History{clock: c, start: c.Now(), model: partition(), starts: map[string]int64{}}
}

// NewOfLeases returns an empty history of blobs that are leased, for Holder.
func NewOfLeases(c clock.Clock) *History {
	return &History{clock: c, start: c.Now(), model: leaseModel()}
}

// Setup makes the table and the container.
func Setup(ctx context.Context, c *rest.Client) error {
	return errors.Join(c.CreateTable(ctx, Table), c.CreateContainer(ctx, Container))
}

// Counts returns how many operations are in the history, how many of them had no answer,
// and how many others did not happen.
func (h *History) Counts() (ops, unknown, refused int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ops), h.unknown, h.refused
}

// Client does operations one after the other, each at one of the endpoints, while more says
// so. Clients differ in id. An answer that no state explains ends it with an error.
func (h *History) Client(ctx context.Context, id int, rng *rand.Rand, endpoints []*rest.Client, more func(done int) bool) error {
	seen := map[string]Result{} // by key, what was read last
	for i := 0; more(i); i++ {
		s := []geo.Service{geo.Table, geo.Blob}[rng.IntN(2)]
		ops, _, _ := h.Counts()
		op := Op{
			Verb: Verb(rng.IntN(int(verbs))), Service: s,
			Key: fmt.Sprintf("%v-%d-%d", s, ops/keysRenews, rng.IntN(keys)), Value: fmt.Sprintf("c%d-%d", id, i),
		}
		if last := seen[op.Key]; op.Verb == Swap {
			if last.Value == "" {
				op.Verb = Read
			}
			op.Expect, op.Tag = last.Value, last.Tag
		}
		got, happened, err := h.do(ctx, id, endpoints[rng.IntN(len(endpoints))], op)
		if err != nil {
			return err
		}
		if !happened {
			refused(ctx)
		} else if op.Verb == Read && !got.Unknown {
			seen[op.Key] = got
		}
	}
	return nil
}

// refused waits after an operation that did not happen.
func refused(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(refusedPause):
	}
}

// do sends one operation and records it.
func (h *History) do(ctx context.Context, client int, c *rest.Client, op Op) (out Result, happened bool, err error) {
	call := h.now()
	out, happened, err = send(ctx, c, op)
	err = h.record(porcupine.Operation{ClientId: client, Input: op, Call: call, Output: out}, happened, out.Unknown, err)
	return out, happened, err
}

// now is the time since the history began.
func (h *History) now() int64 { return h.clock.Now().Sub(h.start).Nanoseconds() }

// record takes an operation that has just returned, unless it failed or did not happen. One without an answer
// never returned, so the client goes on under another number.
func (h *History) record(o porcupine.Operation, happened, unknown bool, err error) error {
	o.Return = h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil:
		return err
	case !happened:
		h.refused++
		return nil
	case unknown:
		h.unknown++
		o.Return, o.ClientId = math.MaxInt64, clientsMax+h.unknown
	}
	h.ops = append(h.ops, o)
	return nil
}

// Check looks for an order of the operations; with none, or none found in time, it draws
// the history into the file and returns ErrNotLinearizable.
func (h *History) Check(drawing string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	result, info := porcupine.CheckOperationsVerbose(h.model, h.ops, checkWait)
	if result == porcupine.Ok {
		return nil
	}
	err := porcupine.VisualizePath(h.model, info, drawing)
	return errors.Join(fmt.Errorf("%w: %s; drawn in %s", ErrNotLinearizable, result, drawing), err)
}
