package record

import (
	"context"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// EndStreams commits that what the outbox of a range holds of an account's former epochs is dropped: with known, in the
// knowledge that the other location has the present one.
// It is repeated while there is more than one group may delete.
type EndStreams struct {
	Account     geo.Account
	Known, More bool
}

// Drop drops the streams of an account's former epochs from the outboxes of all ranges but the catalog. The other
// location may not know of the present one: End follows once it does.
func (s *Store) Drop(ctx context.Context, a geo.Account) error {
	return s.whole(ctx, s.Route().Data(a), &EndStreams{Account: a})
}

// End ends the streams of an account's epochs before one that the other location has in all its ranges, and forgets
// them; the zero epoch forgets none.
func (s *Store) End(ctx context.Context, in []route.Range, a geo.Account, known geo.Epoch) error {
	if known == (geo.Epoch{}) {
		return s.whole(ctx, in, &EndStreams{Account: a, Known: true})
	}
	return s.whole(ctx, in, &ForgetStreams{Account: a, Known: known})
}

// whole commits a command in some ranges, in each as often as there is more.
func (s *Store) whole(ctx context.Context, in []route.Range, cmd interface {
	ranges.Portable
	hasMore() bool
},
) error {
	for _, r := range in {
		for again := true; again; again = cmd.hasMore() {
			if err := s.Submit(ctx, r.ID, cmd); err != nil {
				return fmt.Errorf("the outbox of the %s range: %w", r.Service, err)
			}
		}
	}
	return nil
}

func (c *EndStreams) hasMore() bool { return c.More }

// Evaluate implements ranges.Command.
func (c *EndStreams) Evaluate(tx *ranges.Tx) (err error) {
	if c.Known {
		c.More, err = tx.EndStreams(c.Account)
	} else {
		c.More, err = tx.DropStreams(c.Account)
	}
	return err
}

// Reclaims implements ranges.Reclaimer.
func (c *EndStreams) Reclaims() {}

// The kinds of EndStreams, with Known and without, and of ForgetStreams. They are on the wire: never rename them.
const (
	KindEndStreams    = "directory.endStreams"
	KindDropStreams   = "directory.dropStreams"
	KindForgetStreams = "directory.forgetStreams"
)

// Kind implements ranges.Portable.
func (c *EndStreams) Kind() string {
	if c.Known {
		return KindEndStreams
	}
	return KindDropStreams
}

// Encode implements ranges.Portable.
func (c *EndStreams) Encode() []byte { return []byte(c.Account) }

// ParseEndStreams parses an encoded EndStreams.
func ParseEndStreams(b []byte, known bool) (*EndStreams, error) {
	c := &EndStreams{Account: geo.Account(b), Known: known}
	if !c.Account.Valid() {
		return nil, fmt.Errorf("%w: account %q", ErrCommand, c.Account)
	}
	return c, nil
}

// EncodeResult implements ranges.Portable: a byte if there is more, nothing else.
func (c *EndStreams) EncodeResult() []byte { return EncodeMore(c.More) }

// EncodeMore encodes whether there is more: a byte if there is, nothing else.
func EncodeMore(more bool) []byte {
	if more {
		return []byte{1}
	}
	return nil
}

// DecodeResult implements ranges.Portable.
func (c *EndStreams) DecodeResult(b []byte) error {
	c.More = len(b) > 0
	return nil
}

// ForgetStreams is EndStreams, after which a range forgets the streams of an account's epochs before known, which the
// other location has. It is repeated while there are more than one group may delete or forget.
type ForgetStreams struct {
	Account geo.Account
	Known   geo.Epoch
	More    bool
}

// Evaluate implements ranges.Command.
func (c *ForgetStreams) Evaluate(tx *ranges.Tx) error {
	more, err := tx.EndStreams(c.Account)
	c.More = tx.ForgetStreams(c.Account, c.Known) || more
	return err
}

func (c *ForgetStreams) hasMore() bool { return c.More }

// Reclaims implements ranges.Reclaimer.
func (c *ForgetStreams) Reclaims() {}

// Kind implements ranges.Portable.
func (c *ForgetStreams) Kind() string { return KindForgetStreams }

// Encode implements ranges.Portable: as a SetGate of the epoch alone.
func (c *ForgetStreams) Encode() []byte {
	return (&SetGate{Account: c.Account, Gate: change.Gate{Epoch: c.Known}}).Encode()
}

// ParseForgetStreams parses an encoded ForgetStreams.
func ParseForgetStreams(b []byte) (*ForgetStreams, error) {
	c, err := ParseSetGate(b)
	if err != nil {
		return nil, err
	}
	if c.After != 0 || c.Gate != (change.Gate{Epoch: c.Gate.Epoch}) || c.Gate.Epoch == (geo.Epoch{}) {
		return nil, fmt.Errorf("%w: epoch %+v", ErrCommand, c.Gate)
	}
	return &ForgetStreams{Account: c.Account, Known: c.Gate.Epoch}, nil
}

// EncodeResult implements ranges.Portable: as that of EndStreams.
func (c *ForgetStreams) EncodeResult() []byte { return EncodeMore(c.More) }

// DecodeResult implements ranges.Portable.
func (c *ForgetStreams) DecodeResult(b []byte) error {
	c.More = len(b) > 0
	return nil
}

// CloseStreams has every range but the catalog leave the account's former epoch, and drop what its outbox
// holds of it. The other location may not know yet. gone: the account has gone on since, and not all ranges have left the
// epoch for this one: the other location must not delete its copy for this one.
func (s *Store) CloseStreams(ctx context.Context, a catalog.Account) (gone bool, err error) {
	err = SetGates(ctx, s, a.Name, PrimaryGate(&a), a.Operation.After, Once)
	var passed *PassedError
	if errors.As(err, &passed) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, s.Drop(ctx, a.Name)
}
