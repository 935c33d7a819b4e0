package blobs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"antipode/geo"
	"antipode/services"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Listing is one page of List Blobs (protocol/blob.md 7).
type Listing struct {
	Account    geo.Account
	Container  string
	Generation keys.Generation
	// Prefix is what every name begins with.
	Prefix string
	// Delimiter collapses the names that have it behind the prefix; empty for none.
	Delimiter string
	// From is the first entry that may be listed; its name is empty for all.
	From Position
	// Before is the first name that may not be listed; empty for none.
	Before string
	// Snapshots adds the snapshots of a blob, ahead of it. There is no delimiter then.
	Snapshots bool
	// Uncommitted adds the blobs of which there are only uncommitted blocks, those that
	// have not expired at Now.
	Uncommitted bool
	Now         geo.Timestamp
}

// Position is that of an entry in a listing.
type Position struct {
	Name string
	// Snapshot is the time of one, zero ahead of all of the blob's, and math.MaxUint64 behind them.
	Snapshot geo.Timestamp
}

// Item is one entry of a listing.
type Item struct {
	// Name of the blob, or a name up to and including the delimiter.
	Name string
	// IsPrefix: the item stands for all names that begin with Name.
	IsPrefix bool
	// Blob describes the blob, or the snapshot of it that was made at Snapshot; its payload is not read.
	Blob     Blob
	Snapshot geo.Timestamp
	// IsUncommitted: there are only uncommitted blocks, and Blob is empty.
	IsUncommitted bool
}

// Work of a listing, in the unit of services.Budget.
const (
	// nameWork is the work of reading and answering one name, without its bytes.
	nameWork = 32
	// seekWork is the work of a seek past the other rows of a blob, or past all names behind a
	// delimiter.
	seekWork = 64
)

// First is the first key that may be listed.
func (l *Listing) First() []byte {
	lower := l.span(l.Prefix)
	if from := l.partition(l.From.Name); l.From.Name != "" && bytes.Compare(from, lower) > 0 {
		return from
	}
	return lower
}

// List offers the entries of a page to take in the order of their names, by UTF-16 code units. It
// ends when take refuses one, or fails, or the budget is spent; names that are examined and not
// listed cost work too. It returns the entry at which the next page begins: the refused one, or the
// first that was not examined; none if the listing is complete. take may keep the item and what it
// holds.
//
// Names behind a delimiter cost one seek for all of them, whatever their number.
//
// Invariant: unless take refuses the first entry, the next page begins above From, so that paging
// ends: a page examines at least one entry.
func List(ctx context.Context, r kv.Reader, l *Listing, budget *services.Budget, take func(Item) (taken bool, err error)) (
	next Position, err error,
) {
	lower, upper := l.First(), keys.PrefixEnd(l.span(l.Prefix))
	if end := l.partition(l.Before); l.Before != "" && bytes.Compare(end, upper) < 0 {
		upper = end
	}
	if bytes.Compare(lower, upper) >= 0 {
		return next, nil
	}
	it, err := r.Scan(lower, upper)
	if err != nil {
		return next, err
	}
	next, err = l.walk(ctx, it, budget, take)
	return next, errors.Join(err, it.Close())
}

func (l *Listing) walk(ctx context.Context, it kv.Iterator, budget *services.Budget, take func(Item) (bool, error)) (next Position, err error) {
	more := true
	var partition []byte // of the blob that the iterator is at
	for ok := it.Next(); ok; {
		key := it.Key()
		p, row, err := keys.ParsePartition(key)
		if err != nil {
			return next, fmt.Errorf("list container %q of %s: %w", l.Container, l.Account, err)
		}
		if !more {
			return Position{Name: p.Object}, nil
		}
		partition = append(partition[:0], key[:len(key)-len(row)]...)
		item := Item{Name: p.Object}
		visible, work, err := l.read(it, row, &item)
		if err != nil {
			return next, fmt.Errorf("blob %q in container %q of %s: %w", p.Object, l.Container, l.Account, err)
		}
		snapshots := l.Snapshots && item.Blob.Snapshots.Count > 0
		if snapshots {
			if next, more, err = l.snapshots(ctx, it, partition, &item, budget, take); err != nil || next != (Position{}) {
				return next, err
			}
			if !more {
				return Position{p.Object, math.MaxUint64}, nil
			}
		}
		if visible {
			if collapsed, found := l.collapse(p.Object); found {
				item = Item{Name: collapsed, IsPrefix: true}
				partition = l.span(collapsed) // All names behind it are skipped.
			}
			taken, err := take(item)
			if err != nil {
				return next, err
			}
			if !taken && snapshots {
				return Position{p.Object, math.MaxUint64}, nil
			}
			if !taken {
				return Position{Name: p.Object}, nil
			}
		}
		var seeks int
		if snapshots {
			ok, seeks = it.SeekGE(keys.PrefixEnd(partition)), 1
		} else {
			ok, seeks = leave(it, partition)
		}
		if more, err = budget.Spend(ctx, work+seeks*seekWork); err != nil {
			return next, err
		}
	}
	return next, nil
}

// snapshots offers those of a blob to take, from the listing's position on, and returns where the next page begins as List
// does, and whether the budget has more. The iterator may end behind the blob's rows.
func (l *Listing) snapshots(
	ctx context.Context, it kv.Iterator, partition []byte, blob *Item, budget *services.Budget, take func(Item) (bool, error),
) (next Position, more bool, err error) {
	from := geo.Timestamp(0)
	if l.From.Name == blob.Name {
		from = l.From.Snapshot
	}
	first := append(partition[:len(partition):len(partition)], snapshotRow(blob.Blob.Snapshots.First, from)...)
	span := first[:len(first)-8]
	more = true
	for ok := it.SeekGE(first); ok && bytes.HasPrefix(it.Key(), span); ok = it.Next() {
		_, row, err := keys.ParsePartition(it.Key())
		if err != nil || len(row) != snapshotRowLen {
			return next, false, fmt.Errorf("snapshot of blob %q in container %q of %s: %w", blob.Name, l.Container, l.Account, errors.Join(err, ErrMalformed))
		}
		item := Item{Name: blob.Name, Snapshot: geo.Timestamp(binary.BigEndian.Uint64(row[9:]))}
		if !more {
			return Position{blob.Name, item.Snapshot}, true, nil
		}
		if item.Blob, _, err = parseHead(it.Value()); err != nil {
			return next, false, fmt.Errorf("snapshot of blob %q in container %q of %s: %w", blob.Name, l.Container, l.Account, err)
		}
		taken, err := take(item)
		if err != nil {
			return next, false, err
		}
		if !taken {
			return Position{blob.Name, item.Snapshot}, true, nil
		}
		if more, err = budget.Spend(ctx, nameWork+services.BytesWork(len(it.Value()))); err != nil {
			return next, false, err
		}
	}
	return next, more, nil
}

// read decodes the first row of a blob into item. It returns whether the blob is listed,
// and the work that was done.
func (l *Listing) read(it kv.Iterator, row []byte, item *Item) (visible bool, work int, err error) {
	if len(row) != 1 {
		return false, nameWork, nil // Dead rows alone.
	}
	value := it.Value()
	work = nameWork + services.BytesWork(len(value))
	switch row[0] {
	case rowBlob:
		item.Blob, _, err = parseHead(value)
		return true, work, err
	case rowStaging:
		s, err := parseStaging(value)
		item.IsUncommitted = true
		return l.Uncommitted && s.live(l.Now), work, err
	}
	return false, work, ErrMalformed
}

// leave moves to the first key behind the span that the iterator is in. Most blobs have one row,
// so it tries the next key before it seeks.
func leave(it kv.Iterator, span []byte) (ok bool, seeks int) {
	if !it.Next() {
		return false, 0
	}
	if !bytes.HasPrefix(it.Key(), span) {
		return true, 0
	}
	return it.SeekGE(keys.PrefixEnd(span)), 1
}

// collapse returns a name up to and including the first delimiter behind the prefix.
func (l *Listing) collapse(name string) (collapsed string, found bool) {
	if l.Delimiter == "" {
		return "", false
	}
	i := strings.Index(name[len(l.Prefix):], l.Delimiter)
	if i < 0 {
		return "", false
	}
	return name[:len(l.Prefix)+i+len(l.Delimiter)], true
}

func (l *Listing) partition(name string) []byte {
	return Name{Account: l.Account, Container: l.Container, Generation: l.Generation, Blob: name}.Partition().Append(nil)
}

// span is the key prefix of all names that begin with a text: a name's key without
// the two bytes that end it.
func (l *Listing) span(prefix string) []byte {
	p := l.partition(prefix)
	return p[:len(p)-2]
}
