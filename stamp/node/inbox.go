package node

import "sync"

// inboxMax and inboxBytesMax bound the messages that wait for the scheduler. Raft sends
// again what is dropped beyond them.
const (
	inboxMax      = 8192
	inboxBytesMax = 64 << 20
)

// inbox is what other goroutines leave for the scheduler.
type inbox struct {
	wake chan struct{}

	mu       sync.Mutex
	messages []Envelope
	// bytes is the sum of Envelope.Bytes over messages.
	bytes int64
	// work is run on the scheduler, before the messages.
	work []func() error
	// failed is why the node is out of service.
	failed error
}

// awake makes the scheduler do a pass soon.
func (b *inbox) awake() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// later has f run on the scheduler, in its next pass.
func (b *inbox) later(f func() error) {
	b.mu.Lock()
	b.work = append(b.work, f)
	b.mu.Unlock()
	b.awake()
}

func (b *inbox) put(batch []Envelope) {
	b.mu.Lock()
	for _, e := range batch {
		size := e.Bytes()
		// A message above the bound is taken if it is alone.
		if len(b.messages) >= inboxMax || b.bytes > 0 && b.bytes+size > inboxBytesMax {
			break
		}
		b.messages = append(b.messages, e)
		b.bytes += size
	}
	b.mu.Unlock()
	b.awake()
}

// take empties the inbox, for a pass.
func (b *inbox) take() (messages []Envelope, work []func() error, failed error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	messages, work = b.messages, b.work
	b.messages, b.bytes, b.work = nil, 0, nil
	return messages, work, b.failed
}

func (b *inbox) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil {
		b.failed = err
	}
}

func (b *inbox) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}
