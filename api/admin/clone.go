package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
)

// Clones opens, shows and drops clones of accounts: see wire.Client.
type Clones interface {
	OpenClone(ctx context.Context, name geo.Account, q wire.OpenClone) (wire.Clone, error)
	Clone(ctx context.Context, name geo.Account) (wire.Clone, error)
	DropClone(ctx context.Context, name geo.Account) (wire.Clone, error)
}

// openClone answers POST /v1/accounts/{name}/clone.
func (p *port) openClone(c echo.Context) error {
	name, what, err := named(c)
	if err != nil {
		return err
	}
	var q wire.OpenClone
	if err := decode(c, &q); err != nil {
		return err
	}
	if q.ForSeconds == 0 {
		q.ForSeconds = wire.CloneLifeDefault.Seconds()
	}
	if !(q.ForSeconds >= wire.CloneLifeLeast.Seconds() && q.ForSeconds <= wire.CloneLifeMax.Seconds()) {
		return invalid("clone", what, "for_seconds is from 1 s to 24 h: a clone keeps the disk space of all that is deleted beside it")
	}
	out, err := p.c.OpenClone(c.Request().Context(), name, q)
	if err != nil {
		return failed("clone", what, err)
	}
	p.o.Log.Info("an operator opens a clone of an account", "account", name, "node", out.Node, "life", time.Duration(q.ForSeconds*float64(time.Second)))
	return answer(c, http.StatusOK, out)
}

// clone answers GET /v1/accounts/{name}/clone.
func (p *port) clone(c echo.Context) error {
	name, what, err := named(c)
	if err != nil {
		return err
	}
	out, err := p.c.Clone(c.Request().Context(), name)
	if err != nil {
		return failed("show the clone of", what, err)
	}
	return answer(c, http.StatusOK, out)
}

// dropClone answers POST /v1/accounts/{name}/clone/drop.
func (p *port) dropClone(c echo.Context) error {
	name, what, err := named(c)
	if err != nil {
		return err
	}
	out, err := p.c.DropClone(c.Request().Context(), name)
	if err != nil {
		return failed("drop the clone of", what, err)
	}
	p.o.Log.Info("an operator drops the clone of an account", "account", name, "node", out.Node)
	return answer(c, http.StatusOK, out)
}
