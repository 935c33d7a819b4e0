package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
	"antipode/stamp/node"
	"antipode/stamp/seglog"
	"antipode/stamp/state"
)

// damageKind is what a disk loses.
type damageKind int

const (
	logGone damageKind = iota
	logFlipped
	stateGone
	stateFlipped
	diskGone
	// logCorrupted: while the node runs.
	logCorrupted
	damageKinds
)

// damage makes a node's disk lose durable bytes, mostly while the node is down: one node at a
// time, and only while the others hold every acknowledged write. The node has to detect it and to
// return under another id (R4).
func (s *Sim) damage(m *member) {
	l := m.l
	if m.n == nil || m.killed != nil || l.untrusted() != "" || !l.holdsAcked() ||
		slices.ContainsFunc(l.members, func(m *member) bool { return m.damaged }) {
		return
	}
	what := damageKind(s.rng.IntN(int(damageKinds)))
	if what == logCorrupted {
		s.corruptLog(m)
		return
	}
	m.loseDisk(what)
}

// loseDisk ends the node and makes its disk lose what was durable.
func (m *member) loseDisk(what damageKind) {
	s, l := m.l.s, m.l
	m.damaged = true
	if what == logGone || what == diskGone {
		for _, id := range m.has(everyRange[:]) {
			m.forgot[id] = m.n.Range(id).Replica().ID()
		}
	}
	m.die(m.crashed())
	clear(m.owes)
	var err error
	switch what {
	case logGone:
		s.counts.LogDamaged++
		s.event("%s node %d: log gone", l.name, m.id)
		err = m.fs.RemoveAll(logDir)
	case logFlipped:
		s.counts.LogDamaged++
		_, err = m.flipLog()
	case stateGone:
		s.counts.StateDamaged++
		s.event("%s node %d: state gone", l.name, m.id)
		err = m.fs.RemoveAll(stateDir)
	case stateFlipped:
		s.counts.StateDamaged++
		s.event("%s node %d: bits of the state flipped", l.name, m.id)
		err = m.flipState()
	case diskGone:
		s.counts.NodeEmptied++
		s.event("%s node %d: disk gone", l.name, m.id)
		m.owesChunks = nil
		clear(m.corrupted)
		err = m.fs.RemoveAll(dataDir)
	}
	if err != nil {
		s.fail(fmt.Errorf("%w: damage: %w", ErrStore, err))
	}
}

// corruptLog flips a bit in the log of a running node, below the mark that it knows to be
// durable. The node detects it by its scrub, by a read, or at its next start.
func (s *Sim) corruptLog(m *member) {
	for range 10 {
		undo, err := m.flipLog()
		if err != nil {
			s.fail(fmt.Errorf("%w: damage: %w", ErrStore, err))
			return
		}
		if m.logCorrupt() {
			s.counts.LogCorrupted++
			m.damaged, m.logCorrupted = true, true
			clear(m.owes)
			return
		}
		s.event("%s node %d: flipped back: nothing reads it", m.l.name, m.id)
		if err := undo(); err != nil {
			s.fail(fmt.Errorf("%w: damage: %w", ErrStore, err))
			return
		}
	}
}

// logCorrupt reports whether opening the node's log now would find it damaged.
func (m *member) logCorrupt() bool {
	log, err := seglog.Open(logDir, m.lookOptions())
	if err == nil {
		err = log.Close()
	}
	return errors.Is(err, state.ErrLogCorrupt)
}

// untrusted returns which replica is lost, away or incomplete; "" if each range has a leader with
// all its voters in sync.
func (l *location) untrusted() string {
	for _, id := range everyRange {
		lead := l.newest(id)
		if lead == nil {
			return fmt.Sprintf("r%d has no leader", id)
		}
		rep := lead.n.Range(id).Replica()
		if n := rep.InSync(); n < len(l.placement.Of(id)) {
			return fmt.Sprintf("r%d: %d replicas in sync: %s", id, n, l.positions(id))
		}
		for _, m := range l.holders(id) {
			member, ok := rep.Members().On(m.id)
			switch {
			case !ok || member.Learner:
				return fmt.Sprintf("r%d: no voter on node %d", id, m.id)
			case m.n == nil:
				return fmt.Sprintf("node %d is down", m.id)
			case m.n.Range(id).Replica().Lost() != nil || m.n.Range(id).Replica().ID() != member.ID:
				return fmt.Sprintf("r%d: replica %d is not on node %d", id, member.ID, m.id)
			}
		}
	}
	return ""
}

// positions describes, for the report of a broken promise, how far each replica of a range is.
func (l *location) positions(id geo.RangeID) string {
	var b strings.Builder
	for _, m := range l.holders(id) {
		if m.n != nil {
			rep := m.n.Range(id).Replica()
			_, term := rep.Leader()
			fmt.Fprintf(&b, "[node %d, replica %d, term %d, at #%d] ", m.id, rep.ID(), term, m.applied[id])
		}
	}
	return b.String()
}

// holdsAcked reports whether every replica has applied every write that was acknowledged.
func (l *location) holdsAcked() bool {
	for _, o := range l.s.ops {
		if o.l != l || o.outcome != acked {
			continue
		}
		for _, m := range l.holders(o.rangeID) {
			if m.applied[o.rangeID] < o.index {
				return false
			}
		}
	}
	return true
}

// forgive marks rebuilt nodes as undamaged again, so that the checks cover them.
func (l *location) forgive() {
	l.endRecovery()
	for _, m := range l.members {
		if m.damaged && l.untrusted() == "" && l.holdsAcked() && (!m.logCorrupted || !m.logCorrupt()) {
			m.damaged, m.logCorrupted = false, false
			l.s.event("%s node %d is whole again", l.name, m.id)
		}
	}
}

// onEvent counts what happens to replicas.
func (m *member) onEvent(e node.Event) {
	s := m.l.s
	s.event("%s node %d: r%d %s: replica %d on node %d", m.l.name, m.id, e.Range, e.Kind, e.Replica, e.Node)
	switch e.Kind {
	case node.ChunksRepaired:
		s.counts.Repaired++
	case node.WritesSlowed:
		s.counts.WritesSlowed++
	case node.ClockOff:
		s.counts.ClockOff++
	case node.LeaderTransferred:
		s.counts.Transferred++
	case node.StoreDamaged:
		s.counts.StoreQuarantined++
	case node.ReplicaLost:
		s.counts.ReplicaLost++
	case node.ReplicaRebuilding:
		s.counts.Rebuilding++
		m.applied[e.Range] = 0
		m.l.recovery.rebuilds(m, e.Range)
	case node.ReplicaPromoted:
		s.counts.Promoted++
		if n := geo.NodeID(e.Replica); n <= geo.NodeID(len(m.l.members)) && n != e.Node {
			s.counts.PromotedForeign++
		}
	}
}

// findSnapshots finds ranges whose state was replaced by a snapshot, and checks it.
func (m *member) findSnapshots() {
	for _, id := range m.has(everyRange[:]) {
		index := m.n.Range(id).Machine.AppliedState().Index
		if index <= m.applied[id] || m.n.Range(id).Replica().Lost() != nil {
			continue // A lost one may still have the state that is being removed.
		}
		s := m.l.s
		s.counts.Snapshot++
		s.event("%s node %d r%d: snapshot in place of #%d to #%d", m.l.name, m.id, id, m.applied[id], index)
		m.applied[id] = index
		m.fed = m.fed || id == geo.FirstRange(geo.Blob)
		m.l.history[id].checkMember(m)
		m.lookAt(id)
	}
}

// flipLog flips a bit of the log, where it is not zeros. undo flips it back.
func (m *member) flipLog() (undo func() error, err error) {
	undo = func() error { return nil }
	s := m.l.s
	names, err := m.fs.List(logDir)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for range 1000 {
		path := logDir + "/" + names[s.rng.IntN(len(names))]
		b, err := readFile(m.fs, path)
		if err != nil || len(b) == 0 {
			return undo, err
		}
		at := s.rng.IntN(len(b))
		if b[at] == 0 {
			continue
		}
		s.event("%s node %d: bit of %s flipped at %d", m.l.name, m.id, path, at)
		undo = func() error { return flip(m.fs, path, at, b[at]^1) }
		return undo, flip(m.fs, path, at, b[at])
	}
	return undo, nil
}

// flipEvery is less than a block of a table has.
const flipEvery = 1024

// flipState flips a bit in every KiB of every table of the state store: which there are depends on how far Pebble was
// in the background, and which blocks a node reads as it opens is its own business.
func (m *member) flipState() error {
	names, err := m.fs.List(stateDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := stateDir + "/" + name
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		b, err := readFile(m.fs, path)
		if err != nil {
			return err
		}
		for at := min(len(b)/3, flipEvery/2); at < len(b); at += flipEvery {
			if err := flip(m.fs, path, at, b[at]); err != nil {
				return err
			}
		}
	}
	return nil
}

// find finds where bytes lie in the files of a folder; path is empty for nowhere, and for
// more than one place: a store that was opened after a crash may hold a chunk twice.
func find(fs *vfs.MemFS, dir string, data []byte) (path string, at int, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return "", 0, err
	}
	slices.Sort(names)
	for _, name := range names {
		b, err := readFile(fs, dir+"/"+name)
		if err != nil {
			return "", 0, err
		}
		switch n := bytes.Count(b, data); {
		case n > 1 || n == 1 && path != "":
			return "", 0, nil
		case n == 1:
			path, at = dir+"/"+name, bytes.Index(b, data)
		}
	}
	return path, at, nil
}

// flip flips the lowest bit of a byte that is was, durably.
func flip(fs *vfs.MemFS, path string, at int, was byte) error {
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte{was ^ 1}, int64(at))
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
