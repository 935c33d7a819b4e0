package admin

import (
	"net/http"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
)

// resume answers POST /v1/locations/{location}/forks/resume.
func (p *port) resume(c echo.Context) error {
	const verb = "resume"
	l, what := geo.Location(c.Param("location")), "a stream"
	if err := p.controls(verb, what, l); err != nil {
		return err
	}
	var in wire.StreamName
	if err := decode(c, &in); err != nil {
		return err
	}
	what = "stream " + in.String()
	if in.Account == "" || in.Range == 0 || in.Lane >= geo.LaneCount || in.Epoch.Number == 0 {
		return invalid(verb, what, "a stream has an account, an epoch, a range and a lane: antipodectl fork list shows them")
	}
	out, err := p.c.ResumeStream(c.Request().Context(), l, in)
	if err != nil {
		return failed(verb, what, err)
	}
	p.o.Log.Warn("an operator lets a stopped stream go on", "location", l, "stream", out.Stream, "reason", out.Reason)
	return answer(c, http.StatusOK, out)
}
