package directory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/kv"
)

// Name is what is known of an account's place: its names lead to the location of the epoch, and to the
// secondary.
type Name struct {
	Account geo.Account
	// Epoch has the primary as its location.
	Epoch      geo.Epoch
	Secondary  geo.Location
	Redundancy catalog.Redundancy
}

// namesPage bounds the names of an answer.
const namesPage = 1000

// Names lists the complete accounts of a catalog that changed since a version: name servers ask twice a second. It
// remembers the accounts of the last walk over them, so that it is not a row's format that has to say when it changed.
// Methods may be called concurrently.
//
// A version is of one Names: it has its incarnation, by which another process's, or a former one's, is not taken for
// its own.
type Names struct {
	d           *Directory
	incarnation uint64

	// turn has one element, which the call takes that uses the fields below: it may wait for the catalog.
	turn chan struct{}
	// walked is what the last walk was over.
	walked []*indexed
	// walk counts the walks that found a change; it is the version that answers have.
	walk uint64
	// names are all that was found, in their sequence; rows are their rows. A name stays: accounts cannot be
	// deleted, and a copy that is made again has its row again.
	names []geo.Account
	rows  map[geo.Account]*walkedName
}

// walkedName is a row as a walk found it.
type walkedName struct {
	Name
	// account is what the index had: another one, where the row was read again.
	account *catalog.Account
	// changed is the walk that found it changed.
	changed uint64
}

// NewNames returns a list of the accounts of a directory. incarnation is a random number of the process.
func NewNames(d *Directory, incarnation uint64) *Names {
	n := &Names{d: d, incarnation: incarnation, turn: make(chan struct{}, 1), rows: map[geo.Account]*walkedName{}}
	n.turn <- struct{}{}
	return n
}

// Since returns a page of the accounts that changed since a version, by name: those behind after. Of an empty version,
// and one of another process, it returns all accounts. next is the name after which the next page begins, empty at the
// end.
//
// The list is read under the catalog's lease (R5): it has all that was acknowledged before the call. What changes
// while pages are read is in a later list, if that is asked for with the version of the first page.
func (n *Names) Since(ctx context.Context, since string, after geo.Account) (list []Name, version string, next geo.Account, err error) {
	select {
	case <-n.turn:
	case <-ctx.Done():
		return nil, "", "", ctx.Err()
	}
	defer func() { n.turn <- struct{}{} }()
	if err := n.update(ctx); err != nil {
		return nil, "", "", err
	}
	version = n.version()
	above, known := n.parse(since)
	if known && above == n.walk {
		return nil, version, "", nil
	}
	at, found := slices.BinarySearch(n.names, after)
	if found {
		at++
	}
	for _, name := range n.names[at:] {
		row := n.rows[name]
		if row.changed <= above {
			continue
		}
		if len(list) == namesPage {
			return list, version, list[namesPage-1].Account, nil
		}
		list = append(list, row.Name)
	}
	return list, version, "", nil
}

func (n *Names) version() string { return fmt.Sprintf("%016x-%d", n.incarnation, n.walk) }

// parse returns the walk of a version, 0 for one that is not of this value.
func (n *Names) parse(version string) (walk uint64, known bool) {
	incarnation, number, _ := strings.Cut(version, "-")
	walk, err := strconv.ParseUint(number, 10, 64)
	if err != nil || incarnation != fmt.Sprintf("%016x", n.incarnation) || walk > n.walk {
		return 0, false
	}
	return walk, true
}

// update walks over the accounts of the catalog, unless none has changed since the last walk.
func (n *Names) update(ctx context.Context) error {
	all, err := n.d.listed(ctx, func(kv.Snapshot) error { return nil })
	if err != nil || len(all) == 0 || len(n.walked) > 0 && &all[0] == &n.walked[0] {
		return err
	}
	walk, before := n.walk+1, len(n.names)
	for _, i := range all {
		a := i.account
		row := n.rows[a.Name]
		if !a.Active || row != nil && row.account == a {
			continue
		}
		now := Name{a.Name, a.GeoEpoch(), a.Secondary, a.Redundancy}
		if row == nil {
			row = &walkedName{}
			n.rows[a.Name] = row
			n.names = append(n.names, a.Name)
		}
		if row.account = a; row.Name != now {
			row.Name, row.changed, n.walk = now, walk, walk
		}
	}
	if len(n.names) > before {
		slices.Sort(n.names)
	}
	n.walked = all
	return nil
}
