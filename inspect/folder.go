package inspect

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrReadOnly: something tried to change a folder that is only looked at.
var ErrReadOnly = errors.New("inspect: the folder is only read")

// Node is the folder of one node that does not run.
type Node struct {
	Name string
	Dir  string
	fs   vfs.FS
}

// Nodes finds the folders of nodes in dir: dir itself, a folder of a location, or a data
// folder with locations. They are in order of their names. The caller sees to it that no
// process uses them.
func Nodes(fs vfs.FS, dir string) ([]Node, error) {
	if _, err := fs.List(dir); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", dir, err)
	}
	for depth := range 3 {
		if found := nodesBelow(fs, dir, depth); len(found) > 0 {
			slices.SortFunc(found, func(a, b Node) int { return strings.Compare(a.Dir, b.Dir) })
			return found, nil
		}
	}
	return nil, fmt.Errorf("%s holds no node: a node's folder has log, state and extents in it", dir)
}

func nodesBelow(fs vfs.FS, dir string, depth int) (out []Node) {
	if depth == 0 {
		for _, sub := range []string{"log", "state", "extents"} {
			if info, err := fs.Stat(fs.PathJoin(dir, sub)); err == nil && info.IsDir() {
				return []Node{{Name: fs.PathBase(dir), Dir: dir, fs: readOnly{fs}}}
			}
		}
		return nil
	}
	names, err := fs.List(dir)
	if err != nil {
		return nil // A file.
	}
	for _, name := range names {
		out = append(out, nodesBelow(fs, fs.PathJoin(dir, name), depth-1)...)
	}
	return out
}

// readOnly is a file system that refuses every change. Its locks lock nothing: the code that
// opens a folder with it has made sure that nobody else uses it.
type readOnly struct{ vfs.FS }

func refuse(verb, name string) error { return fmt.Errorf("%w: %s %s", ErrReadOnly, verb, name) }

func (readOnly) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, refuse("create", name)
}

func (readOnly) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, refuse("write", name)
}

func (readOnly) ReuseForWrite(name, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, refuse("write", name)
}
func (readOnly) Link(name, _ string) error                 { return refuse("link", name) }
func (readOnly) Remove(name string) error                  { return refuse("remove", name) }
func (readOnly) RemoveAll(name string) error               { return refuse("remove", name) }
func (readOnly) Rename(name, _ string) error               { return refuse("rename", name) }
func (readOnly) MkdirAll(name string, _ os.FileMode) error { return refuse("make", name) }
func (readOnly) Lock(string) (io.Closer, error)            { return io.NopCloser(nil), nil }
