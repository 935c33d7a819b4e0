package witness_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"antipode/failover/witness"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/internal/identity/identitytest"
)

// counted is an Observer that keeps the last call, and counts failures.
type counted struct {
	last   string
	failed int
}

func (c *counted) Answered(l geo.Location, kind, outcome string) {
	c.last = string(l) + " " + kind + " " + outcome
}
func (c *counted) Failed() { c.failed++ }

// Every call is counted once, by the location of its certificate, with what became of it; so is a disk that takes nothing
// (table).
//
// Capability: Operation in Prometheus: A witness shows its metrics.
func TestCallsAreCounted(t *testing.T) {
	p, c, full := newPlace(t), &counted{}, false
	fs := errorfs.Wrap(p.fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errFull
		}
		return nil
	}))
	w, err := witness.Open(witness.Options{FS: fs, Dir: "w", Locations: []geo.Location{"north", "south"}, Clock: p.clock, Name: "here", Observer: c})
	require.NoError(t, err)
	require.Zero(t, c.failed)
	h, ca := witness.Handler(w), identitytest.NewAuthority(t)
	certificates := map[string]*tls.ConnectionState{"": nil, "none": {}}
	for _, l := range []string{"north", "south", "third"} {
		ring := ca.Keyring(identity.Identity{Stamp: "prod", Location: geo.Location(l), Node: 1}, clock.System{})
		cert, err := ring.PairConfig("third").GetClientCertificate(&tls.CertificateRequestInfo{})
		require.NoError(t, err)
		certificates[l] = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert.Leaf}}
	}
	const claim = `{"claims":[{"account":"acct","number":2,"location":"south"}],"sent":{"version":0,"incarnation":"here"}}`
	for _, call := range []struct {
		from, path, body string
		status           int
		want             string
		full             bool
	}{
		{"", "/v1/renew", `{}`, 403, " renew refused", false},
		{"none", "/v1/renew", `{}`, 403, " renew refused", false},
		{"third", "/v1/renew", `{}`, 403, " renew refused", false},
		{"north", "/v1/renew", `{`, 400, "north renew refused", false},
		{"north", "/v1/renew", `{}`, 200, "north renew done", false},
		{"north", "/v1/claim", claim, 403, "north claim refused", false},
		{"south", "/v1/claim", `{"claims":[{"account":"acct","number":0,"location":"south"}]}`, 400, "south claim refused", false},
		{"south", "/v1/claim", `{"claims":[],"sent":{"version":0,"incarnation":"there"}}`, 412, "south claim late", false},
		{"south", "/v1/claim", claim, 503, "south claim failed", true},
		{"south", "/v1/claim", claim, 200, "south claim done", false},
		{"north", "/v1/claim", `{"claims":[{"account":"acct","number":1,"location":"north"}],"sent":{"version":0,"incarnation":"here"}}`, 409, "north claim passed", false},
		{"south", "/v1/withdraw", `{"account":"acct","number":0}`, 400, "south withdraw refused", false},
		{"south", "/v1/withdraw", `{"account":"acct","number":2}`, 200, "south withdraw done", false},
	} {
		full, c.last, c.failed = call.full, "", 0
		r := httptest.NewRequest(http.MethodPost, call.path, bytes.NewReader([]byte(call.body)))
		r.TLS = certificates[call.from]
		rw := httptest.NewRecorder()
		h.ServeHTTP(rw, r)
		require.Equal(t, call.status, rw.Code, call.want)
		require.Equal(t, call.want, c.last)
		require.Equal(t, call.full, c.failed > 0, call.want)
		if call.status != http.StatusOK {
			require.Contains(t, rw.Body.String(), `{"error":"`)
		}
	}
}

// The state has each location: its claims, and how long ago it renewed its lease, or how long the process runs without.
//
// Capability: Operation in Prometheus: A witness shows its metrics.
func TestState(t *testing.T) {
	p := newPlace(t)
	p.fs = vfs.NewCrashableMem()
	p.open()
	p.clock.Advance(3 * time.Second)
	p.claim("one", 2, "south")
	p.claim("two", 2, "south")
	p.renew("north", 0)
	p.clock.Advance(time.Second)
	require.Equal(t, witness.State{
		Life:         10 * time.Second,
		Claims:       map[geo.Location]int{"north": 0, "south": 2},
		SinceRenewal: map[geo.Location]time.Duration{"north": time.Second, "south": 4 * time.Second},
	}, p.State())
	p.renew("north", 0)
	require.NoError(t, p.Withdraw("one", geo.Epoch{Number: 2, Location: "south"}))
	require.Zero(t, p.State().SinceRenewal["north"])
	require.Equal(t, 1, p.State().Claims["south"])
	p.crash()
	p.clock.Advance(time.Minute)
	require.Equal(t, map[geo.Location]time.Duration{"north": time.Minute, "south": time.Minute}, p.State().SinceRenewal)
}
