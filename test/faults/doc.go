// Package faults causes faults in a deployment of real processes, six nodes and the gateway,
// and checks its promises meanwhile: nothing acknowledged is lost, no read is stale, Last
// Sync Time claims nothing that is not there, and writes recover without help.
//
// `make faults` runs it longer than `make test` does.
package faults
