// Package catalog defines accounts and their named containers (tables, blob containers and
// queues) as the catalog range keeps them.
//
// Invariant (R8): a name leads to at most one generation, and a generation never
// comes back: it is the epoch and commit time of its creation.
package catalog
