package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// The staged files of a range's snapshot lie in a folder of its own, snap/r<range>. It
// goes through these states; each step is durable before the next:
//
//	staged     tables, no note                    a crash here: removed at open
//	noted      the note install is written        removed at open, unless ingested
//	ingested   state at the note's index          at open the log is reset, then removed
//	reset      the log begins behind that index   removed at open
//	gone       nothing is acknowledged before
//
// So a state ahead of its log without a note is a log that lost its end (R4), and with
// one it is not: nothing was acknowledged on top.

// note says what is about to be ingested.
type note struct {
	id geo.RangeID
	// index and term are of the last entry that the snapshot holds.
	index, term uint64
	// hardTerm and vote are in the log. A log that has forgotten them is lost.
	hardTerm, vote uint64
}

const (
	noteName    = "install"
	noteVersion = 1
	noteLen     = 1 + 4 + 4*8 + 4
)

func (m *note) encode() []byte {
	b := append(make([]byte, 0, noteLen), noteVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(m.id))
	for _, v := range [...]uint64{m.index, m.term, m.hardTerm, m.vote} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// parseNote decodes a note; ok is false for bytes that are none, such as one that was
// being written.
func parseNote(b []byte) (m note, ok bool) {
	if len(b) != noteLen || b[0] != noteVersion ||
		crc32.Checksum(b[:noteLen-4], castagnoli) != binary.LittleEndian.Uint32(b[noteLen-4:]) {
		return m, false
	}
	m.id = geo.RangeID(binary.LittleEndian.Uint32(b[1:]))
	for i, v := range [...]*uint64{&m.index, &m.term, &m.hardTerm, &m.vote} {
		*v = binary.LittleEndian.Uint64(b[5+8*i:])
	}
	return m, true
}

func (n *Node) snapDir() string { return n.o.Engine.FS.PathJoin(n.o.Dir, "snap") }

func (n *Node) stagedDir(id geo.RangeID) string {
	return n.o.Engine.FS.PathJoin(n.snapDir(), fmt.Sprintf("r%d", id))
}

// removeStaged removes what is staged of a range, durably.
func (n *Node) removeStaged(id geo.RangeID) error {
	if err := n.o.Engine.FS.RemoveAll(n.stagedDir(id)); err != nil {
		return err
	}
	return syncDir(n.o.Engine.FS, n.snapDir())
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// writeDurable writes a small file and makes it and its name durable.
func writeDurable(fs vfs.FS, dir, name string, data []byte) error {
	f, err := fs.Create(fs.PathJoin(dir, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

// replaceDurable is writeDurable for a file that may be there: it changes in one step.
func replaceDurable(fs vfs.FS, dir, name string, data []byte) error {
	tmp := name + ".new"
	if err := writeDurable(fs, dir, tmp, data); err != nil {
		return err
	}
	if err := fs.Rename(fs.PathJoin(dir, tmp), fs.PathJoin(dir, name)); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

// readSmall reads a small file, nil where there is none.
func readSmall(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

// snapshots implements replica.Snapshots for one range.
type snapshots struct {
	n  *Node
	id geo.RangeID
}

// Offer implements replica.Snapshots.
func (s snapshots) Offer() (*pb.Snapshot, error) { return s.n.offer(s.id) }

// Install implements replica.Snapshots.
func (s snapshots) Install(snap *pb.Snapshot) error {
	n, meta := s.n, snap.GetMetadata()
	in := n.installing[s.id]
	if in == nil || in.msg.GetSnapshot().GetMetadata().GetIndex() != meta.GetIndex() {
		return fmt.Errorf("snapshot at index %d is not staged", meta.GetIndex())
	}
	in.taken = true
	hs, _, err := n.logs[s.id].InitialState()
	if err != nil {
		return err
	}
	what := note{s.id, meta.GetIndex(), meta.GetTerm(), hs.GetTerm(), hs.GetVote()}
	if err := writeDurable(n.o.Engine.FS, in.dir, noteName, what.encode()); err != nil {
		return err
	}
	m := n.byID[s.id].Machine
	if err := m.Replace(func() error { return n.state.Ingest(in.staging) }); err != nil {
		return err
	}
	durable, err := m.DurableIndex()
	if err != nil {
		return err
	}
	if a := m.AppliedState(); durable != meta.GetIndex() || a.Index != durable || a.Term != meta.GetTerm() {
		return fmt.Errorf("ingested state is at index %d of term %d, durable at %d, want %d of %d",
			a.Index, a.Term, durable, meta.GetIndex(), meta.GetTerm())
	}
	n.flushed[s.id] = durable
	return nil
}

// Installed implements replica.Snapshots.
func (s snapshots) Installed() error {
	in := s.n.installing[s.id]
	in.installed = true
	s.n.o.Logger.Info("range snapshot installed", "range", s.id, "from", in.from,
		"index", in.msg.GetSnapshot().GetMetadata().GetIndex(), "bytes", in.staging.Bytes())
	return s.n.removeStaged(s.id)
}

// stepArrived hands Raft the snapshots whose state and payload are here. They hold what
// was committed, whoever leads now: the leader of today may vouch for them, so that a
// transfer outlives the reign it began in.
func (n *Node) stepArrived(arrived []*Incoming, now time.Duration) {
	for _, in := range arrived {
		rep := n.byID[in.id].Replica()
		if replica.To(in.msg) != rep.ID() || n.identities[in.id].phase != member {
			continue // For a replica that is lost by now.
		}
		if node, term := rep.Leader(); node != 0 && term > in.msg.GetTerm() {
			lead, _ := rep.Members().On(node)
			from := uint64(lead.ID)
			in.msg.From, in.msg.Term = &from, &term
		}
		n.installing[in.id] = in
		rep.Step(in.msg, now)
	}
}

// settleArrived answers the senders after the pass that took their snapshots.
func (n *Node) settleArrived(arrived []*Incoming) error {
	var errs []error
	for _, in := range arrived {
		delete(n.installing, in.id)
		switch {
		case in.installed:
			n.event(Event{Kind: SnapshotInstalled, Range: in.id, Node: n.o.ID, Replica: n.byID[in.id].Replica().ID()})
			in.done <- nil
		case in.taken: // The pass failed in between: the next start decides.
			in.done <- ErrSnapshotUnused
		default:
			errs = append(errs, n.removeStaged(in.id))
			in.done <- ErrSnapshotUnused
		}
	}
	return errors.Join(errs...)
}

// recoverSnapshot ends what a crash left of a snapshot of the range. lost says that its
// log forgot what it knew when the snapshot was ingested (R4).
func (n *Node) recoverSnapshot(id geo.RangeID, rlog state.RangeLog) (lost, err error) {
	fs := n.o.Engine.FS
	b, err := readSmall(fs, fs.PathJoin(n.stagedDir(id), noteName))
	if err != nil {
		return nil, err
	}
	what, ok := parseNote(b)
	if !ok || what.id != id {
		return nil, n.removeStaged(id)
	}
	applied, err := ranges.AppliedIn(n.state, id)
	if err != nil {
		return nil, err
	}
	if applied.Index != what.index || applied.Term != what.term {
		return nil, n.removeStaged(id) // Not ingested: the old replica, whole.
	}
	hs, _, err := rlog.InitialState()
	if err != nil {
		return nil, err
	}
	if hs.GetTerm() < what.hardTerm || hs.GetTerm() == what.hardTerm && hs.GetVote() != what.vote {
		return fmt.Errorf("%w: term %d, vote %d; had term %d, vote %d",
			replica.ErrLost, hs.GetTerm(), hs.GetVote(), what.hardTerm, what.vote), nil
	}
	switch term, err := rlog.Term(what.index); {
	case err != nil && !errors.Is(err, raft.ErrCompacted) && !errors.Is(err, raft.ErrUnavailable):
		return nil, err
	case err != nil || term != what.term:
		batch := n.log.NewBatch()
		if err := rlog.Reset(batch, what.index, what.term); err != nil {
			return nil, err
		}
		if err := batch.Commit(true); err != nil {
			return nil, err
		}
		n.o.Logger.Info("range snapshot completed after a crash", "range", id, "index", what.index)
	}
	return nil, n.removeStaged(id)
}
