package admin

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
)

// forks answers GET /v1/forks. A port of a location shows what is kept there alone.
func (p *port) forks(c echo.Context) error {
	out, err := p.c.Forks(c.Request().Context())
	if err != nil {
		return failed("list", "the forks", err)
	}
	found := slices.Clone(out.Forks)
	if p.o.Location != "" {
		found = slices.DeleteFunc(found, func(f wire.Fork) bool { return f.Location != p.o.Location })
	}
	slices.SortFunc(found, func(x, y wire.Fork) int {
		return cmp.Or(cmp.Compare(x.Account, y.Account), cmp.Compare(x.Epoch.Number, y.Epoch.Number), cmp.Compare(x.Epoch.Location, y.Epoch.Location),
			cmp.Compare(x.Range, y.Range), cmp.Compare(x.Lane, y.Lane), cmp.Compare(x.Location, y.Location))
	})
	return answer(c, http.StatusOK, wire.Forks{Forks: list(found), Silent: list(out.Silent)})
}
