package ranges

import (
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/feature"
	"antipode/stamp/keys"
	"antipode/stamp/replica"
)

// What a later version wrote reaches a replica as an entry of its leader, in a range snapshot, or out of its own stores
// after a return to an earlier version. It is never taken, and what is here already stops the node: see feature.ErrLater.

// Understands reports whether this program can apply all of the entries, which a leader sent, of what is committed up
// to an index. A replica takes no others into its log: so an entry is committed only once a quorum can apply it, and what
// this replica acknowledged it can apply, also as the next leader (R1). It is called on the scheduler.
func (r *Range) Understands(from geo.NodeID, entries []*pb.Entry, committed uint64) bool {
	if l := &r.later; l.from == from && l.index <= committed { // The entry came before its commit.
		r.belowFloor(l.err)
	}
	for _, e := range entries {
		err := r.understood(e)
		if err == nil {
			continue
		}
		r.Later(fmt.Sprintf("index %d from node %d: %v; this replica takes no more entries until its node is upgraded", e.GetIndex(), from, err))
		if r.later.from, r.later.index, r.later.err = from, e.GetIndex(), err; e.GetIndex() <= committed {
			r.belowFloor(err)
		}
		return false
	}
	return true
}

// later is what of a later version came to a range.
type later struct {
	// reason is what OnLater got last. Guarded by Range.mu.
	reason string
	// from, index and err are of the last entry of a leader that was not understood. Scheduler only.
	from  geo.NodeID
	index uint64
	err   error
}

func (r *Range) understood(e *pb.Entry) error {
	if err := replica.Understood(e); err != nil || e.GetType() != pb.EntryNormal {
		return err
	}
	understands := r.o.Understands
	if understands == nil {
		understands = change.Understood
	}
	if err := understands(e.Data); err != nil {
		return err
	}
	if Service(r.o.Range) != geo.Catalog {
		return nil
	}
	return r.o.Levels.Check(change.FloorOf(e.Data))
}

// Later reports, once, that something of a later version came that the replica does not take. It may be called from any
// goroutine.
func (r *Range) Later(reason string) {
	r.mu.Lock()
	known := r.later.reason == reason
	r.later.reason = reason
	r.mu.Unlock()
	if !known && r.o.OnLater != nil {
		r.o.OnLater(reason)
	}
}

// belowFloor stops the node if an error is feature.ErrFloor: it may serve nothing then.
func (r *Range) belowFloor(err error) {
	if errors.Is(err, feature.ErrFloor) && r.o.OnFloor != nil {
		r.o.OnFloor(err)
	}
}

// CheckSnapshot is CheckRow for a row that a node sends. It may be called from any goroutine.
func (r *Range) CheckSnapshot(from geo.NodeID, key, value []byte) error {
	err := CheckRow(r.o.Range, key, value, r.o.Levels)
	if err != nil {
		r.Later(fmt.Sprintf("range snapshot from node %d not taken: %v", from, err))
		r.belowFloor(err)
	}
	return err
}

// checkKinds returns change.ErrVersion if the state has a row of a kind that a later version added: ignored, it would
// not decide what it is to decide.
func (m *Machine) checkKinds() error {
	lower, upper := keys.Unknown(m.id)
	it, err := m.state.Scan(lower, upper)
	if err != nil {
		return err
	}
	if it.Next() {
		err = unknownKind(it.Key())
	}
	if closed := it.Close(); closed != nil {
		return closed
	}
	return err
}

func unknownKind(key []byte) error {
	return fmt.Errorf("%w: a row with key %x", change.ErrVersion, key)
}

// CheckRow returns feature.ErrLater for a row of a range snapshot that this program could not load, or would ignore. What
// clients stored it leaves to those who read it.
func CheckRow(id geo.RangeID, key, value []byte, levels *feature.Gate) error {
	if !keys.IsRange(key) {
		return nil
	}
	k, err := keys.ParseRangeKey(key)
	if err != nil {
		return laterOf(unknownKind(key))
	}
	switch k.Kind {
	case keys.KindApplied:
		_, err = change.ParseApplied(value)
	case keys.KindGate:
		_, err = change.ParseGate(value)
	case keys.KindHead, keys.KindTrimmed:
		_, err = change.ParseOutboxHead(value)
	case keys.KindOutbox:
		var encoded []byte
		if _, encoded, err = change.ParseOutboxRow(value); err == nil {
			_, err = change.ParseHeader(encoded)
		}
	case keys.KindCursor:
		_, err = change.ParseCursor(value)
	case keys.KindReceived:
		_, err = change.ParseClosed(value)
	case keys.KindRetired:
	case keys.KindGeneration, keys.KindClosed:
		_, err = change.ParseHead(value)
	case keys.KindMembers:
		_, err = replica.ParseMembers(value)
	case keys.KindStop:
		_, err = change.ParseStop(value)
	case keys.KindImage:
		_, err = change.ParseImage(value)
	case keys.KindAnswers:
		_, err = change.ParseAnswers(value)
	case keys.KindLevels:
		var l change.Levels
		if l, err = change.ParseLevels(value); err == nil {
			err = levels.Check(l.Floor)
		}
	}
	if err = laterOf(err); errors.Is(err, replica.ErrLater) {
		return fmt.Errorf("a row of range %d, %s: %w", id, k.Kind, err)
	}
	return nil // What is damaged was so at the sender, and is for Machine to say.
}
