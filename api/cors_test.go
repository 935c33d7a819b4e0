package api_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/routing"
	"antipode/geo"
	"antipode/services/catalog"
)

// ruledDirectory is a directory with a CORS rule.
type ruledDirectory struct{ directory }

func (d ruledDirectory) Resolve(ctx context.Context, name geo.Account, s geo.Service, c func(*catalog.Account) string) (*catalog.Account, *catalog.Found, []catalog.CORSRule, error) {
	a, found, _, err := d.directory.Resolve(ctx, name, s, c)
	if err != nil {
		return nil, nil, nil, err
	}
	return a, found, []catalog.CORSRule{{Origins: []string{"http://a.test"}, Methods: []string{"GET"}, Exposed: []string{"*"}}}, nil
}

// A page can read the 503 of a front end that knows its account: without a leader, without the other location, of a copy
// that is being made. What another front end answered stays as that set it. Headers between front ends are exposed to nobody, but
// the mark of what may be stale is (protocol/blob.md 20.3).
func TestCORSOfFrontEnds(t *testing.T) {
	t.Parallel()
	d := ruledDirectory{directory{"acct": "north", "away": "south", "filled": "copying"}}
	elsewhere := stub(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for name, c := range map[string]struct {
		o       api.Options
		target  string
		status  int
		origin  string
		exposed string
	}{
		"no leader": {
			api.Options{Leader: ledNowhere, Leaderless: func(geo.RangeID) bool { return true }}, "/acct/things()", 503, "http://a.test", "Retry-After",
		},
		"no other location":    {api.Options{}, "/away/things()", 503, "http://a.test", "Retry-After"},
		"a copy in the making": {api.Options{}, "/filled-secondary/things()", 503, "http://a.test", "Retry-After"},
		"another front end":    {api.Options{Leader: ledBy(elsewhere)}, "/acct/things()", http.StatusTeapot, "", ""},
		"another location":     {api.Options{Forward: routing.NewForwarder("test", at(elsewhere), nil)}, "/away/things()", http.StatusTeapot, "", ""},
		"an unknown account":   {api.Options{}, "/nobody/things()", 403, "", ""},
		"a stale read": {
			api.Options{Authority: authority{upToDate: func(*catalog.Account) bool { return false }}}, "/acct/?restype=service&comp=stats", 400, "http://a.test", "X-Antipode-May-Be-Stale",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Location, c.o.Directory = "north", d
			f := startFrontEnd(t, c.o)
			r := signed(t, http.MethodGet, f.url+c.target, nil, "Origin", "http://a.test", "X-Antipode-Gateway", "gateway")
			a := send(t, r)
			require.Equal(t, c.status, a.status, a.body)
			require.Equal(t, c.origin, a.header.Get("Access-Control-Allow-Origin"))
			require.Equal(t, c.origin != "", a.header.Get("Vary") == "Origin")
			exposed := a.header.Get("Access-Control-Expose-Headers")
			require.Contains(t, exposed, c.exposed)
			for _, hop := range []string{"Served-By", "Not-Here", "Access-Control"} {
				require.NotContains(t, exposed, hop)
			}
		})
	}
}
