package catalog

import (
	"sync"

	"antipode/geo"
	"antipode/stamp/kv"
)

// cacheBytesMax bounds what a Cache keeps, in bytes. A generation of it is half of that: a row that was not used while so
// much of others was is forgotten. Tenants choose how large their rows are, so a number of rows would be no bound.
const (
	cacheBytesMax = 32 << 20
	generation    = cacheBytesMax / 2
)

// Cache keeps decoded rows of the catalog: every request needs its account and its
// container, and the catalog seldom changes. It may be used concurrently. The zero
// value is ready. The rows are shared and not to be changed.
//
// Invariant: what it returns is the row of the state it is given, never an older one:
// a row is used again only for the same version of the data, or for the same bytes.
type Cache[T any] struct {
	mu sync.RWMutex
	// seen are the rows that were used since it was begun, former those before. Guarded by mu.
	seen, former map[string]decoded[T]
	// held is what seen holds, in bytes. Guarded by mu.
	held int
}

type decoded[T any] struct {
	version kv.Version
	raw     string
	row     *T
}

// The most that a row costs beside its key and its stored form: its structs, its places in the maps and in the
// allocator's classes, and the decoded form of each stored byte. The worst row is one of properties with many short
// origins.
const (
	rowBytes     = 512
	decodedBytes = 7
)

func (d decoded[T]) bytes(key string) int { return rowBytes + len(key) + (1+decodedBytes)*len(d.raw) }

// Get returns the row of a key as parse decodes it, nil if there is no row.
func (c *Cache[T]) Get(s kv.Versioned, key []byte, parse func([]byte) (*T, error)) (*T, error) {
	version := s.Version()
	d, hit := c.find(key)
	if hit && version != 0 && d.version == version {
		return d.row, nil
	}
	raw, ok, err := s.Get(key)
	if err != nil || !ok {
		return nil, err
	}
	if !hit || d.raw != string(raw) {
		row, err := parse(raw)
		if err != nil {
			return nil, err
		}
		d = decoded[T]{raw: string(raw), row: row}
	}
	if s.Version() != version {
		version = 0 // The row may be newer than the version says.
	}
	d.version = version
	c.keep(string(key), d)
	return d.row, nil
}

// find returns what was kept of a key, and keeps that on.
func (c *Cache[T]) find(key []byte) (d decoded[T], hit bool) {
	c.mu.RLock()
	d, hit = c.seen[string(key)]
	old := !hit
	if old {
		d, hit = c.former[string(key)]
	}
	c.mu.RUnlock()
	if old && hit {
		c.keep(string(key), d)
	}
	return d, hit
}

// keep keeps a row, unless a generation has no room for it.
func (c *Cache[T]) keep(key string, d decoded[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, known := c.seen[key]; known {
		c.held -= old.bytes(key)
		delete(c.seen, key)
	}
	n := d.bytes(key)
	if n > generation {
		return
	}
	if c.held+n > generation {
		c.seen, c.former, c.held = nil, c.seen, 0
	}
	if c.seen == nil {
		c.seen = map[string]decoded[T]{}
	}
	c.seen[key] = d
	c.held += n
}

// Found is the outcome of looking up a container: one of its fields is set.
type Found struct {
	// Container is shared and not to be changed.
	Container *Container
	// Err is the service's "not found" row, or the error of the read.
	Err error
}

// Containers resolves the names of containers and tables. It may be used
// concurrently. The zero value is ready.
type Containers struct{ rows Cache[Container] }

// Get is GetContainer. The result is shared and not to be changed.
func (k *Containers) Get(s kv.Versioned, service geo.Service, a geo.Account, name string) (*Container, error) {
	key := ContainerPartition(service, a, name).Append(make([]byte, 0, 96))
	c, err := k.rows.Get(s, key, ParseContainer)
	if err != nil {
		return nil, err
	}
	if c == nil || c.Deleted != 0 {
		return nil, containerErrors(service).notFound
	}
	return c, nil
}
