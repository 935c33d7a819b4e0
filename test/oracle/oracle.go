package oracle

import (
	"errors"
	"fmt"
	"sync"

	"antipode/geo"
)

// The ways in which a read breaks a promise.
var (
	// ErrLost means that an acknowledged write is gone.
	ErrLost = errors.New("acknowledged write lost")
	// ErrInvented means that a read shows what no write can have left.
	ErrInvented = errors.New("read shows a value that was never written, or was refused")
	// ErrBehind means that a read at the secondary is older than its Last Sync Time,
	// or a listing at the primary older than an acknowledgement.
	ErrBehind = errors.New("read is older than what was promised to show")
	// ErrTag means that a value came back under another ETag than it was
	// acknowledged with.
	ErrTag = errors.New("same value, other ETag")
)

// Version numbers the writes of one key from 1. It is written into the value.
type Version uint32

// State is what a reader of a key finds.
type State struct {
	// Present is false for a key that is not there.
	Present bool
	// Last is the write that shaped the value last, and Base the insert or put
	// under it, which merges leave standing. They differ after a merge or a resumed
	// upload only.
	Last, Base Version
}

func (s State) String() string {
	if !s.Present {
		return "absent"
	}
	return fmt.Sprintf("version %d on base %d", s.Last, s.Base)
}

// Read is what was found under a key.
type Read struct {
	State
	// ETag is the tag that came with it, "" where none did, and At the commit
	// time it spells, zero where it spells none.
	ETag string
	At   geo.Timestamp
}

// fate is what is known of a write.
type fate uint8

const (
	pending fate = iota // no answer yet
	lost                // no answer will come
	applied             // acknowledged, or found in place after a restart
	refused             // answered with an error, or found not in place
)

// write is one write of a key.
type write struct {
	state State
	fate  fate
	etag  string
	// at is the commit time, or an instant at or after it where only that is
	// known; meaningful when the fate is applied.
	at geo.Timestamp
}

// history is the writes of one key; writes[v-1] is version v.
type history struct {
	writes []write
	// resolved is the last applied version, 0 for a key never written.
	resolved Version
}

// Oracle checks reads. Its methods may be called concurrently; the writes of one
// key must come from one caller.
type Oracle struct {
	mu sync.Mutex
	// keys and order hold every key ever begun, order in order of first use.
	keys  map[string]*history
	order []string
	// acked counts the applied writes, and newest is the greatest of their at.
	acked  int
	newest geo.Timestamp
}

// New returns an oracle that expects an empty store.
func New() *Oracle { return &Oracle{keys: map[string]*history{}} }

// Current returns the resolved state of a key and the tag it was acknowledged
// with. ok is false while a write of it is unanswered: leave the key alone.
func (o *Oracle) Current(key string) (s State, etag string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.keys[key]
	if h == nil {
		return State{}, "", true
	}
	if n := len(h.writes); n > 0 && (h.writes[n-1].fate == pending || h.writes[n-1].fate == lost) {
		return State{}, "", false
	}
	w := h.at(h.resolved)
	return w.state, w.etag, true
}

// at returns version v, or the empty key for 0.
func (h *history) at(v Version) write {
	if v == 0 {
		return write{fate: applied}
	}
	return h.writes[v-1]
}

// Insert begins a write that replaces the whole value, or creates it.
func (o *Oracle) Insert(key string) Version {
	return o.begin(key, func(v Version, _ State) State { return State{Present: true, Last: v, Base: v} })
}

// Merge begins a write that leaves the base of the value standing.
func (o *Oracle) Merge(key string) Version {
	return o.begin(key, func(v Version, s State) State { return State{Present: true, Last: v, Base: s.Base} })
}

// Resume begins a write that takes up the parts of version base, which was refused
// because it was left before it was whole.
func (o *Oracle) Resume(key string, base Version) Version {
	return o.begin(key, func(v Version, _ State) State { return State{Present: true, Last: v, Base: base} })
}

// Delete begins a delete.
func (o *Oracle) Delete(key string) Version {
	return o.begin(key, func(Version, State) State { return State{} })
}

func (o *Oracle) begin(key string, next func(Version, State) State) Version {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.keys[key]
	if h == nil {
		h = &history{}
		o.keys[key] = h
		o.order = append(o.order, key)
	}
	v := Version(len(h.writes) + 1)
	h.writes = append(h.writes, write{state: next(v, h.at(h.resolved).state)})
	return v
}

// Acked records that version v was acknowledged with a tag, committed at or
// before at.
func (o *Oracle) Acked(key string, v Version, etag string, at geo.Timestamp) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.apply(o.keys[key], v, etag, at)
}

// apply marks version v of h as applied. The caller holds mu.
func (o *Oracle) apply(h *history, v Version, etag string, at geo.Timestamp) {
	w := &h.writes[v-1]
	w.fate, w.etag, w.at = applied, etag, at
	h.resolved = v
	o.acked++
	o.newest = max(o.newest, at)
}

// Refused records that version v certainly did not happen.
func (o *Oracle) Refused(key string, v Version) { o.end(key, v, refused) }

// Lost records that no answer came for version v: it may have happened.
func (o *Oracle) Lost(key string, v Version) { o.end(key, v, lost) }

func (o *Oracle) end(key string, v Version, f fate) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keys[key].writes[v-1].fate = f
}

// Resolved returns the last version of a key known to be applied, 0 for none.
func (o *Oracle) Resolved(key string) Version {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.keys[key]; h != nil {
		return h.resolved
	}
	return 0
}

// Acks returns the number of writes known to have been applied, and the greatest
// commit time among them.
func (o *Oracle) Acks() (n int, newest geo.Timestamp) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.acked, o.newest
}

// Keys returns every key ever written, in order of first use.
func (o *Oracle) Keys() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.order[:len(o.order):len(o.order)]
}

// Begun returns the number of writes of a key that were begun.
func (o *Oracle) Begun(key string) Version {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.keys[key]; h != nil {
		return Version(len(h.writes))
	}
	return 0
}
