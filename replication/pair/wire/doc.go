// Package wire has the messages of the calls between two locations, generated from
// pair.proto by `make proto`.
package wire
