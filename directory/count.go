package directory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// Before the images of an account begin, its rows are counted in all ranges, so that there is a total to show. The
// count goes in short turns, each over a new state of the range: clients write meanwhile, and writes of the part
// that was counted are not in it. It is not durable. After a restart, or in another process, it begins again, for
// the ranges whose image has not begun.

// The bounds of a turn, and the pause after it.
const (
	countRowsMax  = 16 << 10
	countBytesMax = 4 << 20
	countPause    = 20 * time.Millisecond
)

// countOrder is the order in which the images begin. That of the catalog is the first one to make steps, so
// that the ranges have all been counted before.
func countOrder() []geo.Service { return []geo.Service{geo.Queue, geo.Blob, geo.Table, geo.Catalog} }

// counts are the counts under way. The zero value has none. Methods may be called concurrently.
type counts struct {
	mu sync.Mutex
	of map[geo.Account]*counting // guarded by mu; nil while a call has the value
}

// counting is how far a count of an account's rows is.
type counting struct {
	epoch geo.Epoch
	left  []geo.Service
	// from is the next key in the first range of left, nil for its first one; sum is what is in front of it.
	from []byte
	sum  change.ImageSize
}

// take returns the count of an account, which no other call has until it is given back; nil if another one has it.
func (c *counts) take(a catalog.Account) *counting {
	c.mu.Lock()
	defer c.mu.Unlock()
	have, under := c.of[a.Name]
	if under && have == nil {
		return nil
	}
	if have == nil || have.epoch != a.GeoEpoch() {
		have = &counting{epoch: a.GeoEpoch(), left: countOrder()}
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

// keep forgets the counts of accounts that are not in list.
func (c *counts) keep(list []*catalog.Account) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, have := range c.of {
		if have != nil && !listed(list, name) {
			delete(c.of, name)
		}
	}
}

func listed(list []*catalog.Account, name geo.Account) bool {
	return slices.ContainsFunc(list, func(a *catalog.Account) bool { return a.Name == name })
}

// count goes on with the count of an account's rows for a turn, and begins the image of each range that is counted.
func (d *Directory) count(ctx context.Context, a catalog.Account) (again time.Duration, err error) {
	have := d.counts.take(a)
	if have == nil {
		return bootstrapWaits, nil
	}
	defer d.counts.giveBack(a.Name, have)
	for rows := uint64(0); len(have.left) > 0 && rows < countRowsMax; {
		turn, err := d.countTurn(ctx, a.Name, have)
		if err != nil {
			return 0, err
		}
		if have.from != nil {
			return countPause, nil
		}
		if err := d.images.BeginImage(ctx, have.left[0], a.Name, have.epoch, have.sum); err != nil {
			return 0, err
		}
		rows += turn.Rows
		have.left = have.left[1:]
	}
	return bootstrapNext, nil
}

// countTurn adds the next rows of the first range that is left.
func (d *Directory) countTurn(ctx context.Context, name geo.Account, c *counting) (turn change.ImageSize, err error) {
	s := c.left[0]
	snap, err := d.snapshot(ctx, s)
	if err != nil {
		return turn, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	prefix := keys.AppendAccount(nil, s, name)
	from := c.from
	if from == nil {
		from, c.sum = prefix, change.ImageSize{}
	}
	it, err := snap.Scan(from, keys.PrefixEnd(prefix))
	if err != nil {
		return turn, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for it.Next() {
		if turn.Rows >= countRowsMax || turn.Bytes >= countBytesMax {
			c.from, c.sum = slices.Clone(it.Key()), c.sum.Add(turn)
			return turn, nil
		}
		row, err := d.images.SizeOfRow(it.Key(), it.Value())
		if err != nil {
			return turn, err
		}
		turn = turn.Add(row)
	}
	c.from, c.sum = nil, c.sum.Add(turn)
	return turn, nil
}
