package sim

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/stamp/membership"
)

// In one run of foldersEvery nodes are started in folders that are not theirs: volumes of the two locations, or of two nodes of
// one, are swapped, or one is a copy of another. Such a start must be refused, and change nothing: each node goes on in its own
// folder, with all that it owes. Where one is not refused it runs, and what is promised of it is found broken.
const (
	foldersEvery = 10
	mixedUp      = 1
)

// planFolders draws whether the folders of a run are mixed up, drawn by itself: the rest is played as without.
func (s *Sim) planFolders(seed uint64) {
	if seed%foldersEvery == mixedUp {
		s.mixes = rand.New(rand.NewPCG(seed, 0x6d697865))
	}
}

// startFolders has folders mixed up from time to time while there are faults.
func (s *Sim) startFolders() {
	if s.mixes == nil {
		return
	}
	s.after(time.Duration(s.mixes.Int64N(int64(2*time.Second))), func() {
		if s.faulty {
			s.mixFolders()
			s.startFolders()
		}
	})
}

// mixFolders ends two nodes and starts them in each other's folder, or one in a copy of the other's.
func (s *Sim) mixFolders() {
	l := s.locations[s.mixes.IntN(2)]
	m := l.members[s.mixes.IntN(len(l.members))]
	other := l.members[s.mixes.IntN(len(l.members))]
	if far := l.far.members; s.mixes.IntN(3) > 0 { // The same number: no identity of a replica shows which of the two it is of.
		other = far[min(int(m.id)-1, len(far)-1)]
	}
	swaps := s.mixes.IntN(2) == 0
	if m == other || m.n == nil || other.n == nil || l.recovery != nil || other.l.recovery != nil {
		return
	}
	m.crash()
	theirs := other.synced()
	if swaps {
		other.crash()
		theirs = other.fs
	}
	own := m.fs
	s.counts.FoldersMixed++
	s.event("%s node %d starts in the folder of %s node %d", l.name, m.id, other.l.name, other.id)
	if refused := m.openOther(theirs); refused {
		m.fs = own
	}
	if swaps {
		s.event("%s node %d starts in the folder of %s node %d", other.l.name, other.id, l.name, m.id)
		if refused := other.openOther(own); refused {
			other.fs = theirs
		}
	}
}

// openOther starts the node in the folder of another one. It has its own before it is started again.
func (m *member) openOther(theirs *vfs.MemFS) (refused bool) {
	m.fs, m.foreign = theirs, true
	m.open()
	m.foreign = false
	return m.n == nil
}

// refusesFolder reports whether the node was started in the folder of another one, and says so.
func (m *member) refusesFolder(err error) bool {
	return m.foreign && errors.Is(err, membership.ErrOwner)
}
