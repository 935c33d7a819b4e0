// Package identity says who a node is to its peers, and proves it: the name in its
// certificate, the stamp's own certificate authority, and TLS configurations that
// let nobody else in.
//
// Invariant: a connection made with a config of Keyring is between two nodes whose
// certificates the stamp's authority signed, that are valid now, and that name the
// expected stamp, location and node. The host name plays no part: a node keeps its
// name when it moves.
package identity
