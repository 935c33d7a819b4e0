package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"antipode/api"
	"antipode/api/routing"
	"antipode/geo"
	"antipode/services/catalog"
)

// gatewayRig is a gateway before two locations of one node each, whose first front end
// is a dead one.
type gatewayRig struct {
	gateway, north, south *frontEnd
	// knows is what each location has in its catalog.
	knows map[geo.Location]directory
	// arrivals are how many requests came to the node of each location.
	arrivals map[geo.Location]*atomic.Int32
	// endpoints are the front ends as the gateway and the locations know them; deaf are those
	// that the gateway alone cannot reach.
	endpoints map[geo.Location][]string
	deaf      map[geo.Location]bool
	seen      *gatewayCounts
	// passed are the locations that know of a higher epoch elsewhere of all their accounts, unsure those that cannot confirm them.
	passed, unsure map[geo.Location]bool
	// arrived, if set, is called before a location serves a request.
	arrived func(geo.Location)
	// served are the front ends of the locations, which the gateway calls if local is set and it reaches them at all.
	served map[geo.Location]http.Handler
	local  bool
}

// eachWay runs a test of a gateway in front of locations of other processes, and of locations of the same process.
func eachWay(t *testing.T, f func(t *testing.T, rig *gatewayRig)) {
	for _, local := range []bool{false, true} {
		t.Run(fmt.Sprintf("local %v", local), func(t *testing.T) {
			rig := newGatewayRig(t)
			rig.local = local
			f(t, rig)
		})
	}
}

// call is a routing.Local.
func (rig *gatewayRig) call(l geo.Location, _ geo.Service, w http.ResponseWriter, r *http.Request) bool {
	if !rig.local || rig.deaf[l] || len(rig.endpoints[l]) < 2 {
		return false
	}
	rig.served[l].ServeHTTP(w, r)
	return true
}

// echo answers a request with its body: what leads all ranges of both locations.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		breakOff()
	}
	w.Header().Set("X-Target", r.RequestURI)
	_, _ = w.Write(body)
}

// deadEnd is an address at which connections are refused. It stays taken: a port that was
// given back may soon be that of another server here.
func deadEnd(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	at, err := unix.Getsockname(fd)
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port)
}

func newGatewayRig(t *testing.T) *gatewayRig {
	t.Helper()
	dead := deadEnd(t)
	rig := &gatewayRig{
		knows: map[geo.Location]directory{}, arrivals: map[geo.Location]*atomic.Int32{}, endpoints: map[geo.Location][]string{}, deaf: map[geo.Location]bool{},
		seen: &gatewayCounts{counts: map[string]int64{}}, passed: map[geo.Location]bool{}, unsure: map[geo.Location]bool{}, served: map[geo.Location]http.Handler{},
	}
	location := func(l geo.Location) *frontEnd {
		leader := stub(t, func(w http.ResponseWriter, r *http.Request) { // It says to a gateway what a leader of the location does.
			if r.Header.Get("X-Antipode-Gateway") != "" || r.Header.Get("X-Antipode-Gateway-Ask") != "" {
				said := "X-Antipode-Served-By"
				if rig.passed[l] || rig.unsure[l] && r.Method != http.MethodGet {
					said = "X-Antipode-Not-Here"
				}
				w.Header().Set(said, string(l))
			}
			echo(w, r)
		})
		rig.knows[l] = directory{"acct": "north", "mirror": "south"}
		f := newFrontEnd(t, api.Options{
			Location: l, Directory: rig.knows[l], Leader: ledBy(leader),
			Authority: authority{
				passed:   func(*catalog.Account) bool { return rig.passed[l] },
				upToDate: func(*catalog.Account) bool { return !rig.passed[l] && !rig.unsure[l] },
			},
			Forward: routing.NewForwarder(string(l), func(to geo.Location, _ geo.Service) []string { return rig.endpoints[to] }, nil),
		})
		arrivals := &atomic.Int32{}
		rig.arrivals[l] = arrivals
		h := f.Handler(geo.Table)
		serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			arrivals.Add(1)
			if rig.arrived != nil {
				rig.arrived(l)
			}
			h.ServeHTTP(w, r)
		})
		rig.served[l], f.url = serve, stub(t, serve)
		rig.endpoints[l] = []string{dead, "http://" + host(f.url)}
		return f
	}
	rig.north, rig.south = location("north"), location("south")
	rig.gateway = startFrontEnd(t, api.Options{
		Gateway: rig.seen, Locations: []geo.Location{"north", "south"}, Local: rig.call,
		Forward: routing.NewForwarder("gateway", func(to geo.Location, _ geo.Service) []string {
			if rig.deaf[to] {
				return []string{dead}
			}
			return rig.endpoints[to]
		}, nil),
	})
	return rig
}

// post sends a body through the gateway; it comes back where it was taken whole.
func (rig *gatewayRig) post(t *testing.T, account string) answer {
	t.Helper()
	return send(t, signed(t, http.MethodPost, rig.gateway.url+"/"+account+"/things", strings.NewReader("the body")))
}

func (rig *gatewayRig) takeArrivals() string {
	return fmt.Sprintf("north %d, south %d", rig.arrivals["north"].Swap(0), rig.arrivals["south"].Swap(0))
}

// A gateway that knows no account finds the location of each, and remembers it; a front end
// that is dead is no obstacle. Nothing of ours is in the answer.
func TestGateway(t *testing.T) { eachWay(t, testGateway) }

func testGateway(t *testing.T, rig *gatewayRig) {
	t.Helper()
	for _, step := range []struct{ account, arrivals string }{
		{"acct", "north 1, south 0"},
		{"acct-secondary", "north 1, south 1"}, // North says who has it.
		{"acct-secondary", "north 0, south 1"},
		{"mirror", "north 1, south 1"},
		{"mirror", "north 0, south 1"},
		{"acct", "north 1, south 0"},
	} {
		r := signed(t, http.MethodGet, rig.gateway.url+"/"+step.account+"/things", nil)
		if !strings.HasSuffix(step.account, "-secondary") {
			r = signed(t, http.MethodPost, rig.gateway.url+"/"+step.account+"/things", strings.NewReader("the body"))
		}
		a := send(t, r)
		require.Equal(t, http.StatusOK, a.status, a.body)
		require.Equal(t, "/"+step.account+"/things", a.header.Get("X-Target"))
		if r.Method == http.MethodPost {
			require.Equal(t, "the body", a.body)
		}
		for name := range a.header {
			require.False(t, strings.HasPrefix(name, "X-Antipode"), name)
		}
		require.Equal(t, step.arrivals, rig.takeArrivals(), step.account)
	}
}

// An account that no location knows gets the protocol's answer; one that was created a
// moment ago, and is known at its primary alone, is found.
func TestGatewayUnknownAccount(t *testing.T) { eachWay(t, testGatewayUnknownAccount) }

func testGatewayUnknownAccount(t *testing.T, rig *gatewayRig) {
	t.Helper()
	a := rig.post(t, "nobody")
	require.Equal(t, "AuthenticationFailed", a.code, a.body)
	delete(rig.knows["north"], "mirror")
	a = rig.post(t, "mirror")
	require.Equal(t, "the body", a.body)
}

// With one location down the other's accounts and `-secondary` go on; what is the lost
// location's gets 503 that names it.
func TestGatewayLocationDown(t *testing.T) {
	t.Parallel()
	for _, learned := range []bool{false, true} {
		rig := newGatewayRig(t)
		if learned {
			require.Equal(t, http.StatusOK, rig.post(t, "acct").status)
		}
		rig.endpoints["north"] = rig.endpoints["north"][:1]
		require.Equal(t, "the body", rig.post(t, "mirror").body)
		require.Equal(t, http.StatusOK, send(t, signed(t, http.MethodGet, rig.gateway.url+"/acct-secondary/things", nil)).status)
		a := rig.post(t, "acct")
		require.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
		require.Contains(t, a.body, "cannot be reached now")
		require.Equal(t, "1", a.header.Get("Retry-After"))
		rig.endpoints["south"] = nil
		a = rig.post(t, "acct")
		require.Equal(t, "ServerBusy", a.code, a.body)
		require.Equal(t, "1", a.header.Get("Retry-After"))
	}
}

// R21: a location that has lost an account to the other one, and does not reach that, has a gateway ask it: the first request
// is the former primary's, which refuses a write, and the next one is the new primary's. While the other location is not the
// primary yet either, and where it is away, the first one answers.
//
// Capability: Two locations: Clients of a gateway leave a former primary that knows that it has lost the account
// (R21).
func TestR21GatewayLeavesAFormerPrimary(t *testing.T) { eachWay(t, testR21GatewayLeavesAFormerPrimary) }

func testR21GatewayLeavesAFormerPrimary(t *testing.T, rig *gatewayRig) {
	t.Helper()
	read := func() answer { return send(t, signed(t, http.MethodGet, rig.gateway.url+"/acct/things", nil)) }
	require.Equal(t, "the body", rig.post(t, "acct").body)
	require.Equal(t, "north 1, south 0", rig.takeArrivals())

	rig.passed["north"] = true
	require.Equal(t, http.StatusOK, read().status)
	require.Equal(t, "north 1, south 0", rig.takeArrivals(), "it answers as before, and is forgotten")
	for range 2 {
		a := rig.post(t, "acct")
		require.Equal(t, "the body", a.body, "the south has not taken it: the north answers")
		for name := range a.header {
			require.False(t, strings.HasPrefix(name, "X-Antipode"), name)
		}
		require.Equal(t, "north 2, south 1", rig.takeArrivals())
	}
	there := rig.endpoints["south"]
	rig.endpoints["south"] = there[:1]
	require.Equal(t, http.StatusOK, read().status, "the south is away")
	require.Equal(t, "north 2, south 0", rig.takeArrivals())
	rig.endpoints["south"] = there

	rig.knows["south"]["acct"] = "south"
	require.Equal(t, "the body", rig.post(t, "acct").body)
	require.Equal(t, "north 1, south 1", rig.takeArrivals())
	require.Equal(t, http.StatusOK, read().status)
	require.Equal(t, "north 0, south 1", rig.takeArrivals(), "it is remembered")
}

// R20: a location that has an account as the primary in a lower epoch than a gateway knows of refuses reads and writes under the
// primary name, also those that the other location forwards.
//
// Capability: Two locations: Clients of a gateway leave a former primary that does not know it (R20).
func TestR20LocationRefusesAHigherEpoch(t *testing.T) {
	t.Parallel()
	f := startFrontEnd(t, api.Options{Location: "north", Directory: directory{"acct": "north"}})
	ask := func(method, path, mark, epoch string) answer {
		r := signed(t, method, f.url+path, strings.NewReader(""))
		r.Header.Set(mark, "x")
		r.Header.Set("X-Antipode-Epoch", epoch)
		return send(t, r)
	}
	for _, mark := range []string{"X-Antipode-Gateway", "X-Antipode-Gateway-Ask", "X-Antipode-Hop"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			a := ask(method, "/acct/things", mark, "2@south")
			require.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
			require.Contains(t, a.body, "cannot be reached now")
			require.Equal(t, mark != "X-Antipode-Hop", a.header.Get("X-Antipode-Not-Here") != "", mark)
			require.Empty(t, a.header.Get("X-Antipode-Served-By"))
		}
		for _, epoch := range []string{"1@north", "", "south"} {
			a := ask(http.MethodGet, "/acct/things", mark, epoch)
			require.NotContains(t, a.body, "cannot be reached", epoch)
		}
	}
	a := ask(http.MethodGet, "/lost/things", "X-Antipode-Gateway", "1@north")
	require.Equal(t, http.StatusServiceUnavailable, a.status, "north has lost the account: it is no stranger's")
	require.Contains(t, a.body, "does not know it any more")
	require.Equal(t, http.StatusForbidden, ask(http.MethodGet, "/lost/things", "X-Antipode-Gateway", "").status)
}

// R21: a location whose epochs are not confirmed has a gateway ask the other one for writes, and goes on reading.
//
// Capability: Two locations: Clients of a gateway leave a former primary that knows that it has lost the account
// (R21).
func TestR21GatewayAsksForWritesOfAnUnsureLocation(t *testing.T) {
	t.Parallel()
	eachWay(t, testR21GatewayAsksForWritesOfAnUnsureLocation)
}

func testR21GatewayAsksForWritesOfAnUnsureLocation(t *testing.T, rig *gatewayRig) {
	t.Helper()
	rig.unsure["north"] = true
	rig.knows["south"]["acct"] = "south"
	require.Equal(t, http.StatusOK, send(t, signed(t, http.MethodGet, rig.gateway.url+"/acct/things", nil)).status)
	require.Equal(t, "north 1, south 0", rig.takeArrivals())
	require.Equal(t, "the body", rig.post(t, "acct").body)
	require.Equal(t, "north 1, south 0", rig.takeArrivals(), "it was remembered")
	require.Equal(t, "the body", rig.post(t, "acct").body)
	require.Equal(t, "north 1, south 1", rig.takeArrivals())
}

// A location behind a link that is cut was not reached: nothing happened, and 503 names it, for writes too.
func TestCutLinkIsUnreachable(t *testing.T) {
	t.Parallel()
	cut := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("the link is cut") }
	f := newFrontEnd(t, api.Options{
		Location: "south", Directory: directory{"acct": "north"},
		Forward: routing.NewForwarder("south", func(geo.Location, geo.Service) []string { return []string{"a:1", "b:1", "c:1"} }, cut),
	})
	for method, body := range map[string]io.Reader{http.MethodPost: strings.NewReader("{}"), http.MethodGet: nil} {
		w := f.record(t, method, "/acct/things", body)
		require.Equal(t, http.StatusServiceUnavailable, w.Code, w.Body)
		require.Contains(t, w.Body.String(), "cannot be reached now")
	}
}

// A location that the gateway cannot reach and the other location can is served through it.
func TestGatewayThroughOtherLocation(t *testing.T) { eachWay(t, testGatewayThroughOtherLocation) }

func testGatewayThroughOtherLocation(t *testing.T, rig *gatewayRig) {
	t.Helper()
	rig.deaf["north"] = true
	require.Equal(t, "the body", rig.post(t, "acct").body)
	require.Equal(t, "north 1, south 2", rig.takeArrivals(), "south was asked, then forwarded")
}

// A read that was forwarded while its account was moved to the location that forwards it is served there, and not refused
// (R19). A write is: its body was on its way. Where the two do not agree who has the account, nothing goes round.
func TestR19ReadsFollowAMove(t *testing.T) {
	t.Parallel()
	rig := newGatewayRig(t)
	things := func(method string) answer {
		var body io.Reader
		if method == http.MethodPost {
			body = strings.NewReader("the body")
		}
		return send(t, signed(t, method, rig.north.url+"/mirror/things?timeout=1", body))
	}
	rig.arrived = func(l geo.Location) {
		if l == "south" {
			rig.knows["north"]["mirror"], rig.knows["south"]["mirror"] = "north", "north"
		}
	}
	a := things(http.MethodGet)
	require.Equal(t, http.StatusOK, a.status, a.body)
	for name := range a.header {
		require.False(t, strings.HasPrefix(name, "X-Antipode"), name)
	}
	require.Equal(t, "north 1, south 1", rig.takeArrivals())

	for _, method := range []string{http.MethodPost, http.MethodGet} {
		rig.arrived = nil
		rig.knows["north"]["mirror"], rig.knows["south"]["mirror"] = "south", "north"
		if method == http.MethodPost {
			rig.arrived = func(l geo.Location) {
				if l == "south" {
					rig.knows["north"]["mirror"] = "north"
				}
			}
		}
		a = things(method)
		require.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
		require.Contains(t, a.body, "Each location takes another one")
		require.Equal(t, "1", a.header.Get("Retry-After"))
		for name := range a.header {
			require.False(t, strings.HasPrefix(name, "X-Antipode"), name)
		}
		arrivals := rig.takeArrivals()
		require.Contains(t, arrivals, "north 1, ", method)
		require.Equal(t, method == http.MethodPost, arrivals == "north 1, south 1", "%s: %s", method, arrivals)
	}
}

// Between the take of an account and the record of it at the former primary each location names the other one for reads of
// -secondary. They wait for the former primary, whichever location they came to, and are served there (R19); what is not
// signed is refused at once.
func TestR19SecondaryReadsWaitForTheFormerPrimary(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"", "north", "south", "gateway"} {
		rig := newGatewayRig(t)
		rig.knows["south"]["acct"] = "south" // It has taken the account from the north, which does not know yet.
		asked := 0
		rig.arrived = func(geo.Location) {
			if asked++; asked == 12 {
				rig.knows["north"]["acct"] = "south"
			}
		}
		at := map[string]*frontEnd{"": rig.south, "north": rig.north, "south": rig.south, "gateway": rig.gateway}[by]
		r := signed(t, http.MethodGet, at.url+"/acct-secondary/things", nil)
		if by == "" {
			r.Header.Set("Authorization", "SharedKeyLite acct:AAAA")
			require.Equal(t, http.StatusForbidden, send(t, r).status)
			require.Equal(t, "north 1, south 1", rig.takeArrivals())
			continue
		}
		a := send(t, r)
		require.Equal(t, http.StatusOK, a.status, "%s: %s", by, a.body)
		require.Equal(t, "/acct-secondary/things", a.header.Get("X-Target"), by)
		require.GreaterOrEqual(t, asked, 12)
	}
}

// A gateway that is configured as a node of a location says so, and does not go round.
func TestGatewayAsksItself(t *testing.T) {
	t.Parallel()
	rig := newGatewayRig(t)
	rig.endpoints["north"], rig.endpoints["south"] = []string{rig.gateway.url}, nil
	a := rig.post(t, "acct")
	require.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
	require.Contains(t, a.body, "gateway was asked by a gateway")
}
