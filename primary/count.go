package primary

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// CountRows returns what the next rows of an account add to the size of its image in a range, from a key
// on, nil for the first. next is where it goes on, nil at the end. The leader of the range counts, wherever it is: as
// many rows as a step of an image copies.
func (p *Primary) CountRows(ctx context.Context, d route.Range, a geo.Account, from []byte) (size change.ImageSize, next []byte, err error) {
	cmd := &count{body: countBody{Account: a, Service: d.Service, From: from}}
	if err := p.stamp.Submit(ctx, d.ID, cmd); err != nil {
		return change.ImageSize{}, nil, err // It may be evaluated yet.
	}
	return cmd.out.Size, cmd.out.Next, nil
}

// count is the command of CountRows. It changes nothing.
type count struct {
	body countBody
	out  countOut
}

// countBody is an encoded count.
type countBody struct {
	Account geo.Account
	Service geo.Service
	From    []byte `json:",omitempty"`
}

// countOut is the outcome of a count.
type countOut struct {
	Size change.ImageSize
	Next []byte `json:",omitempty"`
}

// Evaluate implements ranges.Command.
func (c *count) Evaluate(tx *ranges.Tx) error {
	c.out = countOut{}
	from, to := accountRows(tx, c.body.Service, c.body.Account)
	if c.body.From != nil {
		from = c.body.From
	}
	var failed error
	err := tx.Rows(from, to, func(key, value []byte) bool {
		if c.out.Size.Rows >= imageRowsMax || c.out.Size.Bytes >= imageBytesMax {
			c.out.Next = key
			return false
		}
		var r row
		if r, failed = rowOf(key, value, true); failed == nil {
			c.out.Size = c.out.Size.Add(sizeOf(key, r))
		}
		return failed == nil
	})
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("count of the rows of account %s: %w", c.body.Account, err)
	}
	return nil
}

// kindCount is the kind of count. It is on the wire: never rename it.
const kindCount = "primary.count"

// errCount reports bytes that are no count, or no outcome of one.
var errCount = errors.New("primary: malformed count")

// Rehearses implements ranges.Rehearsed.
func (*count) Rehearses() (always bool) { return false }

// Kind implements ranges.Portable.
func (c *count) Kind() string { return kindCount }

// Encode implements ranges.Portable.
func (c *count) Encode() []byte {
	b, _ := json.Marshal(c.body) // It has no value that JSON lacks.
	return b
}

func parseCount(b []byte) (ranges.Portable, error) {
	c := &count{}
	if err := json.Unmarshal(b, &c.body); err != nil {
		return nil, fmt.Errorf("%w: %w", errCount, err)
	}
	if !c.body.Account.Valid() {
		return nil, fmt.Errorf("%w: account %q", errCount, c.body.Account)
	}
	return c, nil
}

// EncodeResult implements ranges.Portable.
func (c *count) EncodeResult() []byte {
	b, _ := json.Marshal(c.out) // It has no value that JSON lacks.
	return b
}

// DecodeResult implements ranges.Portable.
func (c *count) DecodeResult(b []byte) error {
	var out countOut
	if err := json.Unmarshal(b, &out); err != nil {
		return fmt.Errorf("%w: %w", errCount, err)
	}
	c.out = out
	return nil
}
