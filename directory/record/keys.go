package record

import (
	"context"
	"encoding/json"
	"errors"

	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// KeysOf is the command that lists keys of a range, wherever its leader is. It changes nothing.
type KeysOf struct {
	Span
	Out Page
}

type (
	// Span is an encoded KeysOf.
	Span struct {
		// From and End are the span.
		From []byte `json:"from"`
		End  []byte `json:"end"`
		// Generations lists the prefixes of those that have a row in the span, else each key.
		Generations bool `json:"generations,omitempty"`
	}
	// Page is the result of a KeysOf.
	Page struct {
		Keys [][]byte `json:"keys"`
		// Next is where the next page begins, nil after the last one.
		Next []byte `json:"next,omitempty"`
	}
)

// keysOfMax is how many keys a page has at most, and GenerationsMax how many
// generations, each of which is a search. KeysBytes bounds a page, too.
const (
	keysOfMax      = 512
	GenerationsMax = 256
)

// Keys returns a page of the keys of a span in a range.
func (s *Store) Keys(ctx context.Context, r route.Range, of Span) (Page, error) {
	cmd := &KeysOf{Span: of}
	if err := s.Submit(ctx, r.ID, cmd); err != nil {
		return Page{}, err // It may be evaluated yet.
	}
	return cmd.Out, nil
}

// Evaluate implements ranges.Command.
func (c *KeysOf) Evaluate(tx *ranges.Tx) error {
	c.Out = Page{}
	if c.Generations {
		return c.generations(tx)
	}
	size := 0
	return tx.Rows(c.From, c.End, func(key, _ []byte) bool {
		if len(c.Out.Keys) == keysOfMax || size >= KeysBytes {
			c.Out.Next = key
			return false
		}
		c.Out.Keys, size = append(c.Out.Keys, key), size+len(key)
		return true
	})
}

func (c *KeysOf) generations(tx *ranges.Tx) error {
	for from := c.From; ; {
		var first []byte
		err := tx.Rows(from, c.End, func(key, _ []byte) bool {
			first = key
			return false
		})
		if err != nil || first == nil {
			return err
		}
		if len(c.Out.Keys) == GenerationsMax {
			c.Out.Next = first
			return nil
		}
		p, _, err := keys.ParsePartition(first)
		if err != nil {
			return err
		}
		prefix := ContainerPrefix(p)
		c.Out.Keys, from = append(c.Out.Keys, prefix), keys.PrefixEnd(prefix)
	}
}

// KindKeysOf is the kind of KeysOf. It is on the wire: never rename it.
const KindKeysOf = "directory.keysOf"

// Rehearses implements ranges.Rehearsed: it reads many rows, not side by side.
func (*KeysOf) Rehearses() (always bool) { return true }

// Kind implements ranges.Portable.
func (c *KeysOf) Kind() string { return KindKeysOf }

// Encode implements ranges.Portable.
func (c *KeysOf) Encode() []byte {
	b, _ := json.Marshal(c.Span) // It has no value that JSON lacks.
	return b
}

// ParseKeysOf parses an encoded KeysOf.
func ParseKeysOf(b []byte) (*KeysOf, error) {
	var c KeysOf
	if err := json.Unmarshal(b, &c.Span); err != nil {
		return nil, errors.Join(ErrCommand, err)
	}
	return &c, nil
}

// EncodeResult implements ranges.Portable.
func (c *KeysOf) EncodeResult() []byte {
	b, _ := json.Marshal(c.Out) // It has no value that JSON lacks.
	return b
}

// DecodeResult implements ranges.Portable.
func (c *KeysOf) DecodeResult(b []byte) error {
	c.Out = Page{}
	return json.Unmarshal(b, &c.Out)
}

// KeysBytes is how many bytes of keys a page has at most, but for its last key.
const KeysBytes = 256 << 10

// WipesMax is how many generations one step deletes at most.
const WipesMax = 16

// ContainerPrefix is the prefix of the keys of a generation.
func ContainerPrefix(p keys.Partition) []byte {
	return keys.AppendContainer(nil, p.Service, p.Account, p.Container, p.Generation)
}
