// Package wire has the messages of the calls between two locations, generated from
// link.proto by `make proto`.
package wire
