package blobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	// From is the first name that may be listed; empty for all.
	From string
	// Uncommitted adds the blobs of which there are only uncommitted blocks, those that
	// have not expired at Now.
	Uncommitted bool
	Now         geo.Timestamp
}

// Item is one entry of a listing.
type Item struct {
	// Name of the blob, or a name up to and including the delimiter.
	Name string
	// IsPrefix: the item stands for all names that begin with Name.
	IsPrefix bool
	// Blob describes the blob; its payload is not read.
	Blob Blob
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
	if from := l.partition(l.From); l.From != "" && bytes.Compare(from, lower) > 0 {
		return from
	}
	return lower
}

// List offers the entries of a page to take in the order of names, which is that of their UTF-16
// code units, until take refuses one, or fails, or the budget is spent; names that are examined
// and not listed cost work too. It returns the name at which the next page begins: the refused
// one, or the first that was not examined; "" if the listing is complete. take may keep the item
// and what it holds.
//
// Names behind a delimiter cost one seek for all of them, whatever their number.
//
// Invariant: unless take refuses the first entry, the next page begins above From, so that paging
// ends: a page examines at least one name.
func List(ctx context.Context, r kv.Reader, l *Listing, budget *services.Budget, take func(Item) (taken bool, err error)) (next string, err error) {
	lower, upper := l.First(), keys.PrefixEnd(l.span(l.Prefix))
	if bytes.Compare(lower, upper) >= 0 {
		return "", nil
	}
	it, err := r.Scan(lower, upper)
	if err != nil {
		return "", err
	}
	next, err = l.walk(ctx, it, budget, take)
	return next, errors.Join(err, it.Close())
}

func (l *Listing) walk(ctx context.Context, it kv.Iterator, budget *services.Budget, take func(Item) (bool, error)) (next string, err error) {
	more := true
	var partition []byte // of the blob that the iterator is at
	for ok := it.Next(); ok; {
		key := it.Key()
		p, row, err := keys.ParsePartition(key)
		if err != nil {
			return "", fmt.Errorf("list container %q of %s: %w", l.Container, l.Account, err)
		}
		if !more {
			return p.Object, nil
		}
		partition = append(partition[:0], key[:len(key)-len(row)]...)
		item := Item{Name: p.Object}
		visible, work, err := l.read(it, row, &item)
		if err != nil {
			return "", fmt.Errorf("blob %q in container %q of %s: %w", p.Object, l.Container, l.Account, err)
		}
		if visible {
			if collapsed, found := l.collapse(p.Object); found {
				item = Item{Name: collapsed, IsPrefix: true}
				partition = l.span(collapsed) // All names behind it are skipped.
			}
			taken, err := take(item)
			if err != nil {
				return "", err
			}
			if !taken {
				return p.Object, nil
			}
		}
		var seeks int
		ok, seeks = leave(it, partition)
		if more, err = budget.Spend(ctx, work+seeks*seekWork); err != nil {
			return "", err
		}
	}
	return "", nil
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
		return l.Uncommitted && !s.expired(l.Now), work, err
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
