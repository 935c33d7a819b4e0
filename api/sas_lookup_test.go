package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/kv"
)

// busyDirectory has the account, and cannot read the containers that it is asked for.
type busyDirectory struct {
	directory
	asked string
}

// Resolve implements api.Directory.
func (d *busyDirectory) Resolve(
	ctx context.Context, name geo.Account, s geo.Service, container func(*catalog.Account) string,
) (*catalog.Account, *catalog.Found, []catalog.CORSRule, error) {
	a, _, rules, err := d.directory.Resolve(ctx, name, s, container)
	d.asked = container(a)
	return a, &catalog.Found{Err: kv.ErrBusy}, rules, err
}

// A policy that cannot be read now is no policy that does not exist: the client tries again. For a wrong signature
// nothing is looked up, so that not even the time of the refusal depends on it.
func TestPolicyIsLookedUpForARightSignature(t *testing.T) {
	t.Parallel()
	d := &busyDirectory{directory: directory{"acct": "north"}}
	f := newFrontEnd(t, api.Options{Location: "north", Directory: d})
	l := httptest.NewServer(f.Handler(geo.Table))
	t.Cleanup(l.Close)
	urls := map[geo.Service]string{geo.Table: l.URL}
	for _, c := range []coded{
		{service: geo.Table, request: "GET /acct/tbl()", sas: "sv=2019-02-02&tn=tbl&si=p"}, table("GET /acct/tbl()", "").by("sv=2019-02-02&tn=tbl&sp=r"),
	} {
		if right := c.signed(t, urls); strings.Contains(c.sas, "si=") {
			a := send(t, right)
			require.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
			require.Equal(t, "tbl", d.asked)
		}
		wrong := c.signed(t, urls)
		wrong.URL.RawQuery = strings.Replace(wrong.URL.RawQuery, "sv=2019", "sv=2020", 1)
		wrong.URL.RawQuery = strings.Replace(wrong.URL.RawQuery, "sv=2020-02-02", "sv=2020-02-10", 1)
		a := send(t, wrong)
		require.Equal(t, http.StatusForbidden, a.status, a.body)
		require.Empty(t, d.asked)
	}
}
