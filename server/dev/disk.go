package dev

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/stamp/room"
)

// startBytes must be free for new locations beside the reserve: what six nodes and their stream make before the first write.
const startBytes = 128 << 20

// checkDisk refuses new locations on a disk that has no room for their first writes: their nodes would take none, and the
// start would wait for ever. Locations that are there start on such a disk, since they serve reads and deletions.
func checkDisk(o ClusterOptions, made bool) error {
	free, err := o.free(o.Dir)
	if err != nil {
		return nil //nolint:nilerr // As room.Watch: a file system that does not report its free space counts as having room.
	}
	switch {
	case made && free < room.ReserveBytes+startBytes:
		return fmt.Errorf("the disk of %s has %d MiB free, and new locations need %d: free some, or choose a folder on another disk with --data",
			o.Dir, free>>20, (room.ReserveBytes+startBytes)>>20)
	case free < room.ReserveBytes:
		o.Logger.Warn("the disk of the data folder is nearly full, so no writes are taken: free some",
			"folder", o.Dir, "free_mib", free>>20, "needed_mib", room.ReserveBytes>>20)
	}
	return nil
}

// freeBytes is what is free on the disk of a folder for this user.
func freeBytes(dir string) (uint64, error) {
	usage, err := vfs.Default.GetDiskUsage(dir)
	return usage.AvailBytes, err
}
