package admin

import (
	"net/http"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
)

// support answers GET /v1/support: what the process that answers knows of itself.
func (p *port) support(c echo.Context) error {
	out, err := p.c.Support(c.Request().Context(), "", 0)
	if err != nil {
		return failed("read the state of", "the process", err)
	}
	return answer(c, http.StatusOK, out)
}

// nodeSupport answers GET /v1/nodes/{node}/support.
func (p *port) nodeSupport(c echo.Context) error {
	name := c.Param("node")
	what := "node " + name
	l, id, err := wire.ParseNodeName(name)
	if err != nil {
		return &wire.Error{Status: http.StatusNotFound, Code: wire.CodeNoNode, Message: sentence("read the state of", what, err.Error())}
	}
	if err := p.controls("read the state of", what, l); err != nil {
		return err
	}
	out, err := p.c.Support(c.Request().Context(), l, id)
	if err != nil {
		return failed("read the state of", what, err)
	}
	return answer(c, http.StatusOK, out)
}
