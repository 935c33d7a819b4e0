//go:build !linux

package rawfile

// Only Linux has O_DIRECT in a form that was tried.
var system FS //nolint:gochecknoglobals // Immutable.
