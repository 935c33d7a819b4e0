package directory

import (
	"context"
	"encoding/json"
	"errors"

	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// keysOf is the command that lists keys of a range, wherever its leader is. It changes nothing.
type keysOf struct {
	keysOfBody
	out keysOfResult
}

// keysOfBody is an encoded keysOf, and keysOfResult its result.
type (
	keysOfBody struct {
		// From and End are the span.
		From []byte `json:"from"`
		End  []byte `json:"end"`
		// Generations lists the prefixes of those that have a row in the span, else each key.
		Generations bool `json:"generations,omitempty"`
	}
	keysOfResult struct {
		Keys [][]byte `json:"keys"`
		// Next is where the next page begins, nil after the last one.
		Next []byte `json:"next,omitempty"`
	}
)

// keysOfMax is how many keys a page has at most, lostRowsBytes how many bytes, but for the last key; generationsMax how many
// generations, each of which is a search.
const (
	keysOfMax      = 512
	generationsMax = 256
)

// keysOf returns a page of the keys of a span in a range.
func (d *Directory) keysOf(ctx context.Context, r route.Range, of keysOfBody) (keysOfResult, error) {
	cmd := &keysOf{keysOfBody: of}
	if err := d.stamp.Submit(ctx, r.ID, cmd); err != nil {
		return keysOfResult{}, err // It may be evaluated yet.
	}
	return cmd.out, nil
}

// Evaluate implements ranges.Command.
func (c *keysOf) Evaluate(tx *ranges.Tx) error {
	c.out = keysOfResult{}
	if c.Generations {
		return c.generations(tx)
	}
	size := 0
	return tx.Rows(c.From, c.End, func(key, _ []byte) bool {
		if len(c.out.Keys) == keysOfMax || size >= lostRowsBytes {
			c.out.Next = key
			return false
		}
		c.out.Keys, size = append(c.out.Keys, key), size+len(key)
		return true
	})
}

func (c *keysOf) generations(tx *ranges.Tx) error {
	for from := c.From; ; {
		var first []byte
		err := tx.Rows(from, c.End, func(key, _ []byte) bool {
			first = key
			return false
		})
		if err != nil || first == nil {
			return err
		}
		if len(c.out.Keys) == generationsMax {
			c.out.Next = first
			return nil
		}
		p, _, err := keys.ParsePartition(first)
		if err != nil {
			return err
		}
		prefix := containerPrefix(p)
		c.out.Keys, from = append(c.out.Keys, prefix), keys.PrefixEnd(prefix)
	}
}

// kindKeysOf is the kind of keysOf. It is on the wire: never rename it.
const kindKeysOf = "directory.keysOf"

// Rehearses implements ranges.Rehearsed: it reads many rows, not side by side.
func (*keysOf) Rehearses() (always bool) { return true }

// Kind implements ranges.Portable.
func (c *keysOf) Kind() string { return kindKeysOf }

// Encode implements ranges.Portable.
func (c *keysOf) Encode() []byte {
	b, _ := json.Marshal(c.keysOfBody) // It has no value that JSON lacks.
	return b
}

func parseKeysOf(b []byte) (*keysOf, error) {
	var c keysOf
	if err := json.Unmarshal(b, &c.keysOfBody); err != nil {
		return nil, errors.Join(errCommand, err)
	}
	return &c, nil
}

// EncodeResult implements ranges.Portable.
func (c *keysOf) EncodeResult() []byte {
	b, _ := json.Marshal(c.out) // It has no value that JSON lacks.
	return b
}

// DecodeResult implements ranges.Portable.
func (c *keysOf) DecodeResult(b []byte) error {
	c.out = keysOfResult{}
	return json.Unmarshal(b, &c.out)
}
