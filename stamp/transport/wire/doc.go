// Package wire has the messages between the nodes of a stamp, generated from
// stamp.proto by `make proto`. The messages that carry bulk, Batch and ChunkPart, are
// encoded by stamp/transport itself, to the same bytes.
package wire
