// Package load drives a store with clients that write, and checks what the store
// promised them: [Load.Run] writes under kills and lists all the while, [Load.Resolve]
// and [Load.Final] read and list everything at the primary and at the secondary, and
// a [Sampler] looks all the time for a Last Sync Time that claims too much.
//
// What is written: entities; groups of entities that change in one transaction; blobs
// small and of 4 MiB, and their metadata; blobs in blocks, edited by new lists and
// resumed after a crash; writes whose condition cannot hold; and where the options ask for it, append blobs, each of
// them by several clients, snapshots of blobs that are written meanwhile, and copies of such blobs, onto names that
// several clients copy to.
//
// Invariant: a key has one client, and the oracle records every outcome of every write
// before the client's next one. Append blobs are no keys: [oracle.Log] checks them, [oracle.Snapshots] the snapshots
// of keys, and [oracle.Copies] the copies.
package load
