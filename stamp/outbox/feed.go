package outbox

import (
	"sync"

	"antipode/geo"
)

// FeedBytesMax bounds the records that wait in a Feed. The rest is read from the outbox: a
// slow region costs disk, never memory.
const FeedBytesMax = 8 << 20

// Added is what one group added to the outbox.
type Added struct {
	// Records are in commit order.
	Records []Record
	// Closed is the closed time that the group committed, zero for none.
	Closed geo.Timestamp
	// Wall is what the leader's wall clock showed as it evaluated the group, zero for one of an earlier leader and
	// below feature.Walls. Nothing that
	// was acknowledged before has a later commit time than the first one of the group: see cursor.Known.WallOf.
	Wall geo.Timestamp
}

// Feed passes what a leader applied to its shipper, in commit order. The zero value is
// ready. Methods may be called concurrently.
type Feed struct {
	mu    sync.Mutex
	added []Added
	bytes int
	// lost reports that something is missing before added.
	lost bool
	wake func()
}

// OnPush sets what is called when there is something to take; from the goroutine that
// pushes or resets.
func (f *Feed) OnPush(wake func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake = wake
}

// Push appends a group. Beyond FeedBytesMax it drops all that waits, and the next Take
// reports the loss.
func (f *Feed) Push(a Added) {
	f.mu.Lock()
	for _, r := range a.Records {
		f.bytes += len(r.Bytes)
	}
	if f.bytes > FeedBytesMax {
		f.added, f.lost = nil, true
	} else {
		f.added = append(f.added, a)
	}
	wake := f.wake
	f.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// Reset drops all that waits, since the range began or ceased to lead: the next Take
// reports a loss.
func (f *Feed) Reset() {
	f.mu.Lock()
	f.added, f.bytes, f.lost = nil, 0, true
	wake := f.wake
	f.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// Take returns what was pushed since the last call, in commit order. After lost something
// is missing before it: read the outbox.
func (f *Feed) Take() (added []Added, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	added, lost = f.added, f.lost
	f.added, f.bytes, f.lost = nil, 0, false
	return added, lost
}
