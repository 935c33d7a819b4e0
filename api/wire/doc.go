// Package wire reads and writes the parts of requests and answers that look the same in
// all services: percent-encoding, dates, entity tags, Base64, metadata, pages of listings,
// XML text and the multipart body of a batch. It knows no request: package protocol does,
// and is above it.
//
// Invariant: a value has one form. What a reader here accepts and a writer here prints
// again is the same text, or a text that means the same to every reader.
package wire
