// Package redundancy changes the redundancy of an account under load, against processes of both locations: an oracle
// outside them finds every acknowledged write at the primary and, where it may read there, at the secondary, and both
// copies agree. While the copy of an account is made, the leaders of either side are killed, and the copy goes on
// where it was. Accounts move by planned failovers, are promoted when the primary was killed, and while it stands still.
package redundancy
