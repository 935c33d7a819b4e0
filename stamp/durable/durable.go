// Package durable writes small files and folders so that a crash at any moment leaves the old
// or the new, whole.
package durable

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// MkdirAll makes dir and its parents, and syncs the parents: a folder whose entry is lost in
// a crash takes every synced file in it along.
func MkdirAll(fs vfs.FS, dir string) error {
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for parent := fs.PathDir(dir); ; parent = fs.PathDir(parent) {
		if err := SyncDir(fs, parent); err != nil {
			return fmt.Errorf("sync folder %s: %w", parent, err)
		}
		if parent == fs.PathDir(parent) {
			return nil
		}
	}
}

// SyncDir makes the entries of a folder durable.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Write writes a small file that does not exist, and makes it and its name durable. A crash
// may leave a part of it.
func Write(fs vfs.FS, dir, name string, data []byte) error {
	f, err := fs.Create(fs.PathJoin(dir, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return SyncDir(fs, dir)
}

// Replace is Write for a file that may exist: it changes in one step.
func Replace(fs vfs.FS, dir, name string, data []byte) error {
	tmp := name + ".new"
	if err := Write(fs, dir, tmp, data); err != nil {
		return err
	}
	if err := fs.Rename(fs.PathJoin(dir, tmp), fs.PathJoin(dir, name)); err != nil {
		return err
	}
	return SyncDir(fs, dir)
}

// Remove removes a file that may not exist; the removal is durable when it returns.
func Remove(fs vfs.FS, dir, name string) error {
	if err := fs.Remove(fs.PathJoin(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return SyncDir(fs, dir)
}

// Read reads a small file; nil if it does not exist.
func Read(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

// SecondCopy is where a file of Twice has its contents a second time, in other blocks of the
// medium than the first: one damaged block costs nothing.
const SecondCopy = 8 << 10

// Twice returns the bytes of a file that holds one two times.
func Twice(one []byte) []byte {
	b := make([]byte, SecondCopy, SecondCopy+len(one))
	copy(b, one)
	return append(b, one...)
}

// ParseTwice reads a file of Twice by the first copy that parse accepts. A file of a single
// copy is read as well: files were written so once.
func ParseTwice[T any](b []byte, parse func([]byte) (T, error)) (T, error) {
	v, err := parse(b)
	if err != nil && len(b) > SecondCopy {
		return parse(b[SecondCopy:])
	}
	return v, err
}
