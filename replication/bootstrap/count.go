package bootstrap

import (
	"context"
	"slices"
	"sync"
	"time"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/route"
)

// Before the images of an account begin, its rows are counted in all ranges, by their leaders, so that there is a
// total to show. The count goes in short steps, each over a new state of the range: clients write meanwhile, and writes
// of the part that was counted are not in it. It is not durable. After a restart, or in another process, it begins
// again, for the ranges whose image has not begun.

// countStepsMax bounds the steps of a turn, countPause is the pause after it.
const (
	countStepsMax = 64
	countPause    = 20 * time.Millisecond
)

// imageOrder is the order in which the images of an account make steps. Rows wait at the other location until it has
// their container, so the catalog is the first.
func imageOrder(t *route.Table, a geo.Account) (out []route.Range) {
	for _, s := range [...]geo.Service{geo.Catalog, geo.Table, geo.Blob, geo.Queue} {
		out = append(out, t.Account(s, a)...)
	}
	return out
}

// countOrder is the order in which the images begin. That of the catalog is the first one to make steps, so
// that the ranges have all been counted before.
func countOrder(t *route.Table, a geo.Account) []route.Range {
	all := imageOrder(t, a)
	slices.Reverse(all)
	return all
}

// counts are the counts under way. The zero value has none. Methods may be called concurrently.
type counts struct {
	mu sync.Mutex
	of map[geo.Account]*counting // guarded by mu; nil while a call has the value
}

// counting is how far a count of an account's rows is.
type counting struct {
	epoch geo.Epoch
	left  []route.Range
	// closed: the generations that the catalog does not have are closed.
	closed bool
	// from is the next key in the first range of left, nil for its first one; sum is what is in front of it.
	from []byte
	sum  change.ImageSize
}

// take returns the count of an account, which no other call has until it is given back; nil if another one has it.
func (c *counts) take(t *route.Table, a catalog.Account) *counting {
	c.mu.Lock()
	defer c.mu.Unlock()
	have, under := c.of[a.Name]
	if under && have == nil {
		return nil
	}
	if have == nil || have.epoch != a.GeoEpoch() {
		have = &counting{epoch: a.GeoEpoch(), left: countOrder(t, a.Name)}
	}
	if c.of == nil {
		c.of = map[geo.Account]*counting{}
	}
	c.of[a.Name] = nil
	return have
}

// giveBack ends what take began. One with nothing left is forgotten.
func (c *counts) giveBack(name geo.Account, have *counting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[name] = have; len(have.left) == 0 {
		delete(c.of, name)
	}
}

// keep forgets the counts of accounts that are not in names.
func (c *counts) keep(names map[geo.Account]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, have := range c.of {
		if have != nil && !names[name] {
			delete(c.of, name)
		}
	}
}

// count goes on with the count of an account's rows for a turn, and begins the image of each range that is counted.
func (cp *Copier) count(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	have := cp.counts.take(cp.stamp.Route(), a)
	if have == nil {
		return record.ApplyWait, nil
	}
	defer cp.counts.giveBack(a.Name, have)
	if !have.closed {
		if err := cp.closeForgotten(ctx, a.Name); err != nil {
			return 0, err
		}
		have.closed = true
	}
	for steps := 0; len(have.left) > 0; {
		if steps++; steps > countStepsMax {
			return countPause, nil
		}
		size, next, err := cp.images.CountRows(ctx, have.left[0], a.Name, have.from)
		if err != nil {
			return 0, err
		}
		have.from, have.sum = next, have.sum.Add(size)
		if next != nil {
			continue
		}
		if err := cp.images.BeginImage(ctx, have.left[0], a.Name, have.epoch, have.sum); err != nil {
			have.sum = change.ImageSize{}
			return 0, err
		}
		have.sum, have.left = change.ImageSize{}, have.left[1:]
	}
	return record.NextTurn, nil
}

// Keep forgets the accounts that have no operation any more.
func (cp *Copier) Keep(operations map[geo.Account]bool) {
	cp.counts.keep(operations)
	cp.paces.keep(operations)
}
