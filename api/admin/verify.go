package admin

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
)

// startVerify answers POST /v1/accounts/{name}/verify.
func (p *port) startVerify(c echo.Context) error {
	name, what, err := named(c)
	if err != nil {
		return err
	}
	var q wire.VerifyQuery
	if err := decode(c, &q); err != nil {
		return err
	}
	if s, err := geo.ParseService(q.Service); q.Service != "" && (err != nil || s == geo.Catalog) {
		return invalid("verify", what, fmt.Sprintf("the service is blob, queue or table, not %q", q.Service))
	}
	if q.BytesPerSecond > 0 && q.BytesPerSecond < wire.VerifyRateMin || q.RepairBytesPerSecond > 0 && q.RepairBytesPerSecond < wire.VerifyRateMin {
		return invalid("verify", what, fmt.Sprintf("a rate is at least %d bytes per second: nothing ends a comparison before its end", wire.VerifyRateMin))
	}
	out, err := p.c.StartVerify(c.Request().Context(), name, q)
	if err != nil {
		return failed("verify", what, err)
	}
	p.o.Log.Info("both copies of an account are compared", "account", name, "service", q.Service, "payload", q.Payload, "repair", q.Repair)
	return answer(c, http.StatusOK, withLists(out))
}

// verify answers GET /v1/accounts/{name}/verify. It names what is stored, and so needs the token.
func (p *port) verify(c echo.Context) error {
	name, what, err := named(c)
	if err != nil {
		return err
	}
	out, err := p.c.Verify(c.Request().Context(), name)
	if err != nil {
		return failed("show the comparison of", what, err)
	}
	return answer(c, http.StatusOK, withLists(out))
}

// withLists replaces nil slices.
func withLists(v wire.Verify) wire.Verify {
	v.Ranges, v.Differences = list(slices.Clone(v.Ranges)), list(v.Differences)
	for i := range v.Ranges {
		v.Ranges[i].NotCompared = list(v.Ranges[i].NotCompared)
	}
	return v
}
