package admin

import (
	"net/http"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
)

// geoReplication answers GET /v1/accounts/{name}/geo. For a port of one location the other one counts as unavailable.
func (p *port) geoReplication(c echo.Context) error {
	a, err := p.find(c)
	if err != nil {
		return err
	}
	l, err := p.c.Lag(c.Request().Context(), a.Name, wire.LagQuery{}, p.o.Location)
	if err != nil {
		return failed("read the lag of", "account "+string(a.Name), err)
	}
	return answer(c, http.StatusOK, wire.GeoReplicationOf(a.Account, l))
}
