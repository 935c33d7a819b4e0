package nameserver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	msg "github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	apiadmin "antipode/api/admin"
	wire "antipode/client/admin"
	"antipode/failover/dns"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/server/config"
	"antipode/server/epochs"
	"antipode/test/devproc"
)

// node is the admin port of a node.
type node struct {
	mu    sync.Mutex
	list  wire.Names
	asked int
}

// Ready implements apiadmin.Process.
func (n *node) Ready(context.Context) []wire.LocationReadiness { return nil }

// Operations implements apiadmin.Process: the one that a name server asks for.
func (n *node) Operations() []apiadmin.Operation {
	return []apiadmin.Operation{{Route: wire.CallNames.Route, Serve: func(_ context.Context, q *apiadmin.Question) (any, error) {
		var in wire.NamesQuery
		if err := q.Decode(&in); err != nil {
			return nil, err
		}
		return n.names(in), nil
	}}}
}

// names are all, at the version v1.
func (n *node) names(q wire.NamesQuery) wire.Names {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.asked++; q.Since == n.list.Version {
		return wire.Names{Location: n.list.Location, Version: n.list.Version}
	}
	return n.list
}

func (n *node) put(version string, names ...wire.Name) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list.Version, n.list.Names = version, names
}

// serve runs the admin port of a node of a location.
func serve(t *testing.T, l geo.Location) (n *node, address string, away func()) {
	t.Helper()
	n = &node{list: wire.Names{Location: l}}
	s := httptest.NewServer(apiadmin.Handler(n, prometheus.NewRegistry(), apiadmin.Options{}))
	t.Cleanup(s.Close)
	return n, s.Listener.Addr().String(), s.Close
}

func at(l geo.Location, n geo.EpochNumber) wire.Name {
	out := wire.Name{Account: "pictures", Epoch: wire.Epoch{Number: n, Location: l}, Primary: l, Secondary: "south", Redundancy: "RA-GRS"}
	if l == "south" {
		out.Secondary = "north"
	}
	return out
}

func freePort(t *testing.T) string {
	t.Helper()
	free, err := devproc.FreePorts(t, 1)
	require.NoError(t, err)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(free[0]))
}

// ask returns the answer to a question for a TXT record.
func ask(t *testing.T, server string) string {
	t.Helper()
	m := new(msg.Msg)
	r, _, err := (&msg.Client{Timeout: time.Minute}).Exchange(m.SetQuestion("_epoch.pictures.blob.storage.test.", msg.TypeTXT), server)
	require.NoError(t, err)
	if len(r.Answer) == 0 {
		return msg.RcodeToString[r.Rcode]
	}
	return strings.Join(r.Answer[0].(*msg.TXT).Txt, "")
}

const (
	atNorth = "v=antipode1 epoch=1@north location=north role=primary secondary=south"
	atSouth = "v=antipode1 epoch=2@south location=south role=primary secondary=north"
)

// The process asks the admin ports of both locations, and goes on to another node if one is away. It answers the
// newest of both, also after a restart with all of them away, and shows its metrics.
func TestProcess(t *testing.T) {
	a, first, firstAway := serve(t, "north")
	b, second, secondAway := serve(t, "north")
	c, third, thirdAway := serve(t, "south")
	a.put("v1", at("north", 1))
	b.put("w1", at("north", 1))
	c.put("x1", at("north", 1))
	o := ProcessOptions{Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)}
	text := fmt.Sprintf("{zone: storage.test, data: %s, listen: {dns: '%s', metrics: '%s'}, locations: [{location: north, addresses: 192.0.2.1, admin: ['%s', '%s']}, {location: south, addresses: 192.0.2.2, admin: '%s'}]}",
		filepath.Join(t.TempDir(), "names"), freePort(t), freePort(t), first, second, third)
	var problems config.Problems
	var err error
	o.Config, problems, err = config.ParseDNS([]byte(text))
	require.NoError(t, err)
	require.Empty(t, problems)
	p, err := Open(o)
	require.NoError(t, err)
	says := func(want string) {
		t.Helper()
		require.Eventually(t, func() bool { return ask(t, p.Addr()) == want }, time.Minute, 10*time.Millisecond)
	}
	says(atNorth)

	// A move that the new primary alone can say.
	firstAway()
	c.put("x2", at("south", 2))
	says(atSouth)
	require.Eventually(t, func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.asked > 1 }, time.Minute, 10*time.Millisecond, "the second node is not asked")

	r, err := http.Get("http://" + o.Config.Listen.Metrics + "/metrics")
	require.NoError(t, err)
	shown, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Contains(t, string(shown), "antipode_dns_accounts 1\n")
	require.Contains(t, string(shown), `antipode_dns_answers_total{code="NOERROR",transport="udp",type="TXT"}`)
	require.Contains(t, string(shown), `antipode_dns_source_age_seconds{location="south"}`)
	http.DefaultClient.CloseIdleConnections()

	secondAway()
	thirdAway()
	require.NoError(t, p.Close())
	p, err = Open(o)
	require.NoError(t, err)
	require.Equal(t, atSouth, ask(t, p.Addr()), "it went back over a restart")
	require.NoError(t, p.Close())
}

// A name server that knows nothing denies nothing, and an admin port of another location, or an account whose primary is
// not that of its epoch, is not believed.
func TestSources(t *testing.T) {
	n, address, _ := serve(t, "north")
	n.put("v1", at("north", 1))
	h := epochs.NewHTTP()
	defer h.CloseIdleConnections()
	list, err := epochs.NewPorts([]string{address}, h)
	require.NoError(t, err)
	page, err := epochs.NewSource("north", list.Names).Names(t.Context(), "", "")
	require.NoError(t, err)
	require.Equal(t, dns.Page{Version: "v1", Entries: []dns.Entry{{Account: "pictures", Epoch: geo.Epoch{Number: 1, Location: "north"}, Secondary: "south", Redundancy: "RA-GRS"}}}, page)
	_, err = epochs.NewSource("south", list.Names).Names(t.Context(), "", "")
	require.ErrorContains(t, err, `location "north" answered in place of "south"`)
	wrong := at("north", 1)
	wrong.Primary = "south"
	n.put("v2", wrong)
	_, err = epochs.NewSource("north", list.Names).Names(t.Context(), "", "")
	require.ErrorContains(t, err, `its primary is "south"`)
	_, err = epochs.NewPorts([]string{"a b"}, h)
	require.Error(t, err)
}

// Two name servers, and a third one that does not know where it belongs, begin by themselves; what cannot be opened is
// named, and leaves nothing open.
func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	o := ProcessOptions{Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler), Config: config.DNS{
		Listen: config.DNSListen{DNS: "127.0.0.1:0", Metrics: "127.0.0.1:0"}, Zone: "storage.test", TTL: "5s", Data: filepath.Join(dir, "names"),
		Locations: []config.DNSLocation{{Name: "north", Addresses: []string{"192.0.2.1"}, Admin: []string{"127.0.0.1:1"}}},
	}}
	p, err := Open(o)
	require.NoError(t, err)
	require.Equal(t, "SERVFAIL", ask(t, p.Addr()))
	taken := o
	taken.Config.Listen.DNS, taken.Config.Data = p.Addr(), filepath.Join(dir, "others")
	_, err = Open(taken)
	require.ErrorContains(t, err, "stop what uses the port, or choose others with the section listen")
	require.NoError(t, p.Close())

	o.Config.Push = []config.DNSPush{{Server: "127.0.0.1:1", Key: "antipode", SecretFile: secret}}
	_, err = Open(o)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(secret, []byte("c2VjcmV0\n"), 0o644))
	_, err = Open(o)
	require.ErrorContains(t, err, "chmod 640")
	require.NoError(t, os.Chmod(secret, 0o640))
	p, err = Open(o)
	require.NoError(t, err)
	require.NoError(t, p.Close())
	require.NoError(t, os.WriteFile(secret, []byte("no base64!"), 0o640))
	_, err = Open(o)
	require.ErrorContains(t, err, "in base64")
	require.NotContains(t, err.Error(), "no base64!")
}
