package state

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"antipode/stamp/feature"
)

// formatMajorVersion is Pebble's format of the state since feature.Base. It is not pebble.FormatNewest, which rises with
// the library: the store is changed to it when it is opened, and no version before could open it again. A release that
// uses a later one opens with that only in a folder whose floor is the level that brought it (feature.Gate.CheckFolder).
const formatMajorVersion = pebble.FormatValueSeparation

// formatMarker is the name of Pebble's file for it.
const formatMarker = "format-version"

// checkFormat returns feature.ErrLater for a store in a later format, before anything in its folder is looked at: what a later
// version of Pebble wrote looks like damage to this one.
func checkFormat(fs vfs.FS, dir string) error {
	text, err := atomicfs.ReadMarker(fs, dir, formatMarker)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if v, err := strconv.ParseUint(text, 10, 64); err == nil && v > uint64(formatMajorVersion) {
		return fmt.Errorf("state store %s: %w", dir, feature.Later("its format", v, uint64(formatMajorVersion)))
	}
	return nil // What is no number is for Pebble to refuse.
}
