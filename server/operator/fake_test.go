package operator

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	apiadmin "antipode/api/admin"
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/storageerr"
)

// fake is a Location that records what is asked of it.
type fake struct {
	name      geo.Location
	status    Status
	events    []wire.Event
	readiness wire.LocationReadiness
	accounts  []wire.Account

	reservations []wire.Reservation
	forks        wire.Forks
	flow         wire.Flow

	// fail is returned by every method that can fail. If hangs is set, every method lasts until
	// its context ends.
	fail  error
	hangs bool
	// failover is the phase of that of a location.
	failover string
	// noPromotion: no unplanned failover is under way that could be ended.
	noPromotion bool
	// clone is the one that is open, nil for none.
	clone *wire.Clone

	mu    sync.Mutex
	asked []string
}

func newFake(name geo.Location) *fake {
	return &fake{
		name:      name,
		status:    Status{Location: wire.Location{Name: name, State: wire.Running}, Link: wire.Link{State: wire.LinkUp}},
		readiness: wire.LocationReadiness{Name: name, State: wire.Running, Serving: true, Ready: true},
	}
}

// note records a call, and is its error.
func (f *fake) note(ctx context.Context, format string, args ...any) error {
	f.mu.Lock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	f.mu.Unlock()
	if f.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.fail
}

// calls returns what was asked since the last call of calls.
func (f *fake) calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.asked = nil }()
	return f.asked
}

// operated returns the only operation since the last call of calls, "" if there was none. A port
// reads the readiness after a start.
func (f *fake) operated() string {
	asked := slices.DeleteFunc(f.calls(), func(call string) bool { return call == "readiness" })
	return strings.Join(asked, ", ")
}

func (f *fake) Name() geo.Location { return f.name }

func (f *fake) Status(ctx context.Context) (Status, error) { return f.status, f.note(ctx, "status") }

func (f *fake) Events(ctx context.Context) wire.EventList {
	if f.note(ctx, "events") != nil {
		return wire.EventList{Silent: []string{string(f.name)}}
	}
	return wire.EventList{Events: f.events}
}

func (f *fake) Readiness(ctx context.Context) wire.LocationReadiness {
	_ = f.note(ctx, "readiness")
	return f.readiness
}

func (f *fake) Accounts(ctx context.Context) ([]wire.Account, error) {
	return f.accounts, f.note(ctx, "accounts")
}

func (f *fake) Account(ctx context.Context, name geo.Account) (wire.Account, error) {
	if err := f.note(ctx, "account %s", name); err != nil {
		return wire.Account{}, err
	}
	i := slices.IndexFunc(f.accounts, func(a wire.Account) bool { return a.Name == name })
	if i < 0 {
		return wire.Account{}, fmt.Errorf("catalog: %w", storageerr.AccountNotFound)
	}
	return f.accounts[i], nil
}

func (f *fake) Keys(ctx context.Context, name geo.Account) (wire.Keys, error) {
	if err := f.note(ctx, "keys %s", name); err != nil {
		return wire.Keys{}, err
	}
	_, err := f.Account(ctx, name)
	return wire.Keys{Name: name, Key1: "a2V5MQ==", Key2: "a2V5Mg=="}, err
}

func (f *fake) Flow(ctx context.Context, name geo.Account) (wire.Flow, error) {
	return f.flow, f.note(ctx, "flow %s", name)
}

func (f *fake) StartVerify(ctx context.Context, name geo.Account, q wire.VerifyQuery) (wire.Verify, error) {
	return wire.Verify{Account: name, Primary: f.name, VerifyQuery: q}, f.note(ctx, "verify %s", name)
}

func (f *fake) Verify(ctx context.Context, name geo.Account) (wire.Verify, error) {
	return wire.Verify{Account: name, Primary: f.name}, f.note(ctx, "verified %s", name)
}

func (f *fake) Names(ctx context.Context, q wire.NamesQuery) (wire.Names, error) {
	return wire.Names{Location: f.name, Version: q.Since + "+"}, f.note(ctx, "names after %q", q.After)
}

func (f *fake) Forks(ctx context.Context) (wire.Forks, error) { return f.forks, f.note(ctx, "forks") }

func (f *fake) OpenClone(ctx context.Context, name geo.Account, q wire.OpenClone) (wire.Clone, error) {
	if err := f.note(ctx, "open clone %s %gs", name, q.ForSeconds); err != nil {
		return wire.Clone{}, err
	}
	f.clone = &wire.Clone{Account: name, Name: string(name) + geo.CloneSuffix, Location: f.name}
	return *f.clone, nil
}

func (f *fake) Clone(ctx context.Context, name geo.Account) (wire.Clone, error) {
	if err := f.note(ctx, "clone %s", name); err != nil {
		return wire.Clone{}, err
	}
	if f.clone == nil {
		return wire.Clone{}, &wire.Error{Status: 404, Code: wire.CodeNoClone, Message: "no clone"}
	}
	return *f.clone, nil
}

func (f *fake) DropClone(ctx context.Context, name geo.Account) (wire.Clone, error) {
	c, err := f.Clone(ctx, name)
	f.clone = nil
	return c, err
}

func (f *fake) Reservations(ctx context.Context) ([]wire.Reservation, error) {
	return f.reservations, f.note(ctx, "reservations")
}

func (f *fake) FreeReservation(ctx context.Context, name geo.Account) (bool, error) {
	was := len(f.reservations)
	f.reservations = slices.DeleteFunc(slices.Clone(f.reservations), func(r wire.Reservation) bool { return r.Name == name })
	return len(f.reservations) < was, f.note(ctx, "free %s", name)
}

func (f *fake) UpdateAccount(ctx context.Context, name geo.Account, u wire.UpdateAccount) (wire.AccountUpdated, error) {
	out := wire.AccountUpdated{Behind: "not yet"}
	out.Name, out.Primary, out.Redundancy = name, f.name, u.Redundancy
	if u.Failover != nil {
		err := f.note(ctx, "failover %s of %s", u.Failover.Type, name)
		if err == nil && f.noPromotion {
			err = storageerr.InvalidInput
		}
		return out, err
	}
	return out, f.note(ctx, "update %s to %s", name, u.Redundancy)
}

func (f *fake) CreateAccount(ctx context.Context, n wire.NewAccount) (wire.Account, error) {
	return wire.Account{Name: n.Name, Primary: f.name}, f.note(ctx, "create %s", n.Name)
}

func (f *fake) StartNode(ctx context.Context, id geo.NodeID) error {
	return f.note(ctx, "start node %d", id)
}

func (f *fake) StopNode(ctx context.Context, id geo.NodeID) error {
	return f.note(ctx, "stop node %d", id)
}

func (f *fake) Start(ctx context.Context) error { return f.note(ctx, "start") }

func (f *fake) Stop(ctx context.Context) error { return f.note(ctx, "stop") }

func (f *fake) RecoverRange(ctx context.Context, id geo.RangeID, in wire.RecoverRange) (wire.RangeRecovered, error) {
	return wire.RangeRecovered{Location: f.name, Range: id, Survivor: "a", SilentNodes: []string{"b"}}, f.note(ctx, "recover range %d %+v", id, in)
}

func (f *fake) ResumeStream(ctx context.Context, s wire.StreamName) (wire.Resumed, error) {
	return wire.Resumed{Stream: s.String(), Location: f.name, Reason: "version"}, f.note(ctx, "resume %s", s)
}

func (f *fake) OverrideEpochs(ctx context.Context) (wire.Epochs, error) {
	return wire.Epochs{Confirmed: true, By: "override"}, f.note(ctx, "override epochs")
}

func (f *fake) RaiseLevels(ctx context.Context, to wire.Levels) (wire.Levels, error) {
	return to, f.note(ctx, "raise levels to %d %d", to.Floor, to.Active)
}

func (f *fake) LocationFailover(ctx context.Context) (wire.LocationFailover, error) {
	return wire.LocationFailover{From: f.name, Moved: 3, Phase: f.failover}, f.note(ctx, "failover of the location")
}

func (f *fake) FailLocationOver(ctx context.Context, in wire.Failover) (wire.LocationFailover, error) {
	return wire.LocationFailover{From: f.name, Type: in.Type}, f.note(ctx, "fail over %s", in.Type)
}

func (f *fake) ResolveFork(ctx context.Context, q wire.ResolveFork) (wire.ForkResolved, error) {
	return wire.ForkResolved{Stream: q.String(), Keep: q.Keep, State: "settling"}, f.note(ctx, "resolve %s keep %s", q.StreamName, q.Keep)
}

func (f *fake) Found(ctx context.Context, q wire.FoundQuery) (wire.Found, error) {
	return wire.Found{Location: f.name, Rows: []wire.FoundRow{{Key: "02", Account: q.Account}}}, f.note(ctx, "found %s", q.Account)
}

func (f *fake) FoundPayload(ctx context.Context, q wire.FoundChunk) (wire.FoundPayload, error) {
	return wire.FoundPayload{Data: []byte("data")}, f.note(ctx, "payload %s %d", q.Key, q.Chunk)
}

func (f *fake) DropFound(ctx context.Context, q wire.DropFound) (wire.FoundDropped, error) {
	return wire.FoundDropped{Dropped: len(q.Keys)}, f.note(ctx, "drop %v", q.Keys)
}

func (f *fake) CopyAlone(ctx context.Context, q wire.AloneQuery) (wire.CopyAlone, error) {
	return wire.CopyAlone{Account: q.Account, Location: f.name, Rows: 7}, f.note(ctx, "alone %s", q.Account)
}

func (f *fake) Lost(ctx context.Context, q wire.LostQuery) (wire.Lost, error) {
	return wire.Lost{Location: f.name, Changes: []wire.LostChange{{Key: "02"}}}, f.note(ctx, "lost %s", q.Account)
}

func (f *fake) DropLost(ctx context.Context, q wire.DropLost) (wire.LostDropped, error) {
	return wire.LostDropped{Dropped: 1}, f.note(ctx, "drop lost %s", q.Account)
}

func (f *fake) SetLink(ctx context.Context, l wire.Link) error {
	return f.note(ctx, "link %s %gs", l.State, l.DelaySeconds)
}

// over returns a backend over locations, of a process that started when c shows.
func over(c clock.Clock, locations ...Location) *Backend {
	return New(Options{Clock: c, Locations: locations, Endpoints: func(s geo.Service) string { return s.String() + ".example" }})
}

// network has the admin ports that a Remote of a test reaches, by host:port. A port that is missing
// refuses connections; a nil handler takes requests and never answers.
type network struct {
	t     *testing.T
	token apiadmin.TokenFile
	ports map[string]http.Handler
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	token, err := apiadmin.OpenTokenFile(filepath.Join(t.TempDir(), "token"))
	require.NoError(t, err)
	return &network{t, token, map[string]http.Handler{}}
}

// address is that of the admin port of a node of north or south: a loopback address, because a port
// refuses other hosts.
func address(l geo.Location, id geo.NodeID) string {
	return fmt.Sprintf("127.0.%d.%d:10080", map[geo.Location]int{"north": 1, "south": 2}[l], id)
}

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	h, there := n.ports[r.URL.Host]
	if !there {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if h == nil {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// answers makes the admin port of a node show l.
func (n *network) answers(l Location, id geo.NodeID) {
	n.ports[address(l.Name(), id)] = apiadmin.Handler(over(clock.NewManual(time.Unix(0, 0)), l), prometheus.NewRegistry(), apiadmin.Options{TokenFile: n.token})
}

// hangs makes a node take requests and never answer.
func (n *network) hangs(l geo.Location, id geo.NodeID) { n.ports[address(l, id)] = nil }

// away makes a node refuse connections.
func (n *network) away(l geo.Location, id geo.NodeID) { delete(n.ports, address(l, id)) }

// remote returns a location of three nodes, the third without a known admin port.
func (n *network) remote(l geo.Location) *Remote {
	r := &Remote{Location: l, Logger: slog.New(slog.DiscardHandler)}
	for id := range geo.NodeID(3) {
		node := Node{ID: id + 1}
		if node.ID < 3 {
			var err error
			node.Admin, err = wire.New("http://"+address(l, node.ID), &http.Client{Transport: n})
			require.NoError(n.t, err)
			node.Admin.UseToken(func() (wire.Token, error) { return n.token.Token(), nil })
		}
		r.Nodes = append(r.Nodes, node)
	}
	return r
}

func (f *fake) Support(ctx context.Context, id geo.NodeID) (wire.Support, error) {
	return wire.Support{Name: wire.NodeName(f.name, id)}, f.note(ctx, "support of %d", id)
}
