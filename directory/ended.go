package directory

import (
	"context"
	"fmt"

	"antipode/geo"
	"antipode/stamp/ranges"
)

// endStreams commits that what the outbox of a range holds of an account's former epochs is dropped.
// It is repeated while there is more than one group may delete.
type endStreams struct {
	account geo.Account
	more    bool
}

// end drops the streams of an account's former epochs from the outbox of a service's range.
func (d *Directory) end(ctx context.Context, a geo.Account, s geo.Service) error {
	for cmd := (&endStreams{account: a, more: true}); cmd.more; {
		if err := d.submitTo(ctx, s, cmd); err != nil {
			return fmt.Errorf("the outbox of the %s range: %w", s, err)
		}
	}
	return nil
}

// Evaluate implements ranges.Command.
func (c *endStreams) Evaluate(tx *ranges.Tx) (err error) {
	c.more, err = tx.EndStreams(c.account)
	return err
}

// Reclaims implements ranges.Reclaimer.
func (c *endStreams) Reclaims() {}

// kindEndStreams is the kind of endStreams. It is on the wire: never rename it.
const kindEndStreams = "directory.endStreams"

// Kind implements ranges.Portable.
func (c *endStreams) Kind() string { return kindEndStreams }

// Encode implements ranges.Portable.
func (c *endStreams) Encode() []byte { return []byte(c.account) }

func parseEndStreams(b []byte) (*endStreams, error) {
	c := &endStreams{account: geo.Account(b)}
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
