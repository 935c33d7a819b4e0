package admin

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

// flow answers GET /v1/accounts/{name}/flow. A port of a location answers for that one alone.
func (p *port) flow(c echo.Context) error {
	name, what, err := named(c)
	if err != nil {
		return err
	}
	out, err := p.c.Flows(c.Request().Context(), name, p.o.Location)
	if err != nil {
		return failed("read the streams of", what, err)
	}
	out.Flows, out.Silent = list(out.Flows), list(out.Silent)
	for i := range out.Flows {
		f := &out.Flows[i]
		f.Ranges, f.Services, f.Silent = list(f.Ranges), list(f.Services), list(f.Silent)
	}
	return answer(c, http.StatusOK, out)
}

// lag answers GET /v1/accounts/{name}/lag.
func (p *port) lag(c echo.Context) error {
	name, what, err := named(c)
	if err != nil {
		return err
	}
	q := wire.LagQuery{Service: c.QueryParam("service"), Partition: c.QueryParam("partition")}
	if why := wrong(q); why != "" {
		return invalid("read the lag of", what, why)
	}
	out, err := p.c.Lag(c.Request().Context(), name, q, p.o.Location)
	if err != nil {
		return failed("read the lag of", what, err)
	}
	out.Services, out.Streams, out.Silent = list(out.Services), list(out.Streams), list(out.Silent)
	return answer(c, http.StatusOK, out)
}

// wrong says what is wrong with a query, "" for nothing.
func wrong(q wire.LagQuery) string {
	s, err := geo.ParseService(q.Service)
	switch {
	case q.Service != "" && (err != nil || s == geo.Catalog):
		return fmt.Sprintf("the service is blob, queue or table, not %q", q.Service)
	case q.Partition == "":
		return ""
	case q.Service == "":
		return "a partition needs its service"
	case s == geo.Queue:
		return "partitions of the queue service cannot be named yet"
	}
	if container, key, cut := strings.Cut(q.Partition, "/"); !cut || container == "" || s == geo.Blob && key == "" {
		return "a partition is container/blob or table/PartitionKey"
	}
	return ""
}

// named returns the account that a request names. Whether there is one is left to the cluster.
func named(c echo.Context) (name geo.Account, what string, err error) {
	name = geo.Account(c.Param("name"))
	what = fmt.Sprintf("account %q", name)
	if !name.Valid() {
		return name, what, failed("find", what, storageerr.AccountNotFound)
	}
	return name, what, nil
}
