package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"antipode/geo"
	"antipode/test/oracle"
	"antipode/test/rest"
)

// errListing means that a listing does not show what it must, or shows what it must
// not.
var errListing = errors.New("listing is wrong")

// listInterval is the time between two listings made while others write: they are
// beside the writes, not in their place.
const listInterval = 30 * time.Millisecond

// listing is one listing of blobs, or one query of a partition's entities.
type listing struct {
	// partition is the partition key, "" for blobs.
	partition string
	// prefix and delimiter are those of a listing of blobs.
	prefix, delimiter string
	// page is how many are asked for at a time.
	page int
}

func (s listing) service() geo.Service {
	if s.partition != "" {
		return geo.Table
	}
	return geo.Blob
}

// listings are all those that are made.
func listings() []listing {
	out := []listing{
		{page: 37},
		{page: 1000},
		{prefix: "s/", delimiter: "-", page: 11},
		{delimiter: "/", page: 1},
		{prefix: "k/c0", page: 5},
	}
	for i := range partitions {
		out = append(out, listing{partition: fmt.Sprintf("p%d", i), page: 17 + 10*i})
	}
	return out
}

// lister lists at both locations while clients write.
type lister struct {
	*Load
	rng *rand.Rand
}

func (l *lister) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := l.step(ctx); err != nil && !isNoAnswer(err) {
			return err
		}
		pause(ctx, listInterval)
	}
	return nil
}

// step makes one listing. At the primary what was acknowledged before it must show, at
// the secondary what Last Sync Time had passed before it.
func (l *lister) step(ctx context.Context) error {
	all := listings()
	s := all[l.rng.IntN(len(all))]
	c, floor := l.Primary, l.Oracle.Resolved
	if l.rng.IntN(2) == 0 {
		stats, err := l.Secondary.Stats(ctx, s.service())
		if err != nil {
			return fmt.Errorf("%w: %w", errNoAnswer, err)
		}
		c, floor = l.Secondary, func(string) oracle.Version { return 0 }
		if stats.Known {
			floor = func(key string) oracle.Version { return l.Oracle.Floor(key, geo.TimestampOf(stats.LastSyncTime)) }
		}
	}
	if err := l.checkListing(ctx, c, s, floor); err != nil {
		return err
	}
	if s.partition != "" {
		l.count(Queries)
	} else {
		l.count(BlobLists)
	}
	return nil
}

// checkListings makes every listing while nobody writes.
func (l *Load) checkListings(ctx context.Context, c *rest.Client) error {
	for _, s := range listings() {
		err := answered(ctx, func() error { return l.checkListing(ctx, c, s, l.Oracle.Resolved) })
		if err != nil {
			return err
		}
	}
	return nil
}

// checkListing makes one listing. floor says, before it begins, what it must show of
// each key at least; a write on its way may show or not.
func (l *Load) checkListing(ctx context.Context, c *rest.Client, s listing, floor func(string) oracle.Version) error {
	floors := map[string]oracle.Version{}
	for _, key := range l.Oracle.Keys() {
		if serviceOf(key) == s.service() {
			floors[key] = floor(key)
		}
	}
	var err error
	if s.partition != "" {
		err = l.checkQuery(ctx, c, s, floors)
	} else {
		err = l.checkBlobs(ctx, c, s, floors)
	}
	if err != nil && !isNoAnswer(err) {
		return fmt.Errorf("%w: %+v: %w", errListing, s, err)
	}
	return err
}

// checkBlobs lists blobs and requires that each is there or not as it must.
func (l *Load) checkBlobs(ctx context.Context, c *rest.Client, s listing, floors map[string]oracle.Version) error {
	found, prefixes, err := listBlobs(ctx, c, s)
	if err != nil {
		return err
	}
	type presence struct{ may, must bool }
	folders := map[string]presence{}
	for _, key := range l.Oracle.Keys() {
		if serviceOf(key) != geo.Blob || !strings.HasPrefix(key, s.prefix) {
			continue
		}
		if head, _, cut := strings.Cut(key[len(s.prefix):], s.delimiter); cut && s.delimiter != "" {
			folder := s.prefix + head + s.delimiter
			may, must := l.Oracle.Presence(key, floors[key])
			folders[folder] = presence{may || folders[folder].may, must || folders[folder].must}
			continue
		}
		if err := l.Oracle.AtLeast(key, floors[key], found[key]); err != nil {
			return err
		}
		delete(found, key)
	}
	for name, r := range found {
		return fmt.Errorf("%w: %s: %v", oracle.ErrInvented, name, r.State)
	}
	for folder, p := range folders {
		if listed := prefixes[folder]; listed && !p.may || !listed && p.must {
			return fmt.Errorf("%w: prefix %s is listed: %t, though that may be: %t, or must be: %t", oracle.ErrBehind, folder, listed, p.may, p.must)
		}
		delete(prefixes, folder)
	}
	for folder := range prefixes {
		return fmt.Errorf("%w: prefix %s", oracle.ErrInvented, folder)
	}
	return nil
}

// listBlobs reads all pages of a listing. Names and prefixes must come once, in order
// within each, and no more to a page than asked for.
func listBlobs(ctx context.Context, c *rest.Client, s listing) (found map[string]oracle.Read, prefixes map[string]bool, err error) {
	found, prefixes = map[string]oracle.Read{}, map[string]bool{}
	var lastBlob, lastPrefix string
	for marker := ""; ; {
		page, a, err := c.ListBlobs(ctx, container, rest.BlobListing{Prefix: s.prefix, Delimiter: s.delimiter, Max: s.page, Marker: marker})
		if err := unanswered("a page of blobs", a, err); err != nil {
			return nil, nil, err
		}
		if n := len(page.Blobs) + len(page.Prefixes); n > s.page {
			return nil, nil, fmt.Errorf("%d entries on a page", n)
		}
		for _, b := range page.Blobs {
			if b.Name <= lastBlob {
				return nil, nil, fmt.Errorf("%s follows %s", b.Name, lastBlob)
			}
			lastBlob = b.Name
			if found[b.Name], err = listedBlob(b); err != nil {
				return nil, nil, err
			}
		}
		for _, p := range page.Prefixes {
			if p <= lastPrefix {
				return nil, nil, fmt.Errorf("prefix %s follows %s", p, lastPrefix)
			}
			lastPrefix, prefixes[p] = p, true
		}
		if marker = page.NextMarker; marker == "" {
			return found, prefixes, nil
		}
	}
}

// listedBlob is what a listing says of a blob.
func listedBlob(b rest.BlobItem) (oracle.Read, error) {
	s, err := metadataState(b.Name, b.Metadata)
	if err == nil && b.Length != int64(blobLength(b.Name, s)) {
		err = fmt.Errorf("%w: blob %s of %d bytes claims %v", errTorn, b.Name, b.Length, s)
	}
	return oracle.Read{State: s, ETag: b.ETag, At: commitTime(b.ETag)}, err
}

// checkQuery reads a partition page by page and requires each of its entities, a
// group's one by one: pages are of different moments. What is on one page is of one.
func (l *Load) checkQuery(ctx context.Context, c *rest.Client, s listing, floors map[string]oracle.Version) error {
	found, err := queryPartition(ctx, c, s)
	if err != nil {
		return err
	}
	for _, key := range l.Oracle.Keys() {
		pk, _ := entityKeys(key)
		if serviceOf(key) != geo.Table || pk != s.partition {
			continue
		}
		rows := []string{key}
		if key[0] == kindGroup {
			rows = nil
			for i := range groupRows {
				rows = append(rows, rowKey(key, i))
			}
		}
		for _, row := range rows {
			if err := l.Oracle.AtLeast(key, floors[key], found[row]); err != nil {
				return fmt.Errorf("entity %s: %w", row, err)
			}
			delete(found, row)
		}
	}
	for key, r := range found {
		return fmt.Errorf("%w: entity %s: %v", oracle.ErrInvented, key, r.State)
	}
	return nil
}

// queryPartition reads all pages of a partition.
func queryPartition(ctx context.Context, c *rest.Client, s listing) (map[string]oracle.Read, error) {
	found := map[string]oracle.Read{}
	last := ""
	for q := (rest.Query{Filter: fmt.Sprintf("PartitionKey eq '%s'", s.partition), Top: s.page}); ; {
		page, a, err := c.Query(ctx, table, q)
		if err := unanswered("a page of entities", a, err); err != nil {
			return nil, err
		}
		if len(page.Entities) > s.page {
			return nil, fmt.Errorf("%d entities on a page", len(page.Entities))
		}
		groups := map[string]oracle.Read{}
		for _, e := range page.Entities {
			pk, _ := e["PartitionKey"].(string)
			rk, _ := e["RowKey"].(string)
			if pk != s.partition || rk <= last {
				return nil, fmt.Errorf("%s/%s follows %s", pk, rk, last)
			}
			last = rk
			key, group := fmt.Sprintf("%c/%s/%s", kindEntity, pk, rk), rowGroup(pk, rk)
			if group != "" {
				key = fmt.Sprintf("%c/%s/%s", kindGroup, pk, rk)
			}
			r, err := rowRead(key, e)
			if err != nil {
				return nil, err
			}
			if first, seen := groups[group]; group != "" && seen && first != r {
				return nil, fmt.Errorf("%w: %s %v %s on a page with %v %s", errSplit, key, r.State, r.ETag, first.State, first.ETag)
			}
			groups[group], found[key] = r, r
		}
		if q.From = page.Next; q.From == (rest.Continuation{}) {
			return found, nil
		}
	}
}
