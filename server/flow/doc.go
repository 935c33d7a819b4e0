// Package flow says how far the secondary of an account is, and what holds it back. Source, Receiver and
// Add make a wire.Flow of what one location knows of the account's streams; Merge makes one of those of its
// processes; Lag and Why draw conclusions from the flows of both locations.
//
// Invariant: nothing here asks, waits or reads a clock. The answers follow from the values that are
// given, so that servers and the simulator come to the same ones.
package flow
