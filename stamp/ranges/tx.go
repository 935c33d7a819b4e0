package ranges

import (
	"fmt"
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/outbox"
)

// Tx is what one command sees and stages: the applied state under the changes of
// all groups in flight and of the commands before it in this group.
type Tx struct {
	r   *Range
	g   *group
	now time.Time
	b   change.Builder
	// passBegan is the monotonic time of the pass, w the waiter of the current command.
	passBegan time.Duration
	w         *waiter

	// saved undoes what the group staged, newest last. mark, savedMark and keysMark are where
	// the current command began.
	saved     []undo
	mark      change.Mark
	savedMark int
	keysMark  int
	// shipped reports that the group holds a numbered change, whose frame will carry a
	// closed record.
	shipped bool
	// trimmed is how many rows of the outbox the group deletes.
	trimmed int
}

// undo takes back what was staged: by f, or, which is most of it, by what the overlay had of a key. That makes no
// closure for each row.
type undo struct {
	f   func()
	key string
	was overlayValue
	had bool
}

func (tx *Tx) begin(w *waiter) {
	tx.w, w.fenced = w, fenced{}
	tx.mark, tx.keysMark, tx.savedMark = tx.b.Mark(), len(tx.g.keys), len(tx.saved)
}

// unchanged reports whether the current command staged nothing.
func (tx *Tx) unchanged() bool { return tx.b.Mark() == tx.mark }

// undo takes back what the current command staged.
func (tx *Tx) undo() {
	tx.b.Rollback(tx.mark)
	tx.undoTo(tx.savedMark)
	tx.g.keys = tx.g.keys[:tx.keysMark]
}

// undoGroup takes back what the whole group staged.
func (tx *Tx) undoGroup() { tx.undoTo(0) }

func (tx *Tx) undoTo(mark int) {
	for i := len(tx.saved) - 1; i >= mark; i-- {
		if u := &tx.saved[i]; u.f != nil {
			u.f()
		} else {
			restore(tx.r.overlay, u.key, u.was, u.had)
		}
	}
	tx.saved = tx.saved[:mark]
}

// Location is where the range lives.
func (tx *Tx) Location() geo.Location { return tx.r.o.Location }

// Range is the range's id.
func (tx *Tx) Range() geo.RangeID { return tx.r.o.Range }

// Get implements kv.Getter.
func (tx *Tx) Get(key []byte) ([]byte, bool, error) {
	if v, ok := tx.r.overlay[string(key)]; ok {
		return v.value, !v.deleted, nil
	}
	if tx.wiped(key) {
		return nil, false, nil
	}
	return tx.r.o.State.Get(key)
}

// HasChunk reports whether a chunk is durable on the node that evaluates (R3).
func (tx *Tx) HasChunk(ref extent.Ref) bool { return tx.r.o.HasChunk(ref) }

// Gate is the gate of an account (R7).
func (tx *Tx) Gate(a geo.Account) change.Gate {
	if g, ok := tx.r.gates[a]; ok {
		return g
	}
	return tx.r.Machine.Gate(a)
}

// Timestamp returns a new commit time: above every time of the range and above floor, and with
// this location's lowest bit (R6).
func (tx *Tx) Timestamp(floor geo.Timestamp) geo.Timestamp {
	r := tx.r
	t := max(geo.TimestampOf(tx.now), r.last+1, r.Machine.AppliedState().Last+1, floor+1)
	if plantedbugs.Planted(plantedbugs.WallClock) {
		t = geo.TimestampOf(tx.now)
	}
	if t&1 != r.o.Parity {
		t++
	}
	r.last = t
	return t
}

// Ahead returns after how long t is no further ahead of this leader's wall clock than a received
// time may be; 0 if it is not now (R6). A time that was taken would be a lower bound of all later
// commit times here, for good. Where the ranges have such times already, since the clocks were set back, those that
// follow them do no more harm, and waiting for them would take as long as the clocks were ahead: any that is ahead
// by less than twice what was found at first is taken, but by no more than aheadMore above that.
func (tx *Tx) Ahead(t geo.Timestamp) time.Duration {
	ahead, allowed := t.Time().Sub(tx.now), geo.ClockOffMax
	if ahead > allowed && tx.r.o.TimesAhead != nil {
		have := tx.r.o.TimesAhead(tx.now)
		allowed = max(allowed, have+min(have, aheadMore))
	}
	return max(0, ahead-allowed)
}

// aheadMore is by how much a time may be further ahead of the clock than those of the ranges were found to be.
const aheadMore = time.Hour

// Now is this leader's wall clock. Times that the range has given may be ahead of it.
func (tx *Tx) Now() time.Time { return tx.now }

// Change stages a change of one partition. The account's gate gives its epoch, and decides
// whether it has a number (R10). The caller sets CommitTime, Partition, Ops and Chunks of rec;
// Change fills in the rest.
func (tx *Tx) Change(p keys.Partition, rec change.Record) error {
	rec.Service, rec.Account, rec.Lane = p.Service, p.Account, p.Lane()
	if err := tx.stage(rec, true); err != nil {
		return err
	}
	return tx.written(p, &rec)
}

// Restate is Change for rows that the other location gets again, or has had: no client writes them.
func (tx *Tx) Restate(p keys.Partition, rec change.Record) error {
	rec.Service, rec.Account, rec.Lane = p.Service, p.Account, p.Lane()
	return tx.stage(rec, true)
}

// Local is Change without a number: for what concerns this location alone, and while the account's gate is closed.
func (tx *Tx) Local(p keys.Partition, rec change.Record) error {
	rec.Service, rec.Account, rec.Lane = p.Service, p.Account, p.Lane()
	return tx.stage(rec, false)
}

// stage stages a change whose Service, Account and Lane are set too; ships: it gets a number where the account's changes
// have some. While the gate of an account that is primary here is closed, what has a number was drained, or is being
// drained, to the location that takes the account (R19): nothing may follow it.
func (tx *Tx) stage(rec change.Record, ships bool) error {
	for _, ref := range rec.Chunks {
		if !tx.HasChunk(ref) {
			// This node was away when the payload came. A leader must hold the payload of
			// what it proposes (R3); the client retries and sends the payload again.
			return kv.ErrBusy
		}
	}
	gate := tx.Gate(rec.Account)
	if gate.Role == change.RolePrimary && tx.Uncompared() {
		return kv.ErrBusy
	}
	numbered := ships && gate.Numbered
	if numbered && !gate.Open {
		return kv.ErrBusy
	}
	rec.Epoch = gate.Epoch
	rec.Range, rec.Incarnation = tx.r.o.Range, tx.r.Machine.Incarnation()
	rec.Seq, rec.Prev = 0, 0
	s := rec.Stream()
	if numbered {
		head := tx.Head(s)
		rec.Seq, rec.Prev = head.Seq+1, head.Hash
	}
	encoded, err := tx.b.Record(&rec)
	if err != nil {
		return fmt.Errorf("encode change: %w", err)
	}
	if numbered {
		tx.shipped = true
		save(tx, tx.r.heads, s)
		tx.r.heads[s] = geo.Head{Seq: rec.Seq, Hash: change.HashOf(encoded)}
	}
	tx.overlayOps(&rec)
	return nil
}

// save remembers m[k] for undo.
func save[K comparable, V any](tx *Tx, m map[K]V, k K) {
	old, had := m[k]
	tx.saved = append(tx.saved, undo{f: func() { restore(m, k, old, had) }})
}

func restore[K comparable, V any](m map[K]V, k K, old V, had bool) {
	if had {
		m[k] = old
	} else {
		delete(m, k)
	}
}

func (tx *Tx) overlayOps(rec *change.Record) {
	key := append(tx.r.key[:0], rec.Partition...)
	for _, op := range rec.Ops {
		key = append(key[:len(rec.Partition)], op.Row...)
		tx.overlay(string(key), overlayValue{value: op.Value, deleted: op.Delete})
	}
	tx.r.key = key
}

// Head is the last record numbered in a stream, groups in flight included.
func (tx *Tx) Head(s geo.Stream) geo.Head {
	if h, ok := tx.r.heads[s]; ok {
		return h
	}
	return tx.r.Machine.Head(s)
}

// Closed stages the promise that nothing commits at or before now.
func (tx *Tx) Closed() { tx.ClosedAfter(0) }

// ClosedAfter is Closed for a time that is also above floor, and returns it.
func (tx *Tx) ClosedAfter(floor geo.Timestamp) geo.Timestamp {
	t := tx.Timestamp(floor)
	tx.b.Closed(t)
	return t
}

// SetGate stages a gate.
func (tx *Tx) SetGate(a geo.Account, g change.Gate) {
	tx.b.Gate(a, g)
	save(tx, tx.r.gates, a)
	tx.r.gates[a] = g
}

// Trim stages the deletion of acknowledged records, up to the head at most. It does nothing to a
// stream that is stopped (R16), but for one that fell out of the outbox's budget: see FallOut. A group deletes outbox.TrimRowsMax rows at most: Trim stages what
// fits, and the caller trims the rest later. What the deletion leaves behind, the hash of the last
// record and the bytes up to it, is read here, in the record that follows: apply does not read the state. Where that
// record cannot be decoded, Trim deletes up to one before.
func (tx *Tx) Trim(s geo.Stream, upTo geo.Seq) error {
	m := tx.r.Machine
	if why, stopped := tx.Stopped(s); stopped && why.Reason.Stands() && why.Reason != change.StopBudget {
		return nil
	}
	from := m.Trimmed(s)
	upTo = min(upTo, m.Head(s).Seq, from+geo.Seq(outbox.TrimRowsMax-tx.trimmed))
	if upTo <= from {
		return nil
	}
	to, ok, err := m.OutboxAt(s, upTo)
	for change.Undecoded(err) && upTo > from+1 { // The next record has no hash to compare with (R11).
		upTo--
		to, ok, err = m.OutboxAt(s, upTo)
	}
	if change.Undecoded(err) {
		return nil
	}
	if err != nil || !ok {
		return err
	}
	rows := int(upTo - from)
	tx.trimmed += rows
	tx.saved = append(tx.saved, undo{f: func() { tx.trimmed -= rows }})
	tx.b.Trim(s, to)
	return nil
}

// GenerationClosed reports whether the generation of a key of keys.ClosedGeneration
// takes no more changes (R8). A leader remembers which are open: every write asks,
// and the answer changes here alone.
func (tx *Tx) GenerationClosed(key []byte) (bool, error) {
	if _, open := tx.r.open[string(key)]; open {
		return false, nil
	}
	_, closed, err := tx.Get(key)
	if err != nil || closed {
		return closed, err
	}
	if len(tx.r.open) >= openMax {
		clear(tx.r.open)
	}
	tx.r.open[string(key)] = struct{}{}
	return false, nil
}

// CloseGeneration stages that a generation takes no more changes (R8).
func (tx *Tx) CloseGeneration(key []byte) {
	k := string(key)
	delete(tx.r.open, k)
	tx.b.Generation(key)
	tx.overlay(k, overlayValue{value: key})
}
