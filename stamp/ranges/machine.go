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
	"antipode/stamp/cursor"
	"antipode/stamp/feature"
	"antipode/stamp/keys"
	"antipode/stamp/outbox"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// Machine is the applied state of one replica of a range. Apply is called by the
// node's scheduler alone, and not while Range.Redo is; the other methods may be called concurrently with it.
type Machine struct {
	id    geo.RangeID
	state *state.Store
	// nodes are those that the range began on.
	nodes []geo.NodeID

	// version is the history and the index of the newest entry that changed data, zero while such an
	// entry is being committed: see kv.Version.
	version atomic.Uint64
	// history names the entries that the data comes from, for this process: see changedAt.
	history uint64
	// replaced counts the calls of Replace, before the state changes.
	replaced atomic.Uint64

	// mu guards all below. It is held for memory work only.
	mu      sync.RWMutex
	applied change.AppliedState
	members replica.Members
	// compared is the incarnation under which the gates were compared last: see compared.go.
	compared geo.Incarnation
	gates    gateTable
	// gate has the feature levels of the node.
	gate *feature.Gate
	// stops are the streams that may not go on, of this range or received by it.
	stops map[geo.Stream]change.Stop
	// outbox holds the streams that this range is the source of.
	outbox *outbox.Outbox
	// received holds the streams that this range receives.
	received *cursor.Received

	// Counts since the start, for tests and metrics.
	noops uint64

	// observer gets every group after it was applied.
	observer func(Applied)
	// out is what the current entry did so far. changed: the current Apply changes data.
	out     Applied
	changed bool
	// parts is how many parts the current group has.
	parts int
	// wiped are the spans that the current Apply wipes.
	wiped []state.Span
	// recent are the newest changes of the catalog.
	recent recent
	// held are rows of the group that is being applied, key the one of a row, which is reused.
	held  held
	key   []byte
	names change.Names
}

// Applied is what one entry did.
type Applied struct {
	Index uint64
	Group change.GroupID
	// Effective is false for a no-op: its term or predecessor did not fit (R1).
	Effective bool
	// Changed: the entry did more than move closed times. It may have left chunks that nothing names any more.
	Changed bool
	// Added is what the group added to the outbox.
	outbox.Added
	// Entry is the group as it was committed, empty for an entry that holds none.
	Entry []byte
}

// OpenMachine loads the state of a range that began with one replica on each of nodes.
// observer is called from Apply.
func OpenMachine(id geo.RangeID, state *state.Store, observer func(Applied), nodes ...geo.NodeID) (*Machine, error) {
	m := &Machine{
		id: id, state: state, observer: observer, nodes: nodes, gate: feature.NewGate(feature.Known),
		gates: gateTable{of: map[geo.Account]change.Gate{}}, stops: map[geo.Stream]change.Stop{},
		held: held{on: Service(id) == geo.Queue},
	}
	if err := m.load(); err != nil {
		return nil, fmt.Errorf("load state of range %d: %w", id, laterOf(err))
	}
	return m, nil
}

func (m *Machine) load() (err error) {
	m.held = held{on: m.held.on} // Without what an Apply that failed had held.
	if err := m.checkKinds(); err != nil {
		return err
	}
	if m.applied, err = AppliedIn(m.state, m.id); err != nil {
		return err
	}
	m.history = histories.Add(1)
	m.changedAt()
	if m.members, err = MembersIn(m.state, m.id, m.nodes); err != nil {
		return err
	}
	if m.outbox, err = outbox.Open(m.id, m.state); err != nil {
		return err
	}
	if m.received, err = cursor.Open(m.id, m.state); err != nil {
		return err
	}
	if err := errors.Join(m.loadStops(), m.loadCompared()); err != nil {
		return err
	}
	return keys.Each(m.state, keys.Gates(m.id), m.loadGate)
}

// Apply implements replica.StateMachine.
func (m *Machine) Apply(entries []*pb.Entry) error {
	results, err := m.apply(entries)
	if err != nil {
		return err
	}
	for _, r := range results {
		m.observer(r)
	}
	if plantedbugs.Planted(plantedbugs.CursorOutsideBatch) {
		late := m.state.NewBatch()
		return errors.Join(m.received.Finish(late), m.state.Commit(late), late.Close())
	}
	return nil
}

// apply applies entries. One batch takes all of them, the applied index with them.
func (m *Machine) apply(entries []*pb.Entry) ([]Applied, error) {
	m.mu.Lock()
	batch := m.state.NewBatchOf(batchBytes(entries))
	results := make([]Applied, 0, len(entries))
	for _, e := range entries {
		m.out = Applied{Index: e.GetIndex()}
		if err := m.applyEntry(batch, e); err != nil {
			m.mu.Unlock()
			return nil, errors.Join(fmt.Errorf("apply index %d of range %d: %w", e.GetIndex(), m.id, laterOf(err)), batch.Close())
		}
		m.applied.Index, m.applied.Term = e.GetIndex(), e.GetTerm()
		results = append(results, m.out)
	}
	err := m.setMoved(batch)
	if err == nil {
		err = m.commit(batch)
	}
	m.mu.Unlock()
	return results, errors.Join(err, batch.Close())
}

// batchBytes is about what the batch of entries takes: their rows with their partitions, and how far the streams are.
func batchBytes(entries []*pb.Entry) int {
	n := 4 << 10
	for _, e := range entries {
		n += len(e.GetData()) + len(e.GetData())/4
	}
	return n
}

// histories counts the machines that were opened in this process.
//
//nolint:gochecknoglobals // Of the process: a cache of rows lives as long, and no stamp does.
var histories atomic.Uint64

// changedAt moves the version to the applied index. An index alone does not name the data: a stamp that was wiped, or a range
// that was recovered with loss, has other entries under the same indexes, and who caches rows may outlive both. The
// upper 24 bits are the machine's history, so that an index may have 40.
func (m *Machine) changedAt() {
	version := m.history<<historyShift | m.applied.Index
	m.recent.committed(version)
	m.version.Store(version)
}

// historyShift is how many bits of a version are the index.
const historyShift = 40

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
	m.changedAt()
	for _, span := range m.wiped {
		m.state.Wiped(span)
	}
	m.wiped = nil
	return nil
}

// setMoved writes how far the state and its streams are, once for all entries, in the batch
// that has their data (DESIGN 2.6).
func (m *Machine) setMoved(batch *state.Batch) error {
	if err := m.outbox.Finish(batch); err != nil {
		return err
	}
	if !plantedbugs.Planted(plantedbugs.CursorOutsideBatch) {
		if err := m.received.Finish(batch); err != nil {
			return err
		}
	}
	return batch.Set(keys.Applied(m.id), change.AppendApplied(nil, m.applied))
}

func (m *Machine) applyEntry(batch *state.Batch, e *pb.Entry) error {
	if e.GetType() == pb.EntryConfChangeV2 {
		return m.applyMembers(batch, e)
	}
	if err := replica.Understood(e); err != nil {
		return err
	}
	if len(e.Data) == 0 {
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
		m.out.Changed = true
		return nil
	}
	m.out.Effective, m.parts = true, g.Count()
	before := m.applied.Last
	m.applied.Group = g.ID
	err = g.Parts(func(kind change.PartKind, body []byte) error { return m.applyPart(batch, kind, body) })
	err = errors.Join(err, m.held.write(batch))
	m.outbox.ApplyAnswers(e.GetIndex(), e.GetTerm(), g.Answered, before, m.applied.Last, len(m.out.Records) > 0)
	return err
}
