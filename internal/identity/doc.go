// Package identity has what identifies a node to its peers: the name in its certificate, the
// certificate authority of the stamp, and TLS configurations that admit only members of the
// stamp.
//
// Invariant: a connection made with a config of Keyring is between two nodes whose certificates the
// stamp's authority signed. The certificates are valid now, and name the expected stamp, location
// and node. Host names are not checked: a node keeps its name when it moves.
package identity
