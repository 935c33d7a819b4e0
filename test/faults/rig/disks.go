package rig

import (
	"os"
	"path/filepath"
)

func (r *Rig) data(name string) string { return filepath.Join(r.opts.Dir, name, "data") }

// CopyDisks copies what a process that does not run has on its disks into a new folder.
func (r *Rig) CopyDisks(name, to string) error { return os.CopyFS(to, os.DirFS(r.data(name))) }

// SwapDisks gives a process that does not run the disks of CopyDisks. Those that it had are lost.
func (r *Rig) SwapDisks(name, from string) error {
	if err := os.RemoveAll(r.data(name)); err != nil {
		return err
	}
	return os.Rename(from, r.data(name))
}
