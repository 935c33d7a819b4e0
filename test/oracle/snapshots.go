package oracle

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"antipode/geo"
)

// The ways in which a snapshot or a copy breaks a promise, beside being lost.
var (
	// ErrChanged means that a snapshot or copy shows what its key was not while it was made, or another value than before.
	ErrChanged = errors.New("snapshot or copy shows another value")
	// ErrBack means that a snapshot or copy is there after it was deleted.
	ErrBack = errors.New("deleted snapshot or copy is there")
)

// Now is a sync time that has passed everything: that of the primary.
const Now = geo.Timestamp(math.MaxInt64)

// goneMax is how many deleted snapshots of a key are remembered.
const goneMax = 32

// snapshot is one snapshot of a key.
type snapshot struct {
	id string
	// number orders the snapshots and the removals of a key by their answers.
	number int
	// at is the commit time, and goneAt an instant at or after that of the deletion, zero without one.
	at, goneAt geo.Timestamp
	// floor and ceiling bound the versions that the key had while it was taken.
	floor, ceiling Version
	// unsure is set while it may be there or not: its deletion was sent, or that of the key was when it was taken.
	unsure bool
	// shown is what its first read showed, nil before.
	shown *Read
}

// taken is the snapshots of one key.
type taken struct {
	all    []*snapshot
	number int
	// removing is the number of the deletion of the key with its snapshots that has no outcome yet, zero if there is none.
	// removals counts them.
	removing, removals int
	// unanswered are the floors of snapshots without an answer that may be there.
	unanswered []Version
}

// Snapshots checks the reads of snapshots of an oracle's keys. A key has one client that takes and deletes its
// snapshots, and lists them, beside the one that writes it. Methods may be called concurrently.
type Snapshots struct {
	oracle *Oracle
	mu     sync.Mutex
	keys   map[string]*taken
}

// NewSnapshots returns a check of snapshots of the keys of o.
func NewSnapshots(o *Oracle) *Snapshots { return &Snapshots{oracle: o, keys: map[string]*taken{}} }

// of returns the snapshots of a key. The caller holds mu.
func (s *Snapshots) of(key string) *taken {
	k := s.keys[key]
	if k == nil {
		k = &taken{}
		s.keys[key] = k
	}
	return k
}

// find returns a snapshot, nil if it is not known.
func (k *taken) find(id string) *snapshot {
	for _, p := range k.all {
		if p.id == id {
			return p
		}
	}
	return nil
}

// Taking is a snapshot that is being taken.
type Taking struct {
	s        *Snapshots
	key      string
	floor    Version
	removals int
	removing bool
}

// Take begins a snapshot of a key.
func (s *Snapshots) Take(key string) *Taking {
	floor := s.oracle.Resolved(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(key)
	return &Taking{s: s, key: key, floor: floor, removals: k.removals, removing: k.removing > 0}
}

// Acked records that the snapshot was acknowledged, with a commit time.
func (t *Taking) Acked(id string, at geo.Timestamp) error {
	ceiling := t.s.oracle.Begun(t.key)
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	k := t.s.of(t.key)
	if k.find(id) != nil {
		return fmt.Errorf("%w: %s: %s was answered before", ErrChanged, t.key, id)
	}
	k.number++
	k.all = append(k.all, &snapshot{
		id: id, number: k.number, at: at, floor: t.floor, ceiling: ceiling, unsure: t.removing || k.removals > t.removals,
	})
	return nil
}

// Lost records that no answer came: there may be a snapshot.
func (t *Taking) Lost() {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	k := t.s.of(t.key)
	k.unanswered = append(k.unanswered, t.floor)
}

// NotThere records the answer that there is no such key, which it cannot be if it was there all the time.
func (t *Taking) NotThere() error {
	if _, must := t.s.oracle.Presence(t.key, t.floor); must {
		return fmt.Errorf("%w: %s is not there for a snapshot", ErrLost, t.key)
	}
	return nil
}

// Deletion is the deletion of a snapshot that has no outcome yet: until then the snapshot may be there or not.
type Deletion struct {
	s        *Snapshots
	key      string
	of       *snapshot
	sure     bool
	removals int
}

// Delete begins the deletion of a snapshot.
func (s *Snapshots) Delete(key, id string) *Deletion {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(key)
	p := k.find(id)
	d := &Deletion{s: s, key: key, of: p, sure: !p.unsure && p.goneAt == 0 && k.removing == 0, removals: k.removals}
	p.unsure = true
	return d
}

// Kept records that the deletion did not happen.
func (d *Deletion) Kept() {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	d.of.unsure = !d.sure
}

// Acked records that the snapshot is gone, since at or before.
func (d *Deletion) Acked(at geo.Timestamp) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	d.gone(at)
}

// NotThere records the answer that there is no such snapshot, which it cannot be if nothing else deleted it.
func (d *Deletion) NotThere(at geo.Timestamp) error {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if d.sure && d.s.of(d.key).removals == d.removals {
		return fmt.Errorf("%w: snapshot of %s at %s, which is to be deleted", ErrLost, d.key, d.of.id)
	}
	d.gone(at)
	return nil
}

// gone records that the snapshot is gone. The caller holds mu.
func (d *Deletion) gone(at geo.Timestamp) {
	if d.of.goneAt == 0 {
		d.of.goneAt = at
	}
	d.s.of(d.key).forget()
}

// Remove records that the deletion of a key with all its snapshots is sent. Until Removed or NotRemoved, or Resolved, they may
// be there or not.
func (s *Snapshots) Remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(key)
	k.number++
	k.removals++
	k.removing = k.number
}

// Removed records that what was there before Remove is gone, since at or before.
func (s *Snapshots) Removed(key string, at geo.Timestamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(key)
	for _, p := range k.all {
		if p.number < k.removing && p.goneAt == 0 {
			p.goneAt = at
		}
	}
	k.removing = 0
	k.forget()
}

// NotRemoved records that nothing was deleted.
func (s *Snapshots) NotRemoved(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(key).removing = 0
}

// forget drops the oldest of those that are gone. The caller holds mu.
func (k *taken) forget() {
	gone := 0
	for _, p := range k.all {
		if p.goneAt != 0 {
			gone++
		}
	}
	kept := k.all[:0]
	for _, p := range k.all {
		if p.goneAt != 0 && gone > goneMax {
			gone--
			continue
		}
		kept = append(kept, p)
	}
	clear(k.all[len(kept):])
	k.all = kept
}

// Known returns the ids of a key's snapshots, those that are gone too, and how many are not gone.
func (s *Snapshots) Known(key string) (ids []string, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.of(key).all {
		ids = append(ids, p.id)
		if p.goneAt == 0 {
			left++
		}
	}
	return ids, left
}

// Newest is the greatest time of a snapshot or of its deletion.
func (s *Snapshots) Newest() (at geo.Timestamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.keys {
		for _, p := range k.all {
			at = max(at, p.at, p.goneAt)
		}
	}
	return at
}

// Keys returns the keys of which snapshots were taken.
func (s *Snapshots) Keys() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.keys {
		all = append(all, key)
	}
	return all
}

// Standing says of a snapshot whether it may be there, and whether it must be, where everything up to the sync time has
// arrived. Whether it may is asked before a read, whether it must after it.
func (s *Snapshots) Standing(key, id string, sync geo.Timestamp) (may, must bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(key)
	p := k.find(id)
	if p == nil {
		return true, false // It was forgotten meanwhile.
	}
	may = p.goneAt == 0 || p.goneAt > sync
	must = p.goneAt == 0 && !p.unsure && k.removing == 0 && p.at <= sync
	return may, must
}

// Read checks a read of a snapshot that may and must be there.
func (s *Snapshots) Read(key, id string, r Read, may, must bool) error {
	switch {
	case r.Present && !may:
		return fmt.Errorf("%w: %s at %s: %v", ErrBack, key, id, r.State)
	case !r.Present && must:
		return fmt.Errorf("%w: snapshot of %s at %s", ErrLost, key, id)
	case !r.Present:
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.of(key).find(id)
	switch {
	case p == nil:
		return nil
	case p.shown == nil:
		p.shown = &r
	case *p.shown != r:
		return fmt.Errorf("%w: %s at %s: %v %s, before %v %s", ErrChanged, key, id, r.State, r.ETag, p.shown.State, p.shown.ETag)
	}
	if err := s.oracle.AtLeast(key, p.floor, r); err != nil {
		return fmt.Errorf("%w: %s at %s: %w", ErrChanged, key, id, err)
	}
	if r.Last > p.ceiling {
		return fmt.Errorf("%w: %s at %s: %v, when %d writes were sent", ErrChanged, key, id, r.State, p.ceiling)
	}
	return nil
}

// Adopt takes a snapshot that the primary listed and that no answer has named: it must be one of those without an answer.
func (s *Snapshots) Adopt(key, id string, at geo.Timestamp) error {
	ceiling := s.oracle.Begun(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(key)
	if len(k.unanswered) == 0 {
		return fmt.Errorf("%w: snapshot of %s at %s", ErrInvented, key, id)
	}
	k.number++
	// Which one it is nobody knows: the first allows the most.
	k.all = append(k.all, &snapshot{id: id, number: k.number, at: at, floor: k.unanswered[0], ceiling: ceiling, unsure: true})
	k.unanswered = k.unanswered[1:]
	return nil
}

// Resolved records what is there of a key, while nobody does anything to it: it is known for good then.
func (s *Snapshots) Resolved(key string, there map[string]bool, now geo.Timestamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(key)
	k.removing, k.unanswered = 0, nil
	for _, p := range k.all {
		switch {
		case p.goneAt != 0:
		case there[p.id]:
			p.unsure = false
		default:
			p.goneAt = now
		}
	}
	k.forget()
}
