package ranges

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// Source names a range of the other location.
type Source struct {
	Origin geo.Location
	Range  geo.RangeID
}

// Machine is the applied state of one replica of a range. Apply is called by the
// node's scheduler alone; the other methods may be called concurrently with it.
type Machine struct {
	id    geo.RangeID
	state *state.Store
	// nodes are those that the range began on.
	nodes []geo.NodeID

	// version is the index of the newest entry that changed data, zero while such an
	// entry is being committed: see kv.Versioned.
	version atomic.Uint64
	// replaced counts the calls of Replace, before the state changes.
	replaced atomic.Uint64

	// mu guards all below. It is held for memory work only.
	mu      sync.RWMutex
	applied change.AppliedState
	members replica.Members
	closed  geo.Timestamp
	gates   map[geo.Account]change.Gate
	// heads, trimmed: the streams this range is the source of.
	heads   map[geo.Stream]geo.Head
	trimmed map[geo.Stream]geo.Seq
	// outbox counts what is numbered and not yet acknowledged, and sizes holds the
	// bytes of each such record by stream, oldest first: a trim reads no record again.
	outboxRecords int64
	outboxBytes   int64
	sizes         map[geo.Stream][]uint32
	// cursors, received: the streams this range receives.
	cursors  map[geo.Stream]*change.Cursor
	received map[Source]geo.Timestamp
	// behind are the streams whose cursor is below a closed head.
	behind map[geo.Stream]struct{}

	// Counts since the start, for tests and metrics.
	noops uint64

	// observer is told of every group after it was applied.
	observer func(Applied)
	// out is what the entry under way did so far, and changed says that the Apply under
	// way changes data. movedHeads and movedCursors are the
	// streams whose row the Apply under way has to write.
	out          Applied
	changed      bool
	movedHeads   map[geo.Stream]struct{}
	movedCursors map[geo.Stream]struct{}
}

// Applied is what one entry did.
type Applied struct {
	Index uint64
	Group change.GroupID
	// Effective is false for a no-op: term or predecessor did not fit (R1).
	Effective bool
	// Records are the encoded records this range is the source of, in commit order.
	Records []Shipped
	// Closed is the range's own closed time, zero where the entry has none.
	Closed geo.Timestamp
	// Entry is the group as it was committed, empty where there is none.
	Entry []byte
}

// Shipped is one record for the other location.
type Shipped struct {
	Stream     geo.Stream
	Seq        geo.Seq
	Hash       geo.Hash
	CommitTime geo.Timestamp
	Bytes      []byte
	// Chunks says that the record names payload chunks.
	Chunks bool
}

// OpenMachine loads the state of a range that began with one replica on each of nodes.
// observer is called from Apply.
func OpenMachine(id geo.RangeID, state *state.Store, observer func(Applied), nodes ...geo.NodeID) (*Machine, error) {
	m := &Machine{
		id: id, state: state, observer: observer, nodes: nodes,
		gates: map[geo.Account]change.Gate{}, heads: map[geo.Stream]geo.Head{}, trimmed: map[geo.Stream]geo.Seq{},
		cursors: map[geo.Stream]*change.Cursor{}, received: map[Source]geo.Timestamp{}, behind: map[geo.Stream]struct{}{},
		sizes: map[geo.Stream][]uint32{}, movedHeads: map[geo.Stream]struct{}{}, movedCursors: map[geo.Stream]struct{}{},
	}
	if err := m.load(); err != nil {
		return nil, fmt.Errorf("load state of range %d: %w", id, err)
	}
	return m, nil
}

func (m *Machine) load() (err error) {
	if m.applied, err = AppliedIn(m.state, m.id); err != nil {
		return err
	}
	m.version.Store(m.applied.Index)
	if m.members, err = MembersIn(m.state, m.id, m.nodes); err != nil {
		return err
	}
	if v, ok, err := m.state.Get(keys.Closed(m.id)); err != nil {
		return err
	} else if ok {
		h, err := change.ParseHead(v)
		if err != nil {
			return err
		}
		m.closed = geo.Timestamp(h.Seq)
	}
	return errors.Join(
		m.each(keys.Gates(m.id), m.loadGate),
		m.eachStream(keys.Heads(m.id), func(s geo.Stream, v []byte) (err error) {
			m.heads[s], err = change.ParseHead(v)
			return err
		}),
		m.eachStream(keys.Trims(m.id), func(s geo.Stream, v []byte) error {
			h, err := change.ParseHead(v)
			m.trimmed[s] = h.Seq
			return err
		}),
		m.eachStream(keys.Cursors(m.id), func(s geo.Stream, v []byte) error {
			c, err := change.ParseCursor(v)
			m.cursors[s] = &c
			if len(c.Pairs) > 0 {
				m.behind[s] = struct{}{}
			}
			return err
		}),
		m.each(keys.ReceivedAll(m.id), m.loadReceived),
		m.eachStream(keys.OutboxAll(m.id), func(s geo.Stream, v []byte) error {
			m.queued(s, len(v))
			return nil
		}),
	)
}

func (m *Machine) each(prefix []byte, f func(key, value []byte) error) error {
	it, err := m.state.Scan(prefix, keys.PrefixEnd(prefix))
	if err != nil {
		return err
	}
	for it.Next() {
		if err := f(it.Key(), it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return it.Close()
}

func (m *Machine) eachStream(prefix []byte, f func(s geo.Stream, value []byte) error) error {
	return m.each(prefix, func(key, value []byte) error {
		s, _, err := keys.ParseStreamKey(key)
		if err != nil {
			return err
		}
		return f(s, value)
	})
}

func (m *Machine) loadGate(key, value []byte) error {
	a, err := keys.ParseGateKey(key)
	if err != nil {
		return err
	}
	m.gates[a], err = change.ParseGate(value)
	return err
}

func (m *Machine) loadReceived(_, value []byte) error {
	c, err := change.ParseClosed(value)
	if err != nil {
		return err
	}
	m.received[Source{c.Origin, c.Range}] = c.T
	return nil
}

// Apply implements replica.StateMachine. One batch takes all entries, the applied
// index with them.
func (m *Machine) Apply(entries []*pb.Entry) error {
	m.mu.Lock()
	batch := m.state.NewBatch()
	results := make([]Applied, 0, len(entries))
	for _, e := range entries {
		m.out = Applied{Index: e.GetIndex()}
		if err := m.applyEntry(batch, e); err != nil {
			m.mu.Unlock()
			return errors.Join(fmt.Errorf("apply index %d of range %d: %w", e.GetIndex(), m.id, err), batch.Close())
		}
		m.applied.Index, m.applied.Term = e.GetIndex(), e.GetTerm()
		results = append(results, m.out)
	}
	err := m.setMoved(batch)
	if err == nil {
		err = m.commit(batch)
	}
	m.mu.Unlock()
	if err = errors.Join(err, batch.Close()); err != nil {
		return err
	}
	for _, r := range results {
		m.observer(r)
	}
	if plantedbugs.Planted(plantedbugs.CursorOutsideBatch) {
		late := m.state.NewBatch()
		return errors.Join(m.setCursors(late), m.state.Commit(late), late.Close())
	}
	return nil
}

// commit commits the batch of an Apply and moves the version with its data.
func (m *Machine) commit(batch *state.Batch) error {
	if !m.changed {
		return m.state.Commit(batch)
	}
	m.changed = false
	m.version.Store(0)
	if err := m.state.Commit(batch); err != nil {
		return err // The replica is out of service, and its version stays unknown.
	}
	m.version.Store(m.applied.Index)
	return nil
}

// setMoved writes, once for all entries, how far the state and its streams are: in the
// batch of the data they count (DESIGN 2.6).
func (m *Machine) setMoved(batch *state.Batch) error {
	for s := range m.movedHeads {
		if err := batch.Set(keys.Head(m.id, s), change.AppendHead(nil, m.heads[s])); err != nil {
			return err
		}
	}
	clear(m.movedHeads)
	if !plantedbugs.Planted(plantedbugs.CursorOutsideBatch) {
		if err := m.setCursors(batch); err != nil {
			return err
		}
	}
	return batch.Set(keys.Applied(m.id), change.AppendApplied(nil, m.applied))
}

func (m *Machine) setCursors(batch *state.Batch) error {
	for s := range m.movedCursors {
		if err := batch.Set(keys.Cursor(m.id, s), change.AppendCursor(nil, m.cursors[s])); err != nil {
			return err
		}
	}
	clear(m.movedCursors)
	return nil
}

func (m *Machine) applyEntry(batch *state.Batch, e *pb.Entry) error {
	if e.GetType() == pb.EntryConfChangeV2 {
		return m.applyMembers(batch, e)
	}
	if len(e.Data) == 0 || e.GetType() != pb.EntryNormal {
		return nil // A new leader's empty entry.
	}
	g, err := change.ParseGroup(e.Data)
	if err != nil {
		return err
	}
	m.out.Group, m.out.Entry = g.ID, e.Data
	fits, err := m.fits(&g, e.GetTerm())
	if err != nil {
		return err
	}
	if !fits {
		m.noops++
		return nil
	}
	m.out.Effective = true
	m.applied.Group = g.ID
	return g.Parts(func(kind change.PartKind, body []byte) error { return m.applyPart(batch, kind, body) })
}
