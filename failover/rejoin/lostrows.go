package rejoin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// LostRows are rows that lost changes of an account have changed, at its former primary.
type LostRows struct {
	// Keys are those of the rows. Some may come twice.
	Keys [][]byte `json:"keys"`
	// Next is where the next page begins, nil after the last one.
	Next *LostRow `json:"next,omitempty"`
	// Changes are the changes of the rows, each with the first of its rows here.
	Changes []LostRowsOf `json:"changes,omitempty"`
	// Swept come with the last page: prefixes of keys of which the range needs all rows, in their order.
	Swept [][]byte `json:"swept,omitempty"`

	// At the present primary, which leaves rows out of a page: where each of Keys stood; nil if none is left out.
	stood []int
	// rowsOfSwept: Keys are rows of Swept, each of which is a place.
	rowsOfSwept bool
}

// LostRowsOf is a change with rows in a page: the row Keys[At] is its row LostRow.Row, and the next ones follow.
type LostRowsOf struct {
	LostRow

	At int `json:"at,omitempty"`
}

// hasPlaces reports whether a page may begin with any row of this one. That of a former version has no Changes.
func (out *LostRows) hasPlaces() bool { return out.rowsOfSwept || len(out.Changes) > 0 }

// place returns where a page begins that begins with the row Keys[i] of this one.
func (out *LostRows) place(i int) *LostRow {
	switch {
	case i >= len(out.Keys):
		return out.Next
	case out.rowsOfSwept:
		return &LostRow{Change: out.Keys[i]}
	case out.stood != nil:
		i = out.stood[i]
	}
	n := sort.Search(len(out.Changes), func(n int) bool { return out.Changes[n].At > i }) - 1
	of := out.Changes[n]
	return &LostRow{Change: of.Change, Row: of.Row + i - of.At}
}

// LostRow is a place in the lost changes of an account in a range, and behind them in the rows of Swept.
type LostRow struct {
	// Change is the key of a change, Row counts its rows; or the key of a row that is sent since all of its container are.
	Change []byte `json:"change"`
	Row    int    `json:"row,omitempty"`
}

// lostRowsMax is how many rows one page has at most, lostRowsBytes how many bytes of keys, but for its last row.
const lostRowsMax = 512

// LostRows implements Peer at the former primary.
func (j *Rejoiner) LostRows(ctx context.Context, a catalog.Account, id geo.RangeID, from LostRow) (LostRows, error) {
	cmd := &lostRows{lostRowsAt: lostRowsAt{Account: a.Name, By: a.GeoEpoch(), From: from}}
	if err := j.stamp.Submit(ctx, id, cmd); err != nil {
		return LostRows{}, err // It may be evaluated yet.
	}
	return cmd.out, nil
}

// lostRows is the command that reads a page of LostRows. It changes nothing.
type lostRows struct {
	lostRowsAt
	out LostRows
}

// lostRowsAt is an encoded lostRows.
type lostRowsAt struct {
	Account geo.Account `json:"account"`
	By      geo.Epoch   `json:"by"`
	From    LostRow     `json:"from"`
}

// Evaluate implements ranges.Command. A range without a claim has kept nothing: Rejoin has found that it had nothing alone.
func (c *lostRows) Evaluate(tx *ranges.Tx) error {
	c.out = LostRows{}
	claim, err := claimOf(tx, tx.Range(), c.Account, c.By)
	if err != nil || claim == nil {
		return err
	}
	s := ranges.Service(tx.Range())
	if c.From.swept(s, c.Account) {
		return c.out.fillSwept(claim, s, c.Account, c.From)
	}
	of := geo.Stream{Account: c.Account, Epoch: geo.Epoch{Location: tx.Location()}, Range: tx.Range()}
	err = c.out.fill(claim.Streams, of, c.From, func(key []byte) (change.Lost, error) { return lostAt(tx, key) })
	if err != nil || c.out.Next != nil {
		return err
	}
	return c.out.fillSwept(claim, s, c.Account, c.From)
}

// fill makes the page of the lost changes of streams that begins at from, which may be zero. of is a stream without its
// number and lane, read returns the change of a key. The changes before from are not walked over: the page is as costly at
// the end as at the beginning. The streams stand in their own sequence, which is not that of their keys.
func (out *LostRows) fill(streams []change.LostStream, of geo.Stream, from LostRow, read func(key []byte) (change.Lost, error)) error {
	begun, size := len(from.Change) == 0, 0
	for _, s := range streams {
		of.Epoch.Number, of.Lane = s.Number, s.Lane
		prefix := keys.Lost(ranges.Service(of.Range), of).Append(nil)
		n, row := s.After+1, 0
		if !begun {
			at, ok := lostNumber(from.Change, prefix)
			if begun = ok && at > s.After && at <= s.To; !begun {
				continue
			}
			n, row = at, from.Row
		}
		for ; n <= s.To; n, row = n+1, 0 {
			key := keys.AppendUint64(bytes.Clone(prefix), uint64(n))
			lost, err := read(key)
			if err != nil {
				return fmt.Errorf("lost change %d of stream %s: %w", n, of, err)
			}
			if row < len(lost.Ops) {
				out.Changes = append(out.Changes, LostRowsOf{LostRow{key, row}, len(out.Keys)})
			}
			for ; row < len(lost.Ops); row++ {
				if len(out.Keys) == lostRowsMax || size >= record.KeysBytes {
					out.Next = &LostRow{Change: key, Row: row}
					return nil
				}
				k := append(bytes.Clone(lost.Partition), lost.Ops[row].Row...)
				out.Keys, size = append(out.Keys, k), size+len(k)
			}
		}
	}
	if !begun {
		return errLostPlace
	}
	return nil
}

// errLostPlace refuses a page that would begin at no change: to answer that there are no more would leave rows out.
var errLostPlace = storageerr.InvalidInput.Saying("the page of lost changes begins at a change that is not one of them")

// lostNumber returns the number of the lost change of a key, if that is one of the stream with the prefix.
func lostNumber(key, prefix []byte) (n geo.Seq, ok bool) {
	rest, ok := bytes.CutPrefix(key, prefix)
	if !ok {
		return 0, false
	}
	v, rest, err := keys.CutUint64(rest)
	return geo.Seq(v), err == nil && len(rest) == 0
}

func lostAt(get kv.Getter, key []byte) (change.Lost, error) {
	b, ok, err := get.Get(key)
	if err == nil && !ok {
		err = errors.New("it is not kept any more")
	}
	if err != nil {
		return change.Lost{}, err
	}
	return change.ParseLost(b)
}

// kindLostRows is the kind of lostRows. It is on the wire: never rename it.
const kindLostRows = "directory.lostRows"

// Rehearses implements ranges.Rehearsed: it reads many rows, not side by side.
func (*lostRows) Rehearses() (always bool) { return true }

// Kind implements ranges.Portable.
func (c *lostRows) Kind() string { return kindLostRows }

// Encode implements ranges.Portable.
func (c *lostRows) Encode() []byte {
	b, _ := json.Marshal(c.lostRowsAt) // It has no value that JSON lacks.
	return b
}

func parseLostRowsAt(b []byte) (*lostRows, error) {
	var c lostRows
	if err := json.Unmarshal(b, &c.lostRowsAt); err != nil {
		return nil, errors.Join(record.ErrCommand, err)
	}
	if !c.Account.Valid() || c.From.Row < 0 {
		return nil, fmt.Errorf("%w: rows of account %q from row %d", record.ErrCommand, c.Account, c.From.Row)
	}
	return &c, nil
}

// EncodeResult implements ranges.Portable.
func (c *lostRows) EncodeResult() []byte {
	b, _ := json.Marshal(c.out) // It has no value that JSON lacks.
	return b
}

// DecodeResult implements ranges.Portable.
func (c *lostRows) DecodeResult(b []byte) error {
	c.out = LostRows{}
	return json.Unmarshal(b, &c.out)
}

// LostRowsBody asks for a page of LostRows on the wire.
type LostRowsBody struct {
	// Account is the record as the catalog stores it.
	Account json.RawMessage `json:"account"`
	Range   geo.RangeID     `json:"range"`
	From    LostRow         `json:"from"`
}

func parseLostRows(body []byte, here, other geo.Location) (*catalog.Account, LostRowsBody, error) {
	var in LostRowsBody
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, in, err
	}
	a, err := ParseRejoined(in.Account, here, other)
	if err == nil && in.From.Row < 0 {
		err = fmt.Errorf("row %d of a change", in.From.Row)
	}
	return a, in, err
}

// AnswerLostRows answers a call of the other location for a page of LostRows.
func (j *Rejoiner) AnswerLostRows(ctx context.Context, body []byte) ([]byte, error) {
	a, in, err := parseLostRows(body, j.stamp.Location(), j.other)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", MethodLostRows, err)
	}
	out, err := j.LostRows(ctx, *a, in.Range, in.From)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", MethodLostRows, err)
	}
	return json.Marshal(out)
}
