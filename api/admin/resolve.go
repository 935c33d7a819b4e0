package admin

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
)

// Forks settles forks, and shows what was kept of the side that was not, or would be: see wire.Client.
type Forks interface {
	ResolveFork(ctx context.Context, l geo.Location, q wire.ResolveFork) (wire.ForkResolved, error)
	Found(ctx context.Context, l geo.Location, q wire.FoundQuery) (wire.Found, error)
	FoundPayload(ctx context.Context, l geo.Location, q wire.FoundChunk) (wire.FoundPayload, error)
	DropFound(ctx context.Context, l geo.Location, q wire.DropFound) (wire.FoundDropped, error)
	CopyAlone(ctx context.Context, l geo.Location, q wire.AloneQuery) (wire.CopyAlone, error)
}

// copyAlone answers POST /v1/locations/{location}/copies/alone: it reads the whole copy, so that it needs the token.
func (p *port) copyAlone(c echo.Context) error {
	return ofLocation(p, c, "compare", "a copy with its primary", func(in *wire.AloneQuery) string {
		if !in.Account.Valid() {
			return "name the account: 3 to 24 lower-case letters and digits"
		}
		return ""
	}, p.c.CopyAlone)
}

// resolve answers POST /v1/locations/{location}/forks/resolve.
func (p *port) resolve(c echo.Context) error {
	return ofLocation(p, c, "resolve", "a fork", func(in *wire.ResolveFork) string {
		if in.Account == "" || in.Range == 0 || in.Lane >= geo.LaneCount || in.Epoch.Number == 0 || in.Keep == "" {
			return "a stream has an account, an epoch, a range and a lane (antipodectl fork list shows them), and keep is one of its locations"
		}
		return ""
	}, func(ctx context.Context, l geo.Location, in wire.ResolveFork) (wire.ForkResolved, error) {
		out, err := p.c.ResolveFork(ctx, l, in)
		if err == nil {
			p.o.Log.Warn("an operator resolves a fork", "location", l, "stream", out.Stream, "keep", out.Keep)
		}
		return out, err
	})
}

// found answers POST /v1/locations/{location}/found/list: it shows what clients stored, so that it needs the token.
func (p *port) found(c echo.Context) error {
	return ofLocation(p, c, "list", "the lost-and-found", nil, p.c.Found)
}

// foundPayload answers POST /v1/locations/{location}/found/payload.
func (p *port) foundPayload(c echo.Context) error {
	return ofLocation(p, c, "read", "payload of the lost-and-found", nil, p.c.FoundPayload)
}

// dropFound answers POST /v1/locations/{location}/found/drop.
func (p *port) dropFound(c echo.Context) error {
	return ofLocation(p, c, "drop", "rows of the lost-and-found", func(in *wire.DropFound) string {
		if len(in.Keys) > wire.FoundRowsMax {
			return "too many rows at once"
		}
		return ""
	}, func(ctx context.Context, l geo.Location, in wire.DropFound) (wire.FoundDropped, error) {
		out, err := p.c.DropFound(ctx, l, in)
		if err == nil {
			p.o.Log.Warn("an operator drops rows of the lost-and-found", "location", l, "rows", out.Dropped)
		}
		return out, err
	})
}

// ofLocation answers a request with a body about one location. check returns what is wrong with the body.
func ofLocation[In, Out any](p *port, c echo.Context, verb, what string, check func(*In) string, do func(context.Context, geo.Location, In) (Out, error)) error {
	l := geo.Location(c.Param("location"))
	if err := p.controls(verb, what, l); err != nil {
		return err
	}
	var in In
	if err := decode(c, &in); err != nil {
		return err
	}
	if check != nil {
		if wrong := check(&in); wrong != "" {
			return invalid(verb, what, wrong)
		}
	}
	out, err := do(c.Request().Context(), l, in)
	if err != nil {
		return failed(verb, what, err)
	}
	return answer(c, http.StatusOK, out)
}
