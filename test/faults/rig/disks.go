package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"antipode/test/devproc"
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

// KeepDisks kills processes, all before it copies their disks into new folders of dir, and starts them again. It returns
// the copies by name.
func (r *Rig) KeepDisks(dir string, names ...string) (copies map[string]string, err error) {
	copies = map[string]string{}
	for _, name := range names {
		if err := r.Kill(name); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		copies[name] = filepath.Join(dir, name)
		if err := r.CopyDisks(name, copies[name]); err != nil {
			return nil, fmt.Errorf("copy the disks of %s: %w", name, err)
		}
	}
	return copies, r.LaunchAll(names...)
}

// SetBack kills all processes of a location, gives some of them the disks of KeepDisks, and starts all.
func (r *Rig) SetBack(all []string, copies map[string]string) error {
	for _, name := range all {
		if err := r.Kill(name); err != nil {
			return err
		}
	}
	for name, from := range copies {
		if err := r.SwapDisks(name, from); err != nil {
			return err
		}
	}
	return r.LaunchAll(all...)
}

// LaunchAll starts processes that do not run.
func (r *Rig) LaunchAll(names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, r.Launch(name))
	}
	return errors.Join(errs...)
}

// ExchangeDisks gives each of two processes that do not run the disks of the other.
func (r *Rig) ExchangeDisks(a, b string) error {
	aside := r.data(a) + ".aside"
	for _, move := range [][2]string{{r.data(a), aside}, {r.data(b), r.data(a)}, {aside, r.data(b)}} {
		if err := os.Rename(move[0], move[1]); err != nil {
			return err
		}
	}
	return nil
}

// LaunchEnds starts a process that has to end by itself before ctx ends, and returns the end of what it printed. A process
// that goes on is killed.
func (r *Rig) LaunchEnds(ctx context.Context, name string) (output string, err error) {
	child, err := devproc.Run(name, r.log(name), r.opts.Binary, r.commands[name].Args...)
	if err != nil {
		return "", err
	}
	select {
	case <-child.Exited():
		return child.Output(), nil
	case <-ctx.Done():
		return "", errors.Join(fmt.Errorf("%s goes on: %w\n%s", name, ctx.Err(), child.Output()), child.Kill9())
	}
}
