package membership

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/durable"
	"antipode/stamp/feature"
	"antipode/stamp/replica"
)

// Owner is the node that a data folder belongs to: docs/format/owner.md. Data of another node must not be served in
// its name: its replicas would vote and acknowledge under ids that are not theirs (R4).
type Owner struct {
	Location geo.Location
	Node     geo.NodeID
}

// String is the name for people, as node.Name.
func (o Owner) String() string { return fmt.Sprintf("%s-%d", o.Location, o.Node) }

// ErrOwner: a data folder belongs to another node, or its file owner is damaged.
var ErrOwner = errors.New("nothing of it was changed")

// errOwnerBytes: one copy in a file owner is malformed.
var errOwnerBytes = errors.New("file owner is malformed")

const (
	ownerFile    = "owner"
	ownerVersion = 1
	ownerHead    = 1 + 8 + 2
)

func (o Owner) encode() []byte {
	b := binary.LittleEndian.AppendUint64([]byte{ownerVersion}, uint64(o.Node))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(o.Location)))
	b = append(b, o.Location...)
	return binary.LittleEndian.AppendUint32(b, crc.Of(b))
}

func parseOwner(b []byte) (o Owner, err error) {
	if len(b) > 0 && b[0] > ownerVersion && crc.Fits(b) {
		return o, feature.Later("the file owner", uint64(b[0]), ownerVersion)
	}
	if len(b) < ownerHead || b[0] != ownerVersion {
		return o, errOwnerBytes
	}
	n := ownerHead + int(binary.LittleEndian.Uint16(b[9:]))
	if len(b) < n+4 || crc.Of(b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return o, errOwnerBytes
	}
	return Owner{geo.Location(b[ownerHead:n]), geo.NodeID(binary.LittleEndian.Uint64(b[1:]))}, nil
}

// ClaimFolder makes the data folder dir that of the node want, durably, or returns ErrOwner if it is another node's. A
// folder without the file owner is new or of an earlier version: it is claimed unless an identity in it is another
// node's. It is called before anything else is opened or made there; after an error the folder is as it was, apart from
// what a failed write left under owner.new.
func ClaimFolder(fs vfs.FS, dir string, want Owner) error {
	have, b, err := readOwner(fs, dir)
	switch {
	case err != nil:
		return err
	case b == nil:
		if err := disproved(fs, dir, want); err != nil {
			return err
		}
	case have != want:
		return refused(dir, "node "+have.String(), want, "start "+have.String()+" with it")
	}
	return keepOwner(fs, dir, want, b)
}

// ClaimProcess does the same with the folder of the process of one node, below which is LOCATION/NODE, the node's data
// folder. Without it a process in the folder of another one would make an empty data folder beside the other's, and so
// lose its own.
func ClaimProcess(fs vfs.FS, dir string, want Owner) error {
	have, b, err := readOwner(fs, dir)
	switch {
	case err != nil:
		return err
	case b == nil:
		if have, err = nodeBelow(fs, dir, want); err != nil {
			return err
		}
	}
	if have != want {
		return refused(dir, "node "+have.String(), want, "start "+have.String()+" with it")
	}
	return keepOwner(fs, dir, want, b)
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
		n, err := strconv.ParseUint(strings.TrimPrefix(name, "r"), 10, 32)
		if err != nil || identityFile(geo.RangeID(n)) != name {
			continue
		}
		d, err := Load(fs, dir, geo.RangeID(n))
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

// nodeBelow returns whose the folder of a process is that has no file owner: want, unless there is a data folder of
// another node in it and none of want.
func nodeBelow(fs vfs.FS, dir string, want Owner) (Owner, error) {
	if _, err := fs.Stat(fs.PathJoin(dir, string(want.Location), want.String())); err == nil {
		return want, nil
	}
	locations, err := list(fs, dir)
	if err != nil {
		return want, err
	}
	for _, l := range locations {
		if info, err := fs.Stat(fs.PathJoin(dir, l)); err != nil || !info.IsDir() {
			continue
		}
		names, err := list(fs, fs.PathJoin(dir, l))
		if err != nil {
			return want, err
		}
		for _, name := range names {
			id, isNode := strings.CutPrefix(name, l+"-")
			n, err := strconv.ParseUint(id, 10, 64)
			if isNode && err == nil {
				return Owner{geo.Location(l), geo.NodeID(n)}, nil
			}
		}
	}
	return want, nil
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
