// Package faults breaks a deployment of real processes, six nodes and the front door, and
// checks what it promises all the while: nothing acknowledged is lost, no read is stale,
// Last Sync Time claims nothing that is not there, and writes come back by themselves.
//
// `make faults` runs it longer than `make test` does.
package faults
