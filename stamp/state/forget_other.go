//go:build !linux

package state

import "github.com/cockroachdb/pebble/v2/vfs"

// Forget does nothing here: what is read may come from the kernel's cache.
func Forget(vfs.File) {}
