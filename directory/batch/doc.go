// Package batch runs steps of many accounts side by side, in one goroutine, so that their commands
// of a range share a group and their calls of the other location travel in one.
//
// Invariant: a step sees its own answers alone, in the order in which it asked; what becomes of the
// command or call of one step changes nothing for another.
package batch
