package rig

import (
	"os"
	"path/filepath"
	"time"
)

// SetClock sets how far the wall clock of a node is ahead of the machine's. Only a binary that is built with the tag
// steppedclock follows it, within some 10 ms, and keeps it over a restart.
func (r *Rig) SetClock(name string, ahead time.Duration) error {
	file := filepath.Join(r.opts.Dir, name, "clock-offset")
	if err := os.WriteFile(file+".new", []byte(ahead.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file) // So that a node never reads a part of it.
}
