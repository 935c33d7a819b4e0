package witness

import (
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/failover/witness"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/internal/identity/identitytest"
	"antipode/server/config"
	"antipode/stamp/membership"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scrape returns what the process shows at its second port, which asks for no certificate.
func scrape(t *testing.T, p *Process) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.server.Addrs()[1].String()+"/metrics", nil)
	require.NoError(t, err)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return string(text)
}

// R21: the process grants leases and takes claims over TLS, and knows the claims after a restart on its folder.
//
// Capability: Two locations: A witness at a third place (R21).
func TestR21Process(t *testing.T) {
	ca, dir := identitytest.NewAuthority(t), t.TempDir()
	files := ca.Files(identity.Identity{Stamp: "prod", Location: "third", Node: 1})
	c := config.Witness{
		Stamp: "prod", Location: "third", Locations: []geo.Location{"north", "south"}, Data: dir, Listen: "127.0.0.1:0", Metrics: "127.0.0.1:0", Lease: "30s",
		TLS: config.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key},
	}
	open := func() *Process {
		p, err := Open(Options{Config: c, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		return p
	}
	client := func(p *Process, l geo.Location) *witness.Client {
		ring := ca.Keyring(identity.Identity{Stamp: "prod", Location: l, Node: 2}, clock.System{})
		w := &witness.Client{
			URL: "https://" + p.server.Addrs()[0].String(), Clock: clock.System{},
			HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: ring.PairConfig("third")}},
		}
		t.Cleanup(w.HTTP.CloseIdleConnections)
		return w
	}
	p := open()
	before := clock.System{}.Mono()
	g, err := client(p, "north").Renew(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 30*time.Second, g.Life)
	south := client(p, "south")
	until, err := south.Claim(t.Context(), map[geo.Account]geo.EpochNumber{"acct": 2}, "south")
	require.NoError(t, err)
	require.GreaterOrEqual(t, until, before+30*time.Second)
	text := scrape(t, p)
	for _, line := range []string{
		`antipode_witness_requests_total{kind="renew",location="north",outcome="done"} 1`,
		`antipode_witness_requests_total{kind="claim",location="south",outcome="late"} 1`,
		`antipode_witness_requests_total{kind="claim",location="south",outcome="done"} 1`,
		`antipode_witness_requests_total{kind="withdraw",location="south",outcome="failed"} 0`,
		`antipode_witness_claims{location="south"} 1`, `antipode_witness_claims{location="north"} 0`,
		`antipode_witness_lease_seconds 30`, `antipode_witness_save_failures_total 0`,
	} {
		require.Contains(t, text, line+"\n")
	}
	for _, name := range []string{`antipode_witness_since_renewal_seconds{location="south"} `, "antipode_build_info{", "antipode_certificate_not_after_timestamp_seconds "} {
		require.Contains(t, text, "\n"+name)
	}
	south.HTTP.CloseIdleConnections()
	require.NoError(t, p.Close())

	p = open()
	defer func() { require.NoError(t, p.Close()) }()
	again, err := client(p, "north").Renew(t.Context(), 0)
	require.NoError(t, err)
	require.NotEqual(t, g.Incarnation, again.Incarnation, "versions are of one process")
	require.Equal(t, geo.Account("acct"), again.Claims[0].Account)
}

// R4: the folder of a node's process is none of a witness, and that of a witness none of a node.
func TestR4FolderOfAnotherProcess(t *testing.T) {
	fs, dir := vfs.Default, t.TempDir()
	process := membership.Owner{Kind: membership.Process, Location: "north", Node: 1}
	require.NoError(t, membership.Claim(fs, dir, process))
	ca := identitytest.NewAuthority(t)
	files := ca.Files(identity.Identity{Stamp: "prod", Location: "third", Node: 1})
	o := Options{Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler), Config: config.Witness{
		Stamp: "prod", Location: "third", Locations: []geo.Location{"north", "south"}, Data: dir, Listen: "127.0.0.1:0", Metrics: "127.0.0.1:0", Lease: "30s",
		TLS: config.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key},
	}}
	_, err := Open(o)
	require.ErrorIs(t, err, membership.ErrOwner)
	require.ErrorContains(t, err, "belongs to node north-1, not to the witness third")
	require.NoDirExists(t, filepath.Join(dir, "witness"))

	o.Config.Data = t.TempDir()
	p, err := Open(o)
	require.NoError(t, err)
	require.NoError(t, p.Close())
	require.ErrorIs(t, membership.Claim(fs, o.Config.Data, process), membership.ErrOwner)
}
