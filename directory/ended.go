package directory

import (
	"context"
	"fmt"

	"antipode/geo"
	"antipode/stamp/change"
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
	return d.whole(ctx, d.stamp.Route().Data(a), &endStreams{account: a})
}

// end ends the streams of an account's epochs before one that the other location has in all its ranges, and forgets
// them; the zero epoch forgets none.
func (d *Directory) end(ctx context.Context, in []route.Range, a geo.Account, known geo.Epoch) error {
	if known == (geo.Epoch{}) {
		return d.whole(ctx, in, &endStreams{account: a, known: true})
	}
	return d.whole(ctx, in, &forgetStreams{account: a, known: known})
}

// whole commits a command in some ranges, in each as often as there is more.
func (d *Directory) whole(ctx context.Context, in []route.Range, cmd interface {
	ranges.Portable
	hasMore() bool
},
) error {
	for _, r := range in {
		for again := true; again; again = cmd.hasMore() {
			if err := d.stamp.Submit(ctx, r.ID, cmd); err != nil {
				return fmt.Errorf("the outbox of the %s range: %w", r.Service, err)
			}
		}
	}
	return nil
}

func (c *endStreams) hasMore() bool { return c.more }

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

// The kinds of endStreams, with known and without, and of forgetStreams. They are on the wire: never rename them.
const (
	kindEndStreams    = "directory.endStreams"
	kindDropStreams   = "directory.dropStreams"
	kindForgetStreams = "directory.forgetStreams"
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
func (c *endStreams) EncodeResult() []byte { return encodeMore(c.more) }

func encodeMore(more bool) []byte {
	if more {
		return []byte{1}
	}
	return nil
}

// DecodeResult implements ranges.Portable.
func (c *endStreams) DecodeResult(b []byte) error {
	c.more = len(b) > 0
	return nil
}

// forgetStreams is endStreams, after which a range forgets the streams of an account's epochs before known, which the
// other location has. It is repeated while there are more than one group may delete or forget.
type forgetStreams struct {
	account geo.Account
	known   geo.Epoch
	more    bool
}

// Evaluate implements ranges.Command.
func (c *forgetStreams) Evaluate(tx *ranges.Tx) error {
	more, err := tx.EndStreams(c.account)
	c.more = tx.ForgetStreams(c.account, c.known) || more
	return err
}

func (c *forgetStreams) hasMore() bool { return c.more }

// Reclaims implements ranges.Reclaimer.
func (c *forgetStreams) Reclaims() {}

// Kind implements ranges.Portable.
func (c *forgetStreams) Kind() string { return kindForgetStreams }

// Encode implements ranges.Portable: as a setGate of the epoch alone.
func (c *forgetStreams) Encode() []byte {
	return (&setGate{account: c.account, gate: change.Gate{Epoch: c.known}}).Encode()
}

func parseForgetStreams(b []byte) (*forgetStreams, error) {
	c, err := parseSetGate(b)
	if err != nil {
		return nil, err
	}
	if c.after != 0 || c.gate != (change.Gate{Epoch: c.gate.Epoch}) || c.gate.Epoch == (geo.Epoch{}) {
		return nil, fmt.Errorf("%w: epoch %+v", errCommand, c.gate)
	}
	return &forgetStreams{account: c.account, known: c.gate.Epoch}, nil
}

// EncodeResult implements ranges.Portable: as that of endStreams.
func (c *forgetStreams) EncodeResult() []byte { return encodeMore(c.more) }

// DecodeResult implements ranges.Portable.
func (c *forgetStreams) DecodeResult(b []byte) error {
	c.more = len(b) > 0
	return nil
}
