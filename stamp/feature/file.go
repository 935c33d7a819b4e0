package feature

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/stamp/durable"
)

// The file level in a node's folder: docs/format/level.md.
const (
	fileName   = "level"
	filePrefix = "antipode level "
)

// ErrFile: the file level is damaged.
var ErrFile = errors.New("the file " + fileName + " is damaged")

// CheckFolder returns why a program may not open the stores in a node's folder: ErrLater, or ErrFile. It raises the gate's
// floor to that of the folder.
func (g *Gate) CheckFolder(fs vfs.FS, dir string) error {
	b, err := durable.Read(fs, fs.PathJoin(dir, fileName))
	if err != nil || b == nil {
		return err
	}
	digits, ok := strings.CutPrefix(strings.TrimSuffix(string(b), "\n"), filePrefix)
	n, err := strconv.ParseUint(digits, 10, 32)
	if !ok || err != nil {
		return fmt.Errorf("%w: %s has %q: copy it from another node of the location, or write the line %q, where N is the floor that antipodectl status -o json has",
			ErrFile, fs.PathJoin(dir, fileName), b, filePrefix+"N")
	}
	if err := g.Check(Level(n)); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	g.Raise(Level(n), Base)
	return nil
}

// KeepFolder writes the floor into a node's folder, if it is above Base. It is called with a folder that CheckFolder let
// pass.
func (g *Gate) KeepFolder(fs vfs.FS, dir string) error {
	floor := g.Floor()
	if floor == Base {
		return nil
	}
	return durable.Replace(fs, dir, fileName, fmt.Appendf(nil, "%s%d\n", filePrefix, floor))
}
