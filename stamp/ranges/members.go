package ranges

import (
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// MembersIn returns the configuration of a range in a view of a state store. Before its first
// change that is one replica on each of nodes.
func MembersIn(g kv.Getter, id geo.RangeID, nodes []geo.NodeID) (replica.Members, error) {
	v, ok, err := g.Get(keys.Members(id))
	if err != nil || !ok {
		return replica.FirstMembers(nodes), err
	}
	return replica.ParseMembers(v)
}

// Members implements replica.StateMachine.
func (m *Machine) Members() replica.Members {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.members
}

// applyMembers writes a change of the configuration to the state, so that a snapshot
// contains it.
func (m *Machine) applyMembers(batch *state.Batch, e *pb.Entry) error {
	members, err := m.members.Apply(e)
	if err != nil {
		return err
	}
	m.members = members
	return batch.Set(keys.Members(m.id), replica.AppendMembers(nil, members))
}

// redoBytes is about how much of the log is applied at once.
const redoBytes = 4 << 20

// Redo applies every entry of the log that follows the state, for a recovery, committed or not: see replica.EndOf. It may be
// called by any goroutine while the replica takes no part: no command here waits for one of them.
func (r *Range) Redo(log state.RangeLog) error {
	m := r.Machine
	last, _, err := replica.EndOf(log, m.AppliedState().EntryID)
	if err != nil {
		return err
	}
	for at := m.AppliedState().Index + 1; at <= last.Index; at = m.AppliedState().Index + 1 {
		entries, err := log.Entries(at, last.Index+1, redoBytes)
		if err != nil {
			return err
		}
		results, err := m.apply(entries)
		if err == nil && m.state.Pressed() {
			err = m.state.Flush() // So that no more is in memory than its memtables may hold.
		}
		if err != nil {
			return err
		}
		for _, a := range results {
			if r.o.OnApplied != nil {
				r.o.OnApplied(a)
			}
		}
	}
	return nil
}

// Reform replaces the configuration by one that no entry of the log made, after a recovery (R4),
// makes floor the least of the times that the range has given: every later one is above it (R6), and
// voids the closed times that the range received. All is durable after a flush. It is called while nothing is applied.
func (m *Machine) Reform(members replica.Members, floor geo.Timestamp) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	applied := m.applied
	applied.Last = max(applied.Last, floor)
	batch := m.state.NewBatch()
	err := errors.Join(
		m.received.Recovered(batch),
		batch.Set(keys.Members(m.id), replica.AppendMembers(nil, members)),
		batch.Set(keys.Applied(m.id), change.AppendApplied(nil, applied)),
	)
	if err == nil {
		err = m.state.Commit(batch)
	}
	if err = errors.Join(err, batch.Close()); err != nil {
		return err
	}
	m.members, m.applied = members, applied
	return nil
}
