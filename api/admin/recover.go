package admin

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
)

// recoverRange answers POST /v1/locations/{location}/ranges/{range}/recover.
func (p *port) recoverRange(c echo.Context) error {
	const verb = "recover"
	l, number := geo.Location(c.Param("location")), c.Param("range")
	what := "range " + number + " of " + string(l)
	id, err := strconv.ParseUint(number, 10, 32)
	if err != nil || id == 0 {
		return &wire.Error{Status: http.StatusNotFound, Code: codeNoRange, Message: sentence(verb, what,
			"a range has a number: antipodectl status shows it")}
	}
	if err := p.controls(verb, what, l); err != nil {
		return err
	}
	var in wire.RecoverRange
	if err := decode(c, &in); err != nil {
		return err
	}
	if !in.AcceptLoss && !in.DryRun {
		return invalid(verb, what, "what only the lost replicas held is given up: agree with accept_loss")
	}
	out, err := p.c.RecoverRange(c.Request().Context(), l, geo.RangeID(id), in)
	if err != nil {
		return failed(verb, what, err)
	}
	if out.SilentNodes = list(out.SilentNodes); in.DryRun {
		return answer(c, http.StatusOK, out)
	}
	p.o.Log.Warn("range re-formed by an operator, who accepts what is lost by that", "location", l, "range", id, "survivor", out.Survivor,
		"kept_index", out.KeptIndex, "known_committed", out.KnownCommitted, "lost_index", out.LostIndex,
		"above", out.Above, "times_unchecked", out.TimesUnchecked, "silent_nodes", out.SilentNodes)
	return answer(c, http.StatusOK, out)
}
