package admin

import (
	"context"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
)

// Lost shows and drops the lost changes of accounts (R22): see wire.Client.
type Lost interface {
	Lost(ctx context.Context, l geo.Location, q wire.LostQuery) (wire.Lost, error)
	DropLost(ctx context.Context, l geo.Location, q wire.DropLost) (wire.LostDropped, error)
}

// lost answers POST /v1/locations/{location}/lost/list: it names what clients stored, so that it needs the token.
func (p *port) lost(c echo.Context) error {
	return ofLocation(p, c, "list", "lost changes", func(in *wire.LostQuery) string { return ofAccount(in.Account) }, p.c.Lost)
}

// dropLost answers POST /v1/locations/{location}/lost/drop.
func (p *port) dropLost(c echo.Context) error {
	return ofLocation(p, c, "drop", "lost changes", func(in *wire.DropLost) string { return ofAccount(in.Account) },
		func(ctx context.Context, l geo.Location, in wire.DropLost) (wire.LostDropped, error) {
			out, err := p.c.DropLost(ctx, l, in)
			if err == nil {
				p.o.Log.Warn("an operator drops the report of lost changes", "location", l, "account", in.Account, "changes", out.Dropped)
			}
			return out, err
		})
}

func ofAccount(a geo.Account) string {
	if !a.Valid() {
		return "account is the name of one"
	}
	return ""
}
