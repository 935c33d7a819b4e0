package ranges

import "sync"

// tapBytesMax bounds what waits in memory for the shipper. What does not fit is
// read from the outbox: a slow region costs disk, never memory.
const tapBytesMax = 8 << 20

// tap hands what a leader applied to its shipper, in commit order.
type tap struct {
	mu       sync.Mutex
	applied  []Applied
	bytes    int
	overflow bool
	wake     func()
}

func (t *tap) push(a Applied) {
	t.mu.Lock()
	for _, r := range a.Records {
		t.bytes += len(r.Bytes)
	}
	if t.bytes > tapBytesMax {
		t.applied, t.overflow = nil, true
	} else {
		t.applied = append(t.applied, a)
	}
	wake := t.wake
	t.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// reset makes the next take start from the outbox, and tells the shipper that the
// range began or ceased to lead.
func (t *tap) reset() {
	t.mu.Lock()
	t.applied, t.bytes, t.overflow = nil, 0, true
	wake := t.wake
	t.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// OnApplied sets what is called, from the scheduler, when there is something to
// ship.
func (r *Range) OnApplied(wake func()) {
	r.ship.mu.Lock()
	defer r.ship.mu.Unlock()
	r.ship.wake = wake
}

// TakeApplied returns what was applied since the last call, in commit order. lost
// says that something is missing before it: read the outbox.
func (r *Range) TakeApplied() (applied []Applied, lost bool) {
	r.ship.mu.Lock()
	defer r.ship.mu.Unlock()
	applied, lost = r.ship.applied, r.ship.overflow
	r.ship.applied, r.ship.bytes, r.ship.overflow = nil, 0, false
	return applied, lost
}
