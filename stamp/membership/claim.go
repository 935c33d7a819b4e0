package membership

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/durable"
	"antipode/stamp/replica"
)

// Claim makes the folder dir that of want, durably, or returns ErrOwner if it is another's. It is called before anything
// else is opened or made there; after an error the folder is as it was, apart from what a failed write left under
// owner.new.
//
// A folder without the file owner is new or of an earlier version. It is claimed unless it shows something else: the data
// folder of a node has no identity that another node must have, and the folder of a process, below which is
// LOCATION/NODE, no data folder of another node. Without the latter a process in the folder of another one would make an
// empty data folder beside the other's, and so lose its own.
//
// A stamp that want does not name is taken from the file, or from what is in the data folder of a node.
func Claim(fs vfs.FS, dir string, want Owner) error {
	_, err := claim(fs, dir, want)
	return err
}

// Check returns what Claim would of a folder that has a file owner, and writes nothing.
func Check(fs vfs.FS, dir string, want Owner) error {
	have, b, err := readOwner(fs, dir)
	if err != nil || b == nil {
		return err
	}
	return want.fits(dir, have)
}

// claim returns what the file has in the end.
func claim(fs vfs.FS, dir string, want Owner) (Owner, error) {
	have, b, err := readOwner(fs, dir)
	switch {
	case err != nil:
		return want, err
	case b != nil:
		err = want.fits(dir, have)
	case want.Kind == Data:
		err = disproved(fs, dir, want)
	case want.Kind == Process:
		err = notBelow(fs, dir, want)
	}
	if err != nil {
		return want, err
	}
	if !have.Stamp.IsZero() {
		want.Stamp = have.Stamp
	}
	if want.Stamp.IsZero() && want.Kind == Data {
		want.Stamp = stampOf(fs, dir, want.Node)
	}
	return want, keepOwner(fs, dir, want, b)
}

// fits returns ErrOwner if a folder is not that of o, since by its file it is that of have.
func (o Owner) fits(dir string, have Owner) error {
	byNumber := plantedbugs.Planted(plantedbugs.FolderByNumber) && have.Kind == o.Kind && have.Node == o.Node
	if plantedbugs.Planted(plantedbugs.FolderUnclaimed) || byNumber {
		return nil
	}
	mine := have.Kind == o.Kind || have.Kind == Unstated && (o.Kind == Data || o.Kind == Process)
	switch {
	case !mine || have.Location != o.Location || have.Node != o.Node:
		if have.String() == o.String() { // The folders of a node and of its process.
			return refused(dir, "another kind of folder of "+have.String()+", see docs/format/owner.md", o, "correct the path")
		}
		return refused(dir, have.of(), o, "start "+have.String()+" with it")
	case !have.Stamp.IsZero() && !o.Stamp.IsZero() && have.Stamp != o.Stamp:
		return refused(dir, have.of()+" of another installation, stamp "+have.Stamp.Short(), o, "this one is stamp "+o.Stamp.Short()+": keep the folder for the other")
	}
	return nil
}

// readOwner also returns the bytes of the file; nil if there is none.
func readOwner(fs vfs.FS, dir string) (o Owner, b []byte, err error) {
	path := fs.PathJoin(dir, ownerFile)
	if b, err = durable.Read(fs, path); err != nil || b == nil {
		return o, nil, err
	}
	o, err = durable.ParseTwice(b, parseOwner)
	if errors.Is(err, errOwnerBytes) {
		err = fmt.Errorf("the file %s is damaged, twice, so whose data folder this is cannot be read: %w; if you know whose it is, "+
			"remove the file and start that node: it writes the file again (runbook wrong-folder)", path, ErrOwner)
	} else if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return o, b, err
}

// keepOwner writes the file, unless it has both copies whole: b is what it has.
func keepOwner(fs vfs.FS, dir string, o Owner, b []byte) error {
	file := durable.Twice(o.encode())
	if bytes.Equal(b, file) {
		return nil
	}
	if err := durable.MkdirAll(fs, dir); err != nil {
		return err
	}
	return durable.Replace(fs, dir, ownerFile, file)
}

// disproved returns ErrOwner if an identity of a replica in a folder is one that want cannot have. It cannot disprove
// the same node of another location: no identity names the location.
func disproved(fs vfs.FS, dir string, want Owner) error {
	names, err := list(fs, fs.PathJoin(dir, "replicas"))
	if err != nil {
		return err
	}
	for _, name := range names {
		id, is := identityOf(name)
		if !is {
			continue
		}
		d, err := Load(fs, dir, id)
		if err != nil || d == nil {
			continue // What cannot be read proves nothing, and stops the start later on.
		}
		// Later ids may be the number of any node.
		first := d.Phase == Joining || d.Phase == Forgotten
		if _, peer := d.Peers[want.Node]; peer || first && d.Replica != replica.FirstID(want.Node) {
			return refused(dir, "another node, as "+fs.PathJoin("replicas", name)+" shows", want, "start the other node with it")
		}
	}
	return nil
}

// identityOf returns the range of which a file in the folder replicas is the identity.
func identityOf(name string) (id geo.RangeID, is bool) {
	n, err := strconv.ParseUint(strings.TrimPrefix(name, "r"), 10, 32)
	id = geo.RangeID(n)
	return id, err == nil && identityFile(id) == name
}

// notBelow returns ErrOwner if there is a data folder in the folder of a process that is not that of want: those of
// antipode dev have the names that those of processes have, and it has several.
func notBelow(fs vfs.FS, dir string, want Owner) error {
	locations, err := list(fs, dir)
	if err != nil {
		return err
	}
	slices.Sort(locations)
	own, other := false, Owner{}
	for _, l := range locations {
		if info, err := fs.Stat(fs.PathJoin(dir, l)); err != nil || !info.IsDir() {
			continue
		}
		names, err := list(fs, fs.PathJoin(dir, l))
		if err != nil {
			return err
		}
		slices.Sort(names)
		for _, name := range names {
			id, isNode := strings.CutPrefix(name, l+"-")
			n, err := strconv.ParseUint(id, 10, 64)
			switch have := (Owner{Kind: want.Kind, Location: geo.Location(l), Node: geo.NodeID(n)}); {
			case !isNode || err != nil:
			case have.String() == want.String():
				own = true
			default:
				other = have
			}
		}
	}
	switch {
	case other.Node == 0:
		return nil
	case own:
		return refused(dir, "several nodes, "+other.String()+" among them, as that of antipode dev does", want, "start antipode dev with it")
	}
	return refused(dir, other.of(), want, "start "+other.String()+" with it")
}

// list returns what is in a folder; nothing if there is none.
func list(fs vfs.FS, dir string) ([]string, error) {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// refused is ErrOwner in one line, with the remedy.
func refused(dir, of string, want Owner, remedy string) error {
	return fmt.Errorf("the data folder %s belongs to %s, not to %s: %w; %s, or give %s its own folder (runbook wrong-folder)",
		dir, of, want, ErrOwner, remedy, want)
}
