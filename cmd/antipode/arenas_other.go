//go:build !cgo || !linux

package main

// boundArenas does nothing: see the one for Linux.
func boundArenas() bool { return false }

// trimArenas has nothing to give back.
func trimArenas() bool { return false }
