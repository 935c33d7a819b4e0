package admin

import (
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
)

// why answers GET /v1/accounts/{name}/why. A port of a location asks that one alone.
func (p *port) why(c echo.Context) error {
	name, what, err := named(c)
	if err != nil {
		return err
	}
	var threshold time.Duration
	if text := c.QueryParam("threshold"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || !(seconds > 0 && seconds <= 1e6) {
			return invalid("explain the lag of", what, "the threshold is a number of seconds above 0")
		}
		threshold = time.Duration(seconds * float64(time.Second))
	}
	out, err := p.c.Why(c.Request().Context(), name, threshold, p.o.Location)
	if err != nil {
		return failed("explain the lag of", what, err)
	}
	out.Services, out.Silent = list(out.Services), list(out.Silent)
	return answer(c, http.StatusOK, out)
}
