package load

import (
	"errors"

	"antipode/geo"
)

// Keys say what they are by their first letter: "e/pk/rk" is an entity, "g/pk/name"
// a group of entities, "s/name" a small blob, "b/name" one of 4 MiB, "k/name" a blob
// in blocks and "l/name" one in blocks of 1 to 4 MiB; "t/name" and "u/name" are like "s/name" and "k/name", and snapshots
// are taken of them; "m/name" is one in many blocks. A blob's key is its name.
const (
	kindEntity    = 'e'
	kindGroup     = 'g'
	kindSmall     = 's'
	kindBig       = 'b'
	kindBlocks    = 'k'
	kindBigBlocks = 'l'
	kindTaken     = 't'
	kindTakenList = 'u'
	kindLongList  = 'm'
)

// partitions is the number of partitions that all entities share.
const partitions = 8

// isPut says of the key of a blob that it is put whole.
func isPut(key string) bool {
	return key[0] == kindSmall || key[0] == kindBig || key[0] == kindTaken
}

// inBlocks reports whether a key is of a blob uploaded in blocks.
func inBlocks(key string) bool {
	return key[0] == kindBlocks || key[0] == kindBigBlocks || key[0] == kindTakenList || key[0] == kindLongList
}

// isTaken reports whether snapshots are taken of a key.
func isTaken(key string) bool { return key[0] == kindTaken || key[0] == kindTakenList }

// isBig reports whether a write of the key may be of megabytes.
func isBig(key string) bool { return key[0] == kindBig || key[0] == kindBigBlocks }

// serviceOf is the service that a key is written to.
func serviceOf(key string) geo.Service {
	if isPut(key) || inBlocks(key) {
		return geo.Blob
	}
	return geo.Table
}

// The ways in which what is read is not a value at all.
var (
	// errTorn means that a value is not one that any single write wrote.
	errTorn = errors.New("value is not whole")
	// errSplit means that the entities of a group are not those of one transaction.
	errSplit = errors.New("transaction is split")
)
