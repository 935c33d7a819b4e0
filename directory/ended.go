package directory

import (
	"context"
	"fmt"

	"antipode/geo"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// endStreams commits that what the outbox of a range holds of an account's former epochs is dropped: with known, in the
// knowledge that the other location has the present one.
// It is repeated while there is more than one group may delete.
type endStreams struct {
	account     geo.Account
	known, more bool
}

// drop drops the streams of an account's former epochs from the outboxes of all ranges but the catalog. The other
// location may not know of the present one: end follows once it does.
func (d *Directory) drop(ctx context.Context, a geo.Account) error {
	return d.endStreams(ctx, d.stamp.Route().Data(a), endStreams{account: a})
}

// end ends the streams of an account's former epochs in every range: the other location has the present one.
func (d *Directory) end(ctx context.Context, a geo.Account) error {
	return d.endStreams(ctx, d.stamp.Route().Everywhere(a), endStreams{account: a, known: true})
}

func (d *Directory) endStreams(ctx context.Context, in []route.Range, cmd endStreams) error {
	for _, r := range in {
		for cmd.more = true; cmd.more; {
			if err := d.stamp.Submit(ctx, r.ID, &cmd); err != nil {
				return fmt.Errorf("the outbox of the %s range: %w", r.Service, err)
			}
		}
	}
	return nil
}

// Evaluate implements ranges.Command.
func (c *endStreams) Evaluate(tx *ranges.Tx) (err error) {
	if c.known {
		c.more, err = tx.EndStreams(c.account)
	} else {
		c.more, err = tx.DropStreams(c.account)
	}
	return err
}

// Reclaims implements ranges.Reclaimer.
func (c *endStreams) Reclaims() {}

// The kinds of endStreams, with known and without. They are on the wire: never rename them.
const (
	kindEndStreams  = "directory.endStreams"
	kindDropStreams = "directory.dropStreams"
)

// Kind implements ranges.Portable.
func (c *endStreams) Kind() string {
	if c.known {
		return kindEndStreams
	}
	return kindDropStreams
}

// Encode implements ranges.Portable.
func (c *endStreams) Encode() []byte { return []byte(c.account) }

func parseEndStreams(b []byte, known bool) (*endStreams, error) {
	c := &endStreams{account: geo.Account(b), known: known}
	if !c.account.Valid() {
		return nil, fmt.Errorf("%w: account %q", errCommand, c.account)
	}
	return c, nil
}

// EncodeResult implements ranges.Portable: a byte if there is more, nothing else.
func (c *endStreams) EncodeResult() []byte {
	if c.more {
		return []byte{1}
	}
	return nil
}

// DecodeResult implements ranges.Portable.
func (c *endStreams) DecodeResult(b []byte) error {
	c.more = len(b) > 0
	return nil
}
