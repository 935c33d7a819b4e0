package operator

import (
	"cmp"
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
	status    wire.Status
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
	// servesAfter is how often the readiness is asked for before the location serves.
	servesAfter int
	// clone is the one that is open, nil for none.
	clone *wire.Clone

	// answers are what it does: tests replace some.
	answers answers

	mu    sync.Mutex
	asked []string
}

func newFake(name geo.Location) *fake {
	f := &fake{
		name: name, answers: answers{},
		status:    wire.Status{Locations: []wire.Location{{Name: name, State: wire.Running}}, Link: wire.Link{State: wire.LinkUp}},
		readiness: wire.LocationReadiness{Name: name, State: wire.Running, Serving: true, Ready: true},
	}
	f.serve()
	return f
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
	asked := slices.DeleteFunc(f.calls(), func(call string) bool { return call == "readiness" || call == "status" })
	return strings.Join(asked, ", ")
}

func (f *fake) Name() geo.Location { return f.name }

func (f *fake) Readiness(ctx context.Context) wire.LocationReadiness {
	_ = f.note(ctx, "readiness")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.servesAfter > 0 {
		f.servesAfter--
		return wire.LocationReadiness{Name: f.name, Reason: "the blob range has no leader yet"}
	}
	return f.readiness
}

func (f *fake) do(ctx context.Context, q question) error { return f.answers.answer(ctx, q) }

// answers are what a fake does in place of each operation, by its name.
type answers map[string]func(ctx context.Context, q question) error

func (a answers) answer(ctx context.Context, q question) error {
	does := a[q.of.route().Name]
	if does == nil {
		panic("a test does not expect " + q.of.route().Name)
	}
	return does(ctx, q)
}

// does sets what is done in place of an operation.
func does[Req, Resp any](a answers, o *operation[Req, Resp], f func(ctx context.Context, at wire.At, in Req) (Resp, error)) {
	a[o.Name] = func(ctx context.Context, q question) error {
		out, err := f(ctx, q.at, q.in.(Req))
		return put(q, out, err)
	}
}

// serve sets what f does in place of each operation.
func (f *fake) serve() {
	a := f.answers
	does(a, &showStatus, func(ctx context.Context, _ wire.At, _ wire.None) (wire.Status, error) {
		return f.status, f.note(ctx, "status")
	})
	does(a, &listEvents, func(ctx context.Context, _ wire.At, _ wire.None) (wire.EventList, error) {
		if f.note(ctx, "events") != nil {
			return wire.EventList{Silent: []string{string(f.name)}}, nil
		}
		return wire.EventList{Events: f.events}, nil
	})
	does(a, &listAccounts, func(ctx context.Context, _ wire.At, _ wire.None) (out wire.AccountList, err error) {
		for _, a := range f.accounts {
			out.Accounts = append(out.Accounts, wire.AccountInfo{Account: a})
		}
		return out, f.note(ctx, "accounts")
	})
	does(a, &showAccount, f.account)
	does(a, &showKeys, func(ctx context.Context, at wire.At, _ wire.None) (wire.Keys, error) {
		if err := f.note(ctx, "keys %s", at.Account); err != nil {
			return wire.Keys{}, err
		}
		_, err := f.account(ctx, at, wire.None{})
		return wire.Keys{Name: at.Account, Key1: "a2V5MQ==", Key2: "a2V5Mg=="}, err
	})
	does(a, &createAccount, func(ctx context.Context, _ wire.At, n wire.NewAccount) (wire.AccountInfo, error) {
		return wire.AccountInfo{Account: wire.Account{Name: n.Name, Primary: f.name}}, f.note(ctx, "create %s", n.Name)
	})
	does(a, &updateAccount, f.update)
	does(a, &showFlows, func(ctx context.Context, at wire.At, _ wire.None) (wire.Flows, error) {
		return wire.Flows{Flows: []wire.Flow{f.flow}}, f.note(ctx, "flow %s", at.Account)
	})
	does(a, &startVerify, func(ctx context.Context, at wire.At, q wire.VerifyQuery) (wire.Verify, error) {
		return wire.Verify{Account: at.Account, Primary: f.name, VerifyQuery: q}, f.note(ctx, "verify %s", at.Account)
	})
	does(a, &showVerify, func(ctx context.Context, at wire.At, _ wire.None) (wire.Verify, error) {
		return wire.Verify{Account: at.Account, Primary: f.name}, f.note(ctx, "verified %s", at.Account)
	})
	does(a, &openClone, func(ctx context.Context, at wire.At, q wire.OpenClone) (wire.Clone, error) {
		if err := f.note(ctx, "open clone %s %gs", at.Account, q.ForSeconds); err != nil {
			return wire.Clone{}, err
		}
		f.clone = &wire.Clone{Account: at.Account, Name: string(at.Account) + geo.CloneSuffix, Location: f.name}
		return *f.clone, nil
	})
	does(a, &showClone, f.shownClone)
	does(a, &dropClone, func(ctx context.Context, at wire.At, _ wire.None) (wire.Clone, error) {
		c, err := f.shownClone(ctx, at, wire.None{})
		f.clone = nil
		return c, err
	})
	does(a, &listReservations, func(ctx context.Context, _ wire.At, _ wire.None) (wire.Reservations, error) {
		return wire.Reservations{Reservations: f.reservations}, f.note(ctx, "reservations")
	})
	does(a, &freeReservation, func(ctx context.Context, at wire.At, _ wire.None) (out wire.Reservations, err error) {
		f.reservations = slices.DeleteFunc(slices.Clone(f.reservations), func(r wire.Reservation) bool {
			if r.Name == at.Account {
				out.Reservations = append(out.Reservations, r)
			}
			return r.Name == at.Account
		})
		return out, f.note(ctx, "free %s", at.Account)
	})
	f.serveNodes()
	f.serveRanges()
}

// serveNodes sets what is done in place of operations on nodes and on the location.
func (f *fake) serveNodes() {
	a := f.answers
	does(a, &nodeSupport, func(ctx context.Context, at wire.At, _ wire.None) (wire.Support, error) {
		return wire.Support{Name: at.Node}, f.note(ctx, "support of %s", at.Node)
	})
	changed := func(o *operation[wire.None, wire.Changed], what string, to wire.State) {
		does(a, o, func(ctx context.Context, at wire.At, _ wire.None) (wire.Changed, error) {
			return wire.Changed{Name: cmp.Or(at.Node, string(at.Location)), State: to}, f.note(ctx, "%s", strings.TrimSpace(what+" "+at.Node))
		})
	}
	changed(&startNode, "start node", wire.Running)
	changed(&stopNode, "stop node", wire.Stopped)
	changed(&startLocation, "start", wire.Running)
	changed(&stopLocation, "stop", wire.Stopped)
	does(a, &listNames, func(ctx context.Context, _ wire.At, q wire.NamesQuery) (wire.Names, error) {
		return wire.Names{Location: f.name, Version: q.Since + "+"}, f.note(ctx, "names after %q", q.After)
	})
	does(a, &showLocationFailover, func(ctx context.Context, _ wire.At, _ wire.None) (wire.LocationFailover, error) {
		return wire.LocationFailover{From: f.name, Moved: 3, Phase: f.failover}, f.note(ctx, "failover of the location")
	})
	does(a, &failLocationOver, func(ctx context.Context, _ wire.At, in wire.Failover) (wire.LocationFailover, error) {
		return wire.LocationFailover{From: f.name, Type: in.Type}, f.note(ctx, "fail over %s", in.Type)
	})
	does(a, &raiseLevels, func(ctx context.Context, _ wire.At, to wire.Levels) (wire.Levels, error) {
		return to, f.note(ctx, "raise levels to %d %d", to.Floor, to.Active)
	})
	does(a, &confirmEpochs, func(ctx context.Context, _ wire.At, _ wire.None) (wire.Epochs, error) {
		return wire.Epochs{Confirmed: true, By: "override"}, f.note(ctx, "override epochs")
	})
	does(a, &cutLink, func(ctx context.Context, _ wire.At, _ wire.None) (wire.Link, error) {
		return wire.Link{State: wire.LinkCut}, f.note(ctx, "link cut")
	})
	does(a, &healLink, func(ctx context.Context, _ wire.At, _ wire.None) (wire.Link, error) {
		return wire.Link{State: wire.LinkUp}, f.note(ctx, "link up")
	})
	does(a, &delayLink, func(ctx context.Context, _ wire.At, d wire.Delay) (wire.Link, error) {
		return wire.Link{State: wire.LinkDelayed}, f.note(ctx, "link delayed %gs", d.Seconds)
	})
}

// serveRanges sets what is done in place of operations on ranges and streams.
func (f *fake) serveRanges() {
	a := f.answers
	does(a, &recoverRange, func(ctx context.Context, at wire.At, in wire.RecoverRange) (wire.RangeRecovered, error) {
		return wire.RangeRecovered{Location: f.name, Range: at.Range, Survivor: "a", SilentNodes: []string{"b"}}, f.note(ctx, "recover range %d %+v", at.Range, in)
	})
	does(a, &listForks, func(ctx context.Context, _ wire.At, _ wire.None) (wire.Forks, error) {
		return f.forks, f.note(ctx, "forks")
	})
	does(a, &resumeStream, func(ctx context.Context, _ wire.At, s wire.StreamName) (wire.Resumed, error) {
		return wire.Resumed{Stream: s.String(), Location: f.name, Reason: "version"}, f.note(ctx, "resume %s", s)
	})
	does(a, &resolveFork, func(ctx context.Context, _ wire.At, q wire.ResolveFork) (wire.ForkResolved, error) {
		return wire.ForkResolved{Stream: q.String(), Keep: q.Keep, State: "settling"}, f.note(ctx, "resolve %s keep %s", q.StreamName, q.Keep)
	})
	does(a, &copyAlone, func(ctx context.Context, _ wire.At, q wire.AloneQuery) (wire.CopyAlone, error) {
		return wire.CopyAlone{Account: q.Account, Location: f.name, Rows: 7}, f.note(ctx, "alone %s", q.Account)
	})
	does(a, &listFound, func(ctx context.Context, _ wire.At, q wire.FoundQuery) (wire.Found, error) {
		return wire.Found{Location: f.name, Rows: []wire.FoundRow{{Key: "02", Account: q.Account}}}, f.note(ctx, "found %s", q.Account)
	})
	does(a, &readFound, func(ctx context.Context, _ wire.At, q wire.FoundChunk) (wire.FoundPayload, error) {
		return wire.FoundPayload{Data: []byte("data")}, f.note(ctx, "payload %s %d", q.Key, q.Chunk)
	})
	does(a, &dropFound, func(ctx context.Context, _ wire.At, q wire.DropFound) (wire.FoundDropped, error) {
		return wire.FoundDropped{Dropped: len(q.Keys)}, f.note(ctx, "drop %v", q.Keys)
	})
	does(a, &listLost, func(ctx context.Context, _ wire.At, q wire.LostQuery) (wire.Lost, error) {
		return wire.Lost{Location: f.name, Changes: []wire.LostChange{{Key: "02"}}}, f.note(ctx, "lost %s", q.Account)
	})
	does(a, &dropLost, func(ctx context.Context, _ wire.At, q wire.DropLost) (wire.LostDropped, error) {
		return wire.LostDropped{Dropped: 1}, f.note(ctx, "drop lost %s", q.Account)
	})
}

func (f *fake) account(ctx context.Context, at wire.At, _ wire.None) (wire.AccountInfo, error) {
	if err := f.note(ctx, "account %s", at.Account); err != nil {
		return wire.AccountInfo{}, err
	}
	i := slices.IndexFunc(f.accounts, func(a wire.Account) bool { return a.Name == at.Account })
	if i < 0 {
		return wire.AccountInfo{}, fmt.Errorf("catalog: %w", storageerr.AccountNotFound)
	}
	return wire.AccountInfo{Account: f.accounts[i]}, nil
}

func (f *fake) shownClone(ctx context.Context, at wire.At, _ wire.None) (wire.Clone, error) {
	if err := f.note(ctx, "clone %s", at.Account); err != nil {
		return wire.Clone{}, err
	}
	if f.clone == nil {
		return wire.Clone{}, &wire.Error{Status: 404, Code: wire.CodeNoClone, Message: "no clone"}
	}
	return *f.clone, nil
}

func (f *fake) update(ctx context.Context, at wire.At, u wire.UpdateAccount) (wire.AccountUpdated, error) {
	out := wire.AccountUpdated{Behind: "not yet"}
	out.Name, out.Primary, out.Redundancy = at.Account, f.name, u.Redundancy
	if u.Failover != nil {
		err := f.note(ctx, "failover %s of %s", u.Failover.Type, at.Account)
		if err == nil && f.noPromotion {
			err = storageerr.InvalidInput
		}
		return out, err
	}
	return out, f.note(ctx, "update %s to %s", at.Account, u.Redundancy)
}

// asks has a location carry out an operation without a question.
func asks[Resp any](ctx context.Context, l Location, o *operation[wire.None, Resp], at wire.At) (Resp, error) {
	return ask(ctx, l, o, at, wire.None{})
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
