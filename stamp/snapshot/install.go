package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/durable"
	"antipode/stamp/feature"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// The staged files of a range's snapshot are in the folder snap/r<range>. The folder goes
// through these states; each step is durable before the next:
//
//	staged     tables, no plan                    a crash here: removed at open, but see kept.go
//	planned    the file install holds the plan    removed at open, unless ingested
//	ingested   state at the plan's index          at open the log is reset, then removed
//	reset      the log begins behind that index   removed at open
//	gone       nothing is acknowledged before
//
// So if a state is ahead of its log and there is no plan, the log lost its end (R4). If there
// is a plan, it did not: nothing was acknowledged on top of the ingested state.

// plan is what the file install records before a snapshot is ingested.
type plan struct {
	id geo.RangeID
	// last is the last entry that the snapshot holds.
	last geo.EntryID
	// hardTerm and vote are those of the hard state in the log. A log without them is lost.
	hardTerm, vote uint64
}

const (
	planName    = "install"
	planVersion = 1
	planLen     = 1 + 4 + 4*8 + 4
)

func (n *plan) encode() []byte {
	b := append(make([]byte, 0, planLen), planVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(n.id))
	for _, v := range [...]uint64{n.last.Index, n.last.Term, n.hardTerm, n.vote} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return binary.LittleEndian.AppendUint32(b, crc.Of(b))
}

// parsePlan decodes a plan; ok is false for other bytes, such as a plan whose write a crash
// interrupted. A whole one of a later version is feature.ErrLater: removed, it would cost the replica.
func parsePlan(b []byte) (m plan, ok bool, err error) {
	if len(b) > 0 && b[0] > planVersion && crc.Fits(b) {
		return m, false, feature.Later("the plan of a range snapshot", uint64(b[0]), planVersion)
	}
	if len(b) != planLen || b[0] != planVersion ||
		crc.Of(b[:planLen-4]) != binary.LittleEndian.Uint32(b[planLen-4:]) {
		return m, false, nil
	}
	m.id = geo.RangeID(binary.LittleEndian.Uint32(b[1:]))
	for i, v := range [...]*uint64{&m.last.Index, &m.last.Term, &m.hardTerm, &m.vote} {
		*v = binary.LittleEndian.Uint64(b[5+8*i:])
	}
	return m, true, nil
}

// RemoveStaged removes what is staged of a range, durably. It may be called from any goroutine.
func (m *Manager) RemoveStaged(id geo.RangeID) error {
	m.mu.Lock()
	delete(m.kept, id)
	m.mu.Unlock()
	if err := m.o.FS.RemoveAll(m.StagedDir(id)); err != nil {
		return err
	}
	return durable.SyncDir(m.o.FS, m.o.Dir)
}

// Empty removes the state of a range, durably. The folder of its staged files must be free:
// see Reserve. It may be called from any goroutine, while nothing is applied.
func (m *Manager) Empty(id geo.RangeID) error {
	dir := m.StagedDir(id)
	if err := m.o.FS.RemoveAll(dir); err != nil {
		return err
	}
	if err := durable.MkdirAll(m.o.FS, dir); err != nil {
		return err
	}
	empty, err := m.o.State.NewStaging(dir, ranges.Spans(id))
	if err != nil {
		return err
	}
	if err := empty.Finish(); err != nil {
		return err
	}
	if err := m.o.Node.Range(id).Machine.Replace(func() error { return m.o.State.Ingest(empty) }); err != nil {
		return err
	}
	return m.RemoveStaged(id)
}

// ForRange returns the replica.Snapshots of a range; nil if the node neither sends nor takes
// snapshots.
func (m *Manager) ForRange(id geo.RangeID) replica.Snapshots {
	if m.o.RowChunks == nil {
		return nil
	}
	return rangeSnapshots{m, id}
}

// rangeSnapshots implements replica.Snapshots for one range.
type rangeSnapshots struct {
	m  *Manager
	id geo.RangeID
}

// Offer implements replica.Snapshots.
func (s rangeSnapshots) Offer() (*pb.Snapshot, error) { return s.m.offer(s.id) }

// Begin implements replica.Snapshots.
func (s rangeSnapshots) Begin(snap *pb.Snapshot) error {
	m, last := s.m, replica.LastOf(snap)
	in := m.installing[s.id]
	if in == nil || replica.LastOf(in.msg.GetSnapshot()).Index != last.Index {
		return fmt.Errorf("snapshot at index %d is not staged", last.Index)
	}
	in.accepted = true
	hs, _, err := m.o.Node.Log(s.id).InitialState()
	if err != nil {
		return err
	}
	what := plan{id: s.id, last: last, hardTerm: hs.GetTerm(), vote: hs.GetVote()}
	m.start(func() {
		err := in.replace(what)
		m.mu.Lock()
		in.replaced, in.failure = true, err
		m.mu.Unlock()
		m.o.Node.Wake()
	})
	return nil
}

// replace replaces the state by the staged one, as planned, durably.
func (in *Incoming) replace(what plan) error {
	m, last := in.m, what.last
	if err := durable.Remove(m.o.FS, in.dir, keptName); err != nil {
		return err
	}
	if err := durable.Write(m.o.FS, in.dir, planName, what.encode()); err != nil {
		return err
	}
	machine := m.o.Node.Range(in.id).Machine
	if err := machine.Replace(func() error { return m.o.State.Ingest(in.staging) }); err != nil {
		return err
	}
	at, err := machine.DurableIndex()
	if err != nil {
		return err
	}
	if a := machine.AppliedState(); at != last.Index || a.EntryID != last {
		return fmt.Errorf("ingested state is at index %d of term %d, durable at %d, want %d of %d",
			a.Index, a.Term, at, last.Index, last.Term)
	}
	return nil
}

// Ended implements replica.Snapshots.
func (s rangeSnapshots) Ended() bool {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	in := s.m.installing[s.id]
	return in != nil && in.replaced
}

// Install implements replica.Snapshots.
func (s rangeSnapshots) Install(snap *pb.Snapshot) error {
	in := s.m.installing[s.id]
	if in.failure == nil {
		s.m.o.Node.Replaced(s.id, replica.LastOf(snap).Index)
	}
	return in.failure
}

// Installed implements replica.Snapshots.
func (s rangeSnapshots) Installed() error {
	in := s.m.installing[s.id]
	in.installed = true
	s.m.o.Logger.Info("range snapshot installed", "range", s.id, "from", in.from,
		"index", in.msg.GetSnapshot().GetMetadata().GetIndex(), "bytes", in.staging.Bytes())
	return nil
}

// StepArrived passes the snapshots to Raft whose state and payload are here. They hold
// committed entries, which every later leader has too. So if the leader has changed, its
// replica and term replace those of the sender: a transfer outlives the term in which it began. What broke off and did
// not go on for long is removed.
func (m *Manager) StepArrived(now time.Duration) {
	m.dropKept(now)
	for _, in := range m.pass.arrived {
		m.installing[in.id] = in
		rep := m.o.Node.Range(in.id).Replica()
		if !m.o.Node.IsMember(in.id, replica.To(in.msg)) {
			continue // It is for a replica that is lost by now.
		}
		if node, term := rep.Leader(); node != 0 && term > in.msg.GetTerm() {
			lead, _ := rep.Members().On(node)
			from := uint64(lead.ID)
			in.msg.From, in.msg.Term = &from, &term
		}
		rep.Step(in.msg, now)
	}
}

// FinishArrived answers the senders of the snapshots that are installed since the last pass, or will not be.
func (m *Manager) FinishArrived() {
	for _, id := range slices.Sorted(maps.Keys(m.installing)) {
		in, rep, result := m.installing[id], m.o.Node.Range(id).Replica(), ErrUnneeded
		switch {
		case in.installed:
			m.o.Node.Installed(id)
			result = nil
		case rep.Installing() && rep.Lost() == nil:
			continue
		case in.accepted && !(rangeSnapshots{m, id}).Ended():
			continue // The replica was lost meanwhile. What is staged stays until nobody uses it.
		}
		delete(m.installing, id)
		m.start(func() { m.release(in, result) })
	}
}

// release removes what was staged, and answers the sender. What was accepted and not installed stays: the next start decides.
func (m *Manager) release(in *Incoming, result error) {
	if in.installed || !in.accepted {
		if err := m.RemoveStaged(in.id); err != nil {
			m.o.Logger.Warn("staged snapshot not removed; the next start does", "range", in.id, "error", err)
		}
	}
	m.mu.Lock()
	in.owned = false
	if in.closed {
		delete(m.incoming, in.id)
	}
	m.mu.Unlock()
	in.done <- result
}

// Recover finishes or removes what a crash left of a snapshot of a range. It comes before
// Node.Range has the range. lost is not nil if its log forgot what it knew when the snapshot
// was ingested (R4).
func (m *Manager) Recover(id geo.RangeID, rlog state.RangeLog) (lost, err error) {
	fs := m.o.FS
	b, err := durable.Read(fs, fs.PathJoin(m.StagedDir(id), planName))
	if err != nil {
		return nil, err
	}
	what, ok, err := parsePlan(b)
	if err != nil {
		return nil, fmt.Errorf("range %d: %w", id, err)
	}
	if !ok || what.id != id {
		if _, kept, err := m.readKept(id); err == nil && kept && b == nil && m.o.RowChunks != nil {
			m.keep(id)
			return nil, nil
		}
		return nil, m.RemoveStaged(id)
	}
	applied, err := ranges.AppliedIn(m.o.State, id)
	if err != nil {
		return nil, err
	}
	if applied.EntryID != what.last {
		return nil, m.RemoveStaged(id) // It was not ingested: the old replica is whole.
	}
	hs, _, err := rlog.InitialState()
	if err != nil {
		return nil, err
	}
	if hs.GetTerm() < what.hardTerm || hs.GetTerm() == what.hardTerm && hs.GetVote() != what.vote {
		return fmt.Errorf("%w: term %d, vote %d; had term %d, vote %d",
			replica.ErrLost, hs.GetTerm(), hs.GetVote(), what.hardTerm, what.vote), nil
	}
	switch term, err := rlog.Term(what.last.Index); {
	case err != nil && !errors.Is(err, raft.ErrCompacted) && !errors.Is(err, raft.ErrUnavailable):
		return nil, err
	case err != nil || term != what.last.Term:
		batch := m.o.Log.NewBatch()
		if err := rlog.Reset(batch, what.last); err != nil {
			return nil, err
		}
		if err := batch.Commit(true); err != nil {
			return nil, err
		}
		m.o.Logger.Info("range snapshot completed after a crash", "range", id, "index", what.last.Index)
	}
	return nil, m.RemoveStaged(id)
}
