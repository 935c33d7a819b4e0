package sim

import (
	"maps"
	"slices"
	"strings"

	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// partitionRows reads the rows of one partition out of a map.
type partitionRows struct {
	p    keys.Partition
	rows map[string]string
}

// Get implements kv.Getter.
func (r partitionRows) Get(key []byte) ([]byte, bool, error) {
	v, ok := r.rows[string(key[len(r.p.Append(nil)):])]
	return []byte(v), ok, nil
}

// Scan implements kv.Reader within the partition.
func (r partitionRows) Scan(lower, upper []byte) (kv.Iterator, error) {
	prefix := string(r.p.Append(nil))
	it := &partitionIterator{r: r, prefix: prefix, at: -1}
	for _, row := range slices.Sorted(maps.Keys(r.rows)) {
		if key := prefix + row; key >= string(lower) && key < string(upper) {
			it.found = append(it.found, row)
		}
	}
	return it, nil
}

// partitionIterator walks rows of a partition.
type partitionIterator struct {
	r      partitionRows
	prefix string
	found  []string // in order
	at     int
}

func (i *partitionIterator) Next() bool {
	i.at++
	return i.at < len(i.found)
}

func (i *partitionIterator) SeekGE(key []byte) bool {
	i.at, _ = slices.BinarySearchFunc(i.found, string(key), func(row, key string) int { return strings.Compare(i.prefix+row, key) })
	return i.at < len(i.found)
}

func (i *partitionIterator) Key() []byte { return []byte(i.prefix + i.found[i.at]) }

func (i *partitionIterator) Value() []byte { return []byte(i.r.rows[i.found[i.at]]) }

func (*partitionIterator) Close() error { return nil }
