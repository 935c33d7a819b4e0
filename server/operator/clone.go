package operator

import (
	"context"
	"errors"
	"net/http"

	wire "antipode/client/admin"
	"antipode/geo"
)

// OpenClone opens a clone of an account. The secondary location makes the clone.
func (b *Backend) OpenClone(ctx context.Context, name geo.Account, q wire.OpenClone) (wire.Clone, error) {
	a, err := b.Account(ctx, name)
	if err != nil {
		return wire.Clone{}, err
	}
	at := a.Secondary
	if at == "" {
		at = a.Primary // Which refuses.
	}
	l, err := b.find(at)
	if err != nil {
		return wire.Clone{}, &wire.Error{
			Status: http.StatusConflict, Code: wire.CodeCloneRefused,
			Message: "a clone is made at the secondary location of the account, which this port does not reach: ask an admin port of " + string(at) + ", or of the gateway",
		}
	}
	return b.reached(ask(ctx, l, &openClone, wire.At{Account: name}, q))
}

// Clone is that of an account: at whichever location it is, since the account may have moved.
func (b *Backend) Clone(ctx context.Context, name geo.Account) (wire.Clone, error) {
	return b.reached(b.anywhere(func(l Location) (wire.Clone, error) {
		return ask(ctx, l, &showClone, wire.At{Account: name}, wire.None{})
	}))
}

// DropClone drops the clone of an account.
func (b *Backend) DropClone(ctx context.Context, name geo.Account) (wire.Clone, error) {
	return b.anywhere(func(l Location) (wire.Clone, error) {
		return ask(ctx, l, &dropClone, wire.At{Account: name}, wire.None{})
	})
}

// anywhere returns the first success of a location. The error of one that may have a clone outweighs that of one that has
// none.
func (b *Backend) anywhere(ask func(Location) (wire.Clone, error)) (wire.Clone, error) {
	var err error
	for _, a := range each(b, func(l Location) answer[wire.Clone] { return answerOf(ask(l)) }) {
		if a.err == nil {
			return a.value, nil
		}
		if err == nil || noClone(err) {
			err = a.err
		}
	}
	return wire.Clone{}, err
}

// noClone reports whether an error is CodeNoClone: the account has no clone.
func noClone(err error) bool {
	var said *wire.Error
	return errors.As(err, &said) && said.Code == wire.CodeNoClone
}

// reached adds the endpoints of the process to a clone.
func (b *Backend) reached(c wire.Clone, err error) (wire.Clone, error) {
	if err != nil {
		return c, err
	}
	c.Endpoints = nil
	for _, s := range geo.Services {
		c.Endpoints = append(c.Endpoints, wire.CloneEndpoint{Service: s.String(), URL: "http://" + b.o.Endpoints(s) + "/" + c.Name})
	}
	return c, nil
}
