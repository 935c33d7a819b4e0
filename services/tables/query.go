package tables

import (
	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Entity is one entity as a query returns it.
type Entity struct {
	PK, RK    string
	Timestamp geo.Timestamp
	// Props is the encoded property list (package entity).
	Props []byte
}

// Get reads one entity; ResourceNotFound if it does not exist.
func Get(get kv.Getter, p keys.Partition, rk string) (Entity, error) {
	key := keys.AppendString(p.Append(make([]byte, 0, 128)), rk)
	v, ok, err := get.Get(key)
	if err != nil {
		return Entity{}, err
	}
	if !ok {
		return Entity{}, storageerr.ResourceNotFound
	}
	ts, props, err := parseValue(v)
	return Entity{PK: p.Object, RK: rk, Timestamp: ts, Props: props}, err
}

// Scan walks entities of a table from the keys at or above lower to those below upper, both built
// by Bound, and calls f for each until it returns false. If f returns a key, the walk continues
// at or above it; the key must lie ahead. The entity's byte slices are valid during the call
// only.
func Scan(r kv.Reader, lower, upper []byte, f func(Entity) (to []byte, more bool, err error)) error {
	it, err := r.Scan(lower, upper)
	if err != nil {
		return err
	}
	for ok := it.Next(); ok; {
		e, err := ParseRow(it.Key(), it.Value())
		var to []byte
		var more bool
		if err == nil {
			to, more, err = f(e)
		}
		if err != nil {
			_ = it.Close()
			return err
		}
		switch {
		case !more:
			ok = false
		case to != nil:
			ok = it.SeekGE(to)
		default:
			ok = it.Next()
		}
	}
	return it.Close()
}

// ParseRow reads a stored entity with its key. Props aliases value.
func ParseRow(key, value []byte) (Entity, error) {
	p, row, err := keys.ParsePartition(key)
	if err != nil {
		return Entity{}, err
	}
	rk, _, err := keys.CutString(row)
	if err != nil {
		return Entity{}, err
	}
	ts, props, err := parseValue(value)
	return Entity{PK: p.Object, RK: rk, Timestamp: ts, Props: props}, err
}

// Bound is the key of (pk, rk) in a table: the first key at or above it.
func Bound(a geo.Account, table string, g keys.Generation, pk, rk string) []byte {
	return keys.AppendString(Partition(a, table, g, pk).Append(nil), rk)
}

// BoundAfter is the first key above (pk, rk).
func BoundAfter(a geo.Account, table string, g keys.Generation, pk, rk string) []byte {
	return append(Bound(a, table, g, pk, rk), 0)
}

// BoundPartition is the first key of a partition, BoundAfterPartition the first key
// above it.
func BoundPartition(a geo.Account, table string, g keys.Generation, pk string) []byte {
	return Partition(a, table, g, pk).Append(nil)
}

// BoundAfterPartition is the first key above a partition.
func BoundAfterPartition(a geo.Account, table string, g keys.Generation, pk string) []byte {
	return keys.PrefixEnd(Partition(a, table, g, pk).Append(nil))
}

// TableSpan is all entities of a generation of a table.
func TableSpan(a geo.Account, table string, g keys.Generation) (lower, upper []byte) {
	lower = keys.AppendContainer(nil, geo.Table, a, keys.TableContainer(table), g)
	return lower, keys.PrefixEnd(lower)
}
