package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/keys"
)

// pageScannedMax bounds the rows that one answer to OpPage walks over, so that rows of other lanes cannot make it long.
const pageScannedMax = 200_000

// Lanes is a set of lanes: bit n is lane n.
type Lanes uint32

// AllLanes has every lane.
const AllLanes = ^Lanes(0)

// Has reports whether a lane is in the set.
func (l Lanes) Has(lane geo.Lane) bool { return lane < geo.LaneCount && l>>lane&1 == 1 }

// With returns the set with one more lane.
func (l Lanes) With(lane geo.Lane) Lanes { return l | 1<<lane }

// Count is how many lanes are in the set.
func (l Lanes) Count() int { return bits.OnesCount32(uint32(l)) }

// Page asks for rows of an account in a range.
type Page struct {
	Account geo.Account
	Range   geo.RangeID
	Lanes   Lanes
	// Start and End are the keys from which on and before which rows are asked for.
	Start, End []byte
	// Values asks for the values, too.
	Values bool
}

// PageRow is a row of a page. Value is nil where none was asked for.
type PageRow struct {
	Row

	Value []byte
}

// Rows reads the next rows of a span at a location, in the order of keys, as they are there now. next is where the span
// goes on, nil at its end. encoded is what ParseSums takes; it is empty where values were asked for.
func Rows(ctx context.Context, at Peer, p Page) (rows []PageRow, encoded, next []byte, err error) {
	e := &end{peer: at, rng: p.Range, wait: clock.Wait}
	a, err := e.ask(ctx, &Question{Op: OpPage, Account: p.Account, Start: p.Start, End: p.End, Lanes: p.Lanes, Values: p.Values})
	if err != nil {
		return nil, nil, nil, err
	}
	if a.Next != nil && (bytes.Compare(a.Next, p.Start) <= 0 || bytes.Compare(a.Next, p.End) >= 0) {
		return nil, nil, nil, fmt.Errorf("%w: a page that does not go on", errMalformed)
	}
	if !p.Values {
		return nil, a.Result, a.Next, nil
	}
	rows, err = parsePage(a.Result)
	return rows, nil, a.Next, err
}

// page answers OpPage.
func (s *Sessions) page(ctx context.Context, r geo.RangeID, q *Question) (a *Answer, err error) {
	if p, _, err := keys.ParseSpan(q.Start, q.End); err != nil || p.Account != q.Account {
		return nil, fmt.Errorf("%w: a page of %x to %x, not in account %s", errQuestion, q.Start, q.End, q.Account)
	}
	snap, _, err := s.o.Stamp.Snapshot(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	it, err := snap.Scan(q.Start, q.End)
	if err != nil {
		return nil, err
	}
	a = &Answer{}
	w := walk{}
	for scanned := 0; it.Next(); scanned++ {
		if scanned == pageScannedMax || len(a.Result) >= resultPerCall {
			a.Next = bytes.Clone(it.Key())
			break
		}
		lane, err := w.laneOf(it.Key())
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		if !q.Lanes.Has(lane) {
			continue
		}
		a.Result = appendRow(a.Result, Row{it.Key(), RowSum(it.Key(), it.Value())})
		if q.Values {
			a.Result = append(binary.AppendUvarint(a.Result, uint64(len(it.Value()))), it.Value()...)
		}
	}
	return a, it.Close()
}

// parsePage decodes the rows of a page with values.
func parsePage(b []byte) (out []PageRow, err error) {
	for c := (cutter{b: b}); len(c.b) > 0; {
		r := PageRow{Row: Row{Key: c.take(c.uvarint())}}
		r.Sum = c.sum()
		r.Value = c.take(c.uvarint())
		if c.failed {
			return nil, fmt.Errorf("%w: a page", errMalformed)
		}
		out = append(out, r)
	}
	return out, nil
}
