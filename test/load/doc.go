// Package load drives a store with clients that write, and checks what the store
// promised them: [Load.Run] writes under kills, [Load.Settle] and [Load.Final]
// read everything back at the primary and at the secondary, and a [Sampler]
// looks all the time for a Last Sync Time that claims too much.
//
// Invariant: a key has one client, and every outcome of every write is told to
// the oracle before the client's next one.
package load
