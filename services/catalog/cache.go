package catalog

import (
	"sync"

	"antipode/geo"
	"antipode/stamp/kv"
)

// cacheMax bounds the rows a Cache keeps. A generation of it is half of that: a row that was not used while so many others
// were is forgotten.
const (
	cacheMax   = 32_768
	generation = cacheMax / 2
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
}

type decoded[T any] struct {
	version kv.Version
	raw     string
	row     *T
}

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

func (c *Cache[T]) keep(key string, d decoded[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.seen[key]; !known && len(c.seen) >= generation {
		c.seen, c.former = nil, c.seen
	}
	if c.seen == nil {
		c.seen = map[string]decoded[T]{}
	}
	c.seen[key] = d
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
