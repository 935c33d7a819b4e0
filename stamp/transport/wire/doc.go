// Package wire is what the nodes of a stamp say to each other, generated from
// stamp.proto by `make proto`. The messages that carry bulk, Batch and ChunkPart, are
// encoded by stamp/transport itself, to the same bytes.
package wire
