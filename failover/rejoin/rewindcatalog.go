package rejoin

import (
	"bytes"
	"context"
	"errors"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// A former primary whose lost changes have created, changed or deleted containers or tables is rewound in its catalog first
// (R22). The record of the account itself is the present primary's from Adopt on. Until the catalog is rewound the gates of
// all other ranges stay closed there, those that have nothing alone too: by the lost catalog a record of a container that lives
// would be left out as one of a deleted container (R14), and a sweep would delete its rows.
//
//	rewinding ──Rejoin: the gate of the catalog opens; the rest waits──>
//	the rows of the catalog that lost changes have changed, in pages, as those of any range
//	  ──the other location has applied these──>
//	Rejoin, once more, at the former primary:
//	  ──the claim of its catalog: it is rewound; what is applied by a replica that lags waits for that──>
//	  ──each range compares the generations that it has with the catalog: see regain──>
//	  ──the range forgets which generations it has closed, and names those of which it has deleted the rows since, in the
//	    group that opens its gate──>
//	joined
//
// What becomes of a generation in a range whose gate is closed in the epoch, by the catalog that is rewound:
//
//   - The catalog does not have it: a lost change has created it. Its rows are all lost changes, which were kept. They
//     are deleted.
//   - It lives, and the range has closed it: its deletion was lost. It takes changes again. If a sweep had deleted its rows,
//     which it does in one group, the present primary sends all of them. Where that are more than sweptMax generations in a
//     range the copy is made again instead, by an operator's command.
//   - It is over: the sweep that follows deletes its rows, as at any secondary.
//
// The present primary sends no rows of generations that it does not have: they would wait there for ever.

// sweptMax is how many generations of a range are sent whole at most.
const sweptMax = 512

// errCatalogLost: the catalog of the former primary is to be rewound before it takes anything else.
var ErrCatalogLost = errors.New("directory: the former primary has containers of the account that the present one does not have, or lacks some")

// lostPage returns the next page of rows of a range that the former primary of an account lacks, and where the next one
// begins, nil for none.
func (j *Rejoiner) lostPage(ctx context.Context, a catalog.Account, r route.Range, from LostRow) (LostRows, error) {
	page, err := j.peer.LostRows(ctx, a, r.ID, from)
	if err != nil {
		return page, err
	}
	switch {
	case page.Next != nil || len(page.Swept) == 0:
	case from.swept(r.Service, a.Name):
		page, err = j.sweptRows(ctx, r, page.Swept, from.Change)
	default:
		page.Next = &LostRow{Change: page.Swept[0]}
	}
	if err == nil {
		err = j.ours(ctx, &page)
	}
	return page, err
}

// ours leaves out of a page rows of generations that the catalog here does not have, and the record of the account.
func (j *Rejoiner) ours(ctx context.Context, page *LostRows) error {
	var out [][]byte
	var stood []int
	var last keys.Partition
	var known bool
	err := j.stamp.Read(ctx, j.stamp.Route().Catalog(), func(s ranges.State) error {
		out, stood, last = nil, nil, keys.Partition{}
		for n, key := range page.Keys {
			p, _, err := keys.ParsePartition(key)
			if err == nil && p == catalog.AccountPartition(p.Account) {
				continue
			}
			if err != nil || p.Generation == (keys.Generation{}) {
				out, stood = append(out, key), append(stood, n)
				continue
			}
			if p.Object = ""; p != last {
				found, err := catalog.Lookup(s, p.Service, p.Account, p.Container)
				if err != nil {
					return err
				}
				last, known = p, found != nil && found.Generation() == p.Generation
			}
			if known {
				out, stood = append(out, key), append(stood, n)
			}
		}
		return nil
	})
	page.Keys, page.stood = out, stood
	return err
}

// sweptRows returns a page of the rows that a range here has of generations, from a key on.
func (j *Rejoiner) sweptRows(ctx context.Context, r route.Range, prefixes [][]byte, from []byte) (out LostRows, err error) {
	if bytes.Compare(from, prefixes[0]) < 0 {
		from = prefixes[0]
	}
	page, err := j.stamp.Keys(ctx, r, record.Span{From: from, End: keys.PrefixEnd(prefixes[0])})
	switch out.Keys, out.rowsOfSwept = page.Keys, true; {
	case page.Next != nil:
		out.Next = &LostRow{Change: page.Next}
	case len(prefixes) > 1:
		out.Next = &LostRow{Change: prefixes[1]}
	}
	return out, err
}

// swept reports whether a place is in a generation that is sent whole. Every other one is in a lost change.
func (l *LostRow) swept(s geo.Service, a geo.Account) bool {
	return bytes.HasPrefix(l.Change, keys.AppendAccount(nil, s, a))
}

// fillSwept sets the generations that are sent whole, of which rows from a key on are needed; all for a place in the lost
// changes.
func (out *LostRows) fillSwept(claim *change.LostClaim, s geo.Service, a geo.Account, from LostRow) error {
	for _, c := range claim.Swept {
		p := keys.AppendContainer(nil, s, a, c.Name, keys.Generation{Epoch: c.Epoch, Created: c.Created})
		if !from.swept(s, a) || bytes.Compare(from.Change, keys.PrefixEnd(p)) < 0 {
			out.Swept = append(out.Swept, p)
		}
	}
	if from.swept(s, a) && (len(out.Swept) == 0 || bytes.Compare(from.Change, out.Swept[0]) < 0) {
		return errLostPlace
	}
	return nil
}

// catalogRejoins commits that the catalog of this location, the former primary of an account, is rewound, once the present
// primary says so. lost reports whether it had diverged: every call finds that.
func (j *Rejoiner) catalogRejoins(ctx context.Context, a catalog.Account) (lost bool, err error) {
	var claim *change.LostClaim
	err = j.stamp.Read(ctx, j.stamp.Route().Catalog(), func(s ranges.State) error {
		claim, err = catalog.LostClaim(s, geo.Catalog, a.Name, a.GeoEpoch())
		return err
	})
	switch {
	case err != nil || claim == nil:
		return false, err
	case claim.Rewound:
		return true, nil
	case !a.Operation.RewoundCatalog:
		return true, ErrCatalogLost
	}
	return true, j.stamp.Commit(ctx, catalogRewound{of: a})
}

// catalogRewound commits that the catalog has the containers of the present primary.
type catalogRewound struct{ of catalog.Account }

// Evaluate implements ranges.Command.
func (c catalogRewound) Evaluate(tx *ranges.Tx) error {
	claim, err := claimOf(tx, tx.Range(), c.of.Name, c.of.GeoEpoch())
	if err != nil {
		return err
	}
	if gate := tx.Gate(c.of.Name); claim == nil || gate.Epoch != c.of.GeoEpoch() || !gate.Open {
		return kv.ErrBusy
	}
	claim.Rewound = true
	return stageClaim(tx, tx.Timestamp(0), c.of.Name, *claim)
}

// Reclaims implements ranges.Reclaimer: see record.Finish.
func (catalogRewound) Reclaims() {}
