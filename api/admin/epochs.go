package admin

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"antipode/geo"
)

// overrideEpochs answers POST /v1/locations/{location}/epochs/override.
func (p *port) overrideEpochs(c echo.Context) error {
	const verb = "confirm"
	l := geo.Location(c.Param("location"))
	what := "the epochs of " + string(l)
	if err := p.controls(verb, what, l); err != nil {
		return err
	}
	out, err := p.c.OverrideEpochs(c.Request().Context(), l)
	if err != nil {
		return failed(verb, what, err)
	}
	p.o.Log.Warn("an operator has a location take writes without an answer of the other one", "location", l, "confirmed_by", out.By, "refused_accounts", len(out.Refused))
	return answer(c, http.StatusOK, out)
}
