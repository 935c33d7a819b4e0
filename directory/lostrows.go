package directory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/services/catalog"
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
}

// LostRow is a place in the lost changes of an account in a range.
type LostRow struct {
	// Change is the key of a change, Row counts its rows.
	Change []byte `json:"change"`
	Row    int    `json:"row,omitempty"`
}

// lostRowsMax is how many rows one page has at most, lostRowsBytes how many bytes of keys, but for its last row.
const (
	lostRowsMax   = 512
	lostRowsBytes = 256 << 10
)

// LostRows implements Peer at the former primary.
func (d *Directory) LostRows(ctx context.Context, a catalog.Account, id geo.RangeID, from LostRow) (LostRows, error) {
	cmd := &lostRows{lostRowsAt: lostRowsAt{Account: a.Name, By: a.GeoEpoch(), From: from}}
	err := d.stamp.Submit(ctx, id, cmd)
	return cmd.out, err
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
	size := 0
	for _, s := range claim.Streams {
		of := geo.Stream{Account: c.Account, Epoch: geo.Epoch{Number: s.Number, Location: tx.Location()}, Range: tx.Range(), Lane: s.Lane}
		prefix := keys.Lost(ranges.Service(tx.Range()), of).Append(nil)
		for n := s.After + 1; n <= s.To; n++ {
			key := keys.AppendUint64(bytes.Clone(prefix), uint64(n))
			if bytes.Compare(key, c.From.Change) < 0 {
				continue
			}
			lost, err := lostAt(tx, key)
			if err != nil {
				return fmt.Errorf("lost change %d of stream %s: %w", n, of, err)
			}
			row := 0
			if bytes.Equal(key, c.From.Change) {
				row = c.From.Row
			}
			for ; row < len(lost.Ops); row++ {
				if len(c.out.Keys) == lostRowsMax || size >= lostRowsBytes {
					c.out.Next = &LostRow{Change: key, Row: row}
					return nil
				}
				k := append(bytes.Clone(lost.Partition), lost.Ops[row].Row...)
				c.out.Keys, size = append(c.out.Keys, k), size+len(k)
			}
		}
	}
	return nil
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
		return nil, errors.Join(errCommand, err)
	}
	if !c.Account.Valid() || c.From.Row < 0 {
		return nil, fmt.Errorf("%w: rows of account %q from row %d", errCommand, c.Account, c.From.Row)
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

// lostRowsBody asks for a page of LostRows on the wire.
type lostRowsBody struct {
	// Account is the record as the catalog stores it.
	Account json.RawMessage `json:"account"`
	Range   geo.RangeID     `json:"range"`
	From    LostRow         `json:"from"`
}

func parseLostRows(body []byte, here, other geo.Location) (*catalog.Account, lostRowsBody, error) {
	var in lostRowsBody
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, in, err
	}
	a, err := parseRejoined(in.Account, here, other)
	if err == nil && in.From.Row < 0 {
		err = fmt.Errorf("row %d of a change", in.From.Row)
	}
	return a, in, err
}

// answerLostRows answers a call of the other location for a page of LostRows.
func (d *Directory) answerLostRows(ctx context.Context, body []byte) ([]byte, error) {
	a, in, err := parseLostRows(body, d.stamp.Location(), d.other)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", methodLostRows, err)
	}
	out, err := d.LostRows(ctx, *a, in.Range, in.From)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", methodLostRows, err)
	}
	return json.Marshal(out)
}
