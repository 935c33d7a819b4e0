package admin

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
)

// sinceMax bounds a version in a query, in bytes.
const sinceMax = 64

// names answers GET /v1/locations/{location}/names. A port of a location answers for that one alone.
func (p *port) names(c echo.Context) error {
	l := geo.Location(c.Param("location"))
	what := fmt.Sprintf("the names of location %q", l)
	if err := p.controls("list", what, l); err != nil {
		return err
	}
	q := wire.NamesQuery{Since: c.QueryParam("since"), After: geo.Account(c.QueryParam("after"))}
	if len(q.Since) > sinceMax || q.After != "" && !q.After.Valid() {
		return invalid("list", what, "since is a version that was answered before, and after a name of an account")
	}
	out, err := p.c.Names(c.Request().Context(), l, q)
	if err != nil {
		return failed("list", what, err)
	}
	out.Names = list(out.Names)
	return answer(c, http.StatusOK, out)
}
