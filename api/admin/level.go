package admin

import (
	"net/http"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
)

// finalize answers POST /v1/cluster/finalize. A port of one location does not see the other one's nodes.
func (p *port) finalize(c echo.Context) error {
	const verb, what = "finalize", "the upgrade of the cluster"
	var in wire.Finalize
	if err := decode(c, &in); err != nil {
		return err
	}
	if p.o.Location != "" {
		return p.outOfScope(verb, what)
	}
	out, err := p.c.Finalize(c.Request().Context(), in)
	if err != nil {
		return failed(verb, what, err)
	}
	if out.Raised {
		p.o.Log.Warn("upgrade finalized by an operator: no node goes back to a version that does not know the level",
			"level", out.Level, "without", in.Without)
	}
	return answer(c, http.StatusOK, out)
}

// raiseLevels answers POST /v1/locations/{location}/levels.
func (p *port) raiseLevels(c echo.Context) error {
	const verb = "raise"
	l := geo.Location(c.Param("location"))
	what := "the feature levels of " + string(l)
	var in wire.Levels
	if err := decode(c, &in); err != nil {
		return err
	}
	if err := p.controls(verb, what, l); err != nil {
		return err
	}
	if in.Active == 0 || in.Active > in.Floor {
		return invalid(verb, what, "the active level must be at least 1, and at most the floor")
	}
	out, err := p.c.RaiseLevels(c.Request().Context(), l, in)
	if err != nil {
		return failed(verb, what, err)
	}
	p.o.Log.Warn("feature levels raised by an operator", "location", l, "floor", in.Floor, "active", in.Active)
	return answer(c, http.StatusOK, out)
}
