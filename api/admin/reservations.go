package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
)

// reservations answers GET /v1/reservations.
func (p *port) reservations(c echo.Context) error {
	out, err := p.c.Reservations(c.Request().Context())
	if err != nil {
		return failed("list", "the reservations", err)
	}
	if p.o.Location != "" {
		out.Reservations = slices.DeleteFunc(slices.Clone(out.Reservations), func(r wire.Reservation) bool { return r.Location != p.o.Location })
	}
	return answer(c, http.StatusOK, ordered(out))
}

// freeReservation answers POST /v1/reservations/{name}/free. A port of a location frees there
// alone.
func (p *port) freeReservation(c echo.Context) error {
	name := geo.Account(c.Param("name"))
	what := fmt.Sprintf("account %q", name)
	none := &wire.Error{Status: http.StatusNotFound, Code: codeNoReservation, Message: sentence("free", what,
		"no creation of that name waits here: antipodectl account reservations lists them")}
	if !name.Valid() {
		return none
	}
	out, err := p.c.FreeReservation(c.Request().Context(), name, p.o.Location)
	if err != nil {
		return failed("free", what, err)
	}
	if len(out.Reservations) == 0 && len(out.SilentLocations) == 0 {
		return none
	}
	p.o.Log.Warn("name freed by an operator", "account", name, "records", len(out.Reservations), "silent_locations", out.SilentLocations)
	return answer(c, http.StatusOK, ordered(out))
}

func ordered(r wire.Reservations) wire.Reservations {
	r.Reservations, r.SilentLocations = list(slices.Clone(r.Reservations)), list(r.SilentLocations)
	slices.SortFunc(r.Reservations, func(x, y wire.Reservation) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Location, y.Location))
	})
	return r
}
