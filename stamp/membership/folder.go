package membership

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
)

// ErrStamp: a node has a folder of another stamp than this one, which has the same names.
var ErrStamp = errors.New("they are of two installations, and neither takes anything from the other")

// Folder is the data folder of a node that runs, and knows the stamp that it is of. Its methods may be called
// concurrently.
type Folder struct {
	fs  vfs.FS
	dir string

	mu    sync.Mutex
	owner Owner
	// refused are the nodes that have another stamp, with the line about each.
	refused map[geo.NodeID]string
}

// ClaimFolder is Claim for the data folder of a node.
func ClaimFolder(fs vfs.FS, dir string, location geo.Location, id geo.NodeID) (*Folder, error) {
	o, err := claim(fs, dir, Owner{Kind: Data, Location: location, Node: id})
	return &Folder{fs: fs, dir: dir, owner: o, refused: map[geo.NodeID]string{}}, err
}

// Stamp returns the stamp that the folder is of; zero while that is not known: until all nodes of the stamp have
// joined, and where the node was rebuilt under a version that kept no id.
func (f *Folder) Stamp() StampID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stamp()
}

func (f *Folder) stamp() StampID {
	if f.owner.Stamp.IsZero() {
		if id := stampOf(f.fs, f.dir, f.owner.Node); !id.IsZero() {
			_ = f.keep(id) // It is computed again as long as it is not kept.
			return id
		}
	}
	return f.owner.Stamp
}

// keep makes the id durable.
func (f *Folder) keep(id StampID) error {
	o := f.owner
	o.Stamp = id
	if err := keepOwner(f.fs, f.dir, o, nil); err != nil {
		return err
	}
	f.owner = o
	return nil
}

// Meet compares the stamp with that of another node of the location, which may not be known; it is called before a
// message of that node is taken. ErrStamp: it is another one, and nothing may go to the node or come from it. A folder
// in which no replica took part yet becomes one of the other node's stamp, durably.
func (f *Folder) Meet(other geo.NodeID, theirs StampID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	ours := f.stamp()
	if ours.IsZero() && !theirs.IsZero() && !takesPart(f.fs, f.dir) {
		return f.keep(theirs)
	}
	if ours.IsZero() || theirs.IsZero() || ours == theirs {
		delete(f.refused, other)
		return nil
	}
	name := Owner{Location: f.owner.Location, Node: other}
	err := fmt.Errorf("node %s has a folder of stamp %s and node %s one of stamp %s: %w; give the one "+
		"that the third node refuses too the folder that it had in this installation, or an empty one (runbook wrong-folder)",
		f.owner, ours.Short(), name, theirs.Short(), ErrStamp)
	f.refused[other] = err.Error()
	return err
}

// Refused returns what Meet said of nodes that it refused and has not met since with the right stamp, in their order.
func (f *Folder) Refused() (lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(f.refused)) {
		lines = append(lines, f.refused[id])
	}
	return lines
}
