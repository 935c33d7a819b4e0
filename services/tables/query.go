package tables

import (
	"bytes"

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
// at or above it; the key must lie ahead. The row, its entity and byte slices are valid during the
// call only.
func Scan(r kv.Reader, lower, upper []byte, f func(*Row) (to []byte, more bool, err error)) error {
	it, err := r.Scan(lower, upper)
	if err != nil {
		return err
	}
	var row Row
	for ok := it.Next(); ok; {
		var to []byte
		var more bool
		if err = row.read(it.Key(), it.Value()); err == nil {
			to, more, err = f(&row)
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

// Row is an entity of a walk. Most rows of a search are dropped by their values: then their keys are not decoded.
type Row struct {
	key []byte
	e   Entity

	// table and partition are what the key decoded last begins with: up to its generation, and up to
	// its PartitionKey, which is pk. They spare the next ones their decoding.
	table, partition []byte
	pk               string
	rks              keys.Cutter

	touched byte
}

// lineBytes is what a processor reads from memory at once.
const lineBytes = 64

func (r *Row) read(key, value []byte) (err error) {
	if len(value) > lineBytes {
		// Most rows are in no cache of the processor. A filter often looks at bytes in the second line, which
		// so comes at the same time as the first.
		r.touched ^= value[lineBytes]
	}
	r.key = key
	r.e.Timestamp, r.e.Props, err = parseValue(value)
	return err
}

// Values returns the entity without its PartitionKey and RowKey.
func (r *Row) Values() *Entity {
	r.e.PK, r.e.RK = "", ""
	return &r.e
}

// Entity returns the entity.
func (r *Row) Entity() (*Entity, error) {
	row, same := bytes.CutPrefix(r.key, r.partition)
	if !same || len(r.partition) == 0 {
		var err error
		if row, err = r.enter(r.key); err != nil {
			return nil, err
		}
	}
	rk, _, err := r.rks.CutString(row)
	r.e.PK, r.e.RK = r.pk, rk
	return &r.e, err
}

// enter moves to the partition of key and returns what stands within it.
func (r *Row) enter(key []byte) (row []byte, err error) {
	rest, same := bytes.CutPrefix(key, r.table)
	if !same || len(r.table) == 0 {
		p, _, err := keys.ParsePartition(key)
		if err != nil {
			return nil, err
		}
		r.table = keys.AppendContainer(r.table[:0], p.Service, p.Account, p.Container, p.Generation)
		rest = key[len(r.table):]
	}
	if r.pk, row, err = keys.CutString(rest); err != nil {
		return nil, err
	}
	r.partition = append(r.partition[:0], key[:len(key)-len(row)]...)
	return row, nil
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

// BorderKey is the first key of an entity at or above the border of a range within a table. A border lies
// between partitions.
func BorderKey(border []byte) (pk, rk string, err error) {
	p, row, err := keys.ParsePartition(border)
	if err == nil && len(row) > 0 {
		rk, _, err = keys.CutString(row)
	}
	return p.Object, rk, err
}

// TableSpan is all entities of a generation of a table.
func TableSpan(a geo.Account, table string, g keys.Generation) (lower, upper []byte) {
	lower = keys.AppendContainer(nil, geo.Table, a, keys.TableContainer(table), g)
	return lower, keys.PrefixEnd(lower)
}
