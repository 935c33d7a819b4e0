package extent

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Buffers lends buffers for chunks, a bounded sum of bytes at once. Buffers above half of size are
// kept and lent again, so that a stream of chunks leaves no garbage; smaller ones are left to the
// collector. Buffers of a page or more begin on a page, so that a store can write them without
// copying. Methods may be called concurrently.
//
// What is kept lies outside the heap: of each byte in use there the collector lets four
// more come to be before it runs. It is given back when the Buffers are collected, so
// every buffer must come back by Put, or not outlive them.
type Buffers struct {
	size int
	max  int64
	sem  *semaphore.Weighted

	mu   sync.Mutex
	free [][]byte // each of size bytes; at most max/size
	kept *mappings
}

// mappings is memory outside the heap. It must not lead to the Buffers it is of, which
// would then never be collected.
type mappings struct{ list [][]byte }

func (m *mappings) release() {
	for _, b := range m.list {
		unmapBytes(b)
	}
}

// NewBuffers returns a lender of buffers of up to size bytes, count*size at once.
func NewBuffers(size, count int) *Buffers {
	bytesMax := int64(size) * int64(count)
	b := &Buffers{size: size, max: bytesMax, sem: semaphore.NewWeighted(bytesMax), kept: &mappings{}}
	runtime.AddCleanup(b, (*mappings).release, b.kept)
	return b
}

// Get waits until n bytes may be lent. The buffer's contents are arbitrary. A longer
// one than size counts for all at most. The error is ctx's.
func (b *Buffers) Get(ctx context.Context, n int) ([]byte, error) {
	if err := b.sem.Acquire(ctx, min(int64(n), b.max)); err != nil {
		return nil, err
	}
	if n <= b.size/2 || n > b.size {
		return alignedBytes(n), nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if last := len(b.free) - 1; last >= 0 {
		buf := b.free[last]
		b.free = b.free[:last]
		return buf[:n], nil
	}
	buf, ok := mapBytes(b.size)
	if !ok {
		return alignedBytes(b.size)[:n], nil
	}
	b.kept.list = append(b.kept.list, buf)
	return buf[:n], nil
}

// Put takes a buffer back that Get lent, with its length unchanged. Its user must not
// touch it any more.
func (b *Buffers) Put(buf []byte) {
	if cap(buf) == b.size {
		b.mu.Lock()
		b.free = append(b.free, buf)
		b.mu.Unlock()
	}
	b.sem.Release(min(int64(len(buf)), b.max))
}
