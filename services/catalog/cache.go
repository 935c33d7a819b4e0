package catalog

import (
	"sync"

	"antipode/geo"
	"antipode/stamp/kv"
)

// cacheMax bounds the containers a Cache keeps; beyond it all are forgotten.
const cacheMax = 10_000

// Cache keeps decoded containers by the bytes they came from: every request reads
// its container from the catalog, and few of them changed since the last one. It may
// be used concurrently. The zero value is ready.
type Cache struct {
	mu   sync.RWMutex
	seen map[string]decoded
}

type decoded struct {
	raw string
	c   *Container
}

// Get is GetContainer. The result is shared and not to be changed.
func (k *Cache) Get(get kv.Getter, s geo.Service, a geo.Account, name string) (*Container, error) {
	key := ContainerPartition(s, a, name).Append(make([]byte, 0, 96))
	raw, ok, err := get.Get(key)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, containerErrors(s).notFound
	}
	k.mu.RLock()
	d, hit := k.seen[string(key)]
	k.mu.RUnlock()
	if !hit || d.raw != string(raw) {
		c, err := ParseContainer(raw)
		if err != nil {
			return nil, err
		}
		d = decoded{string(raw), c}
		k.keep(string(key), d)
	}
	if d.c.Deleted != 0 {
		return nil, containerErrors(s).notFound
	}
	return d.c, nil
}

func (k *Cache) keep(key string, d decoded) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil || len(k.seen) >= cacheMax {
		k.seen = map[string]decoded{}
	}
	k.seen[key] = d
}
