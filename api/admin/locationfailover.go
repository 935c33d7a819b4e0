package admin

import (
	"context"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
)

// locationFailover answers GET /v1/locations/{location}/failover.
func (p *port) locationFailover(c echo.Context) error {
	const verb = "show"
	l := geo.Location(c.Param("location"))
	what := "the failover of location " + string(l)
	if err := p.controls(verb, what, l); err != nil {
		return err
	}
	out, err := p.c.LocationFailover(c.Request().Context(), l)
	if err != nil {
		return failed(verb, what, err)
	}
	return answer(c, http.StatusOK, out)
}

// failLocationOver answers POST /v1/locations/{location}/failover.
func (p *port) failLocationOver(c echo.Context) error {
	const verb = "change"
	l := geo.Location(c.Param("location"))
	what := "the failover at location " + string(l) // It may be of the other one.
	if err := p.controls(verb, what, l); err != nil {
		return err
	}
	var in wire.Failover
	if err := decode(c, &in); err != nil {
		return err
	}
	switch {
	case in.Type != wire.FailoverPlanned && in.Type != wire.FailoverUnplanned && in.Type != wire.FailoverEnd:
		return invalid(verb, what, fmt.Sprintf("type is %s, %s or %s", wire.FailoverPlanned, wire.FailoverUnplanned, wire.FailoverEnd))
	case in.WithoutWitness && in.Type != wire.FailoverUnplanned:
		return invalid(verb, what, "without_witness goes with an unplanned failover")
	case in.AcceptPart && in.Type != wire.FailoverUnplanned:
		return invalid(verb, what, "accept_part goes with an unplanned failover")
	case in.DryRun && in.Type == wire.FailoverEnd:
		return invalid(verb, what, "dry_run goes with a planned or an unplanned failover")
	case in.To != "" || in.NotTaken || in.WithinSeconds < 0 || in.WithinSeconds > 0 && in.Type != wire.FailoverPlanned:
		return invalid(verb, what, "beside type it has within_seconds of a planned failover, without_witness and accept_part of an unplanned one, and dry_run of both")
	}
	if in.Plans() {
		ctx, cancel := context.WithTimeout(c.Request().Context(), p.o.ReadTimeout)
		defer cancel()
		out, err := p.c.FailLocationOver(ctx, l, in)
		if err != nil {
			what := "location " + string(l)
			if in.Type == wire.FailoverUnplanned {
				what = "the accounts with a copy at " + string(l)
			}
			return unplannable(what, err)
		}
		return answer(c, http.StatusOK, out)
	}
	out, err := p.c.FailLocationOver(c.Request().Context(), l, in)
	if err != nil {
		return failed(verb, what, err)
	}
	p.o.Log.Warn("an operator changes the failover of a location", "location", l, "type", in.Type)
	return answer(c, http.StatusOK, out)
}
