package blobs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"antipode/geo"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Listing is one page of List Blobs (spec/blob.md 7).
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
	// StepsMax bounds the names that are looked at, listed or not: above zero.
	StepsMax int
}

// Item is one entry of a listing.
type Item struct {
	// Name of the blob, or a name up to and including the delimiter.
	Name string
	// IsPrefix says that the item stands for all names that begin with Name.
	IsPrefix bool
	// Blob is what is said of a blob; its payload is not read.
	Blob Blob
	// IsUncommitted says that there are only uncommitted blocks: Blob is empty.
	IsUncommitted bool
}

// List calls f for the entries of a page in the order of names, which is that of
// their UTF-16 code units, until f returns false or StepsMax is reached. It returns
// the name at which the next page begins, "" where the listing is complete. An item
// and what it holds are f's to keep.
//
// Names behind a delimiter cost one seek for all of them, whatever their number.
func List(r kv.Reader, l *Listing, f func(Item) (more bool, err error)) (next string, err error) {
	lower := l.span(l.Prefix)
	upper := keys.PrefixEnd(lower)
	if from := l.partition(l.From); l.From != "" && bytes.Compare(from, lower) > 0 {
		lower = from
	}
	if bytes.Compare(lower, upper) >= 0 {
		return "", nil
	}
	it, err := r.Scan(lower, upper)
	if err != nil {
		return "", err
	}
	next, err = l.walk(it, f)
	return next, errors.Join(err, it.Close())
}

func (l *Listing) walk(it kv.Iterator, f func(Item) (bool, error)) (next string, err error) {
	more := true
	steps := 0
	var partition []byte // of the blob that the iterator is at
	for ok := it.Next(); ok; steps++ {
		key := it.Key()
		p, row, err := keys.ParsePartition(key)
		if err != nil {
			return "", fmt.Errorf("list container %q of %s: %w", l.Container, l.Account, err)
		}
		if !more || steps == l.StepsMax {
			return p.Object, nil
		}
		partition = append(partition[:0], key[:len(key)-len(row)]...)
		item := Item{Name: p.Object}
		visible, err := l.read(it, row, &item)
		if err != nil {
			return "", fmt.Errorf("blob %q in container %q of %s: %w", p.Object, l.Container, l.Account, err)
		}
		if !visible {
			ok = leave(it, partition)
			continue
		}
		if collapsed, found := l.collapse(p.Object); found {
			item = Item{Name: collapsed, IsPrefix: true}
			ok = it.SeekGE(keys.PrefixEnd(l.span(collapsed)))
		} else {
			ok = leave(it, partition)
		}
		if more, err = f(item); err != nil {
			return "", err
		}
	}
	return "", nil
}

// read tells from the first row of a blob what there is of it, and whether that is
// listed.
func (l *Listing) read(it kv.Iterator, row []byte, item *Item) (visible bool, err error) {
	if len(row) != 1 {
		return false, nil // Dead rows alone.
	}
	switch row[0] {
	case rowBlob:
		item.Blob, _, err = parseHead(it.Value())
		return true, err
	case rowStaging:
		s, err := parseStaging(it.Value())
		item.IsUncommitted = true
		return l.Uncommitted && !s.expired(l.Now), err
	}
	return false, ErrMalformed
}

// leave moves from a blob's first row to the next blob. Most blobs have one row, so
// the next key is tried before a seek is paid for.
func leave(it kv.Iterator, partition []byte) bool {
	if !it.Next() {
		return false
	}
	return !bytes.HasPrefix(it.Key(), partition) || it.SeekGE(keys.PrefixEnd(partition))
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
