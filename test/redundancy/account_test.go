package redundancy

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/test/faults/rig"
	"antipode/test/load"
	"antipode/test/rest"
)

// account is an account of a deployment whose primary is in the north, and writers of it. Its methods fail the test.
type account struct {
	t    *testing.T
	r    *rig.Rig
	name geo.Account
	*load.Load

	mu     sync.Mutex
	took   []time.Duration // of the writes that were answered
	failed []string        // those with an error, or a status of the 500s
}

// create creates an account without a secondary.
func create(ctx context.Context, t *testing.T, r *rig.Rig, name geo.Account, o load.Options) *account {
	t.Helper()
	a := &account{t: t, r: r, name: name}
	_, err := r.Admin(rig.Gateway).CreateAccount(ctx, wire.NewAccount{
		Name: name, Location: rig.North, Key1: rest.DevKey, Key2: rest.DevKey, Redundancy: string(catalog.LRS), Ensure: true,
	})
	require.NoError(t, err)
	o.OnWrite = a.wrote
	a.Load = load.New(r.ClientOf(rig.Gateway, name, false), r.ClientOf(rig.NodesOf(rig.South)[0], name, true), o)
	a.eventually(ctx, "a table and a container", func(ctx context.Context) bool { return a.Setup(ctx) == nil })
	a.comesTo(ctx, catalog.LRS) // The creation may have been answered before the other location knows of it.
	return a
}

// eventually repeats ok until it is true. Each try has some seconds: a process that was killed may leave a call open.
func (a *account) eventually(ctx context.Context, what string, ok func(ctx context.Context) bool) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, *calmWait)
	defer cancel()
	for {
		one, cancel := context.WithTimeout(ctx, 10*time.Second)
		good := ok(one)
		cancel()
		if good {
			return
		}
		require.NoError(a.t, ctx.Err(), what)
		rig.Pause(ctx, poll)
	}
}

func (a *account) wrote(took time.Duration, answer rest.Answer, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took = append(a.took, took)
	if err != nil || answer.Status >= http.StatusInternalServerError {
		a.failed = append(a.failed, answer.String())
	}
}

// writing writes until the function that it returns is called, which returns once every write has its answer.
func (a *account) writing(ctx context.Context) (end func()) {
	ctx, halt := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return sync.OnceFunc(func() {
		halt()
		require.NoError(a.t, <-done)
	})
}

// shown is the account as the gateway shows it.
func (a *account) shown(ctx context.Context) (wire.AccountInfo, error) {
	return a.r.Admin(rig.Gateway).Account(ctx, a.name)
}

// comesTo waits until a redundancy holds at both locations, with nothing under way.
func (a *account) comesTo(ctx context.Context, to catalog.Redundancy) {
	a.t.Helper()
	a.eventually(ctx, "both locations have the account as "+string(to), func(ctx context.Context) bool {
		for _, l := range []geo.Location{rig.North, rig.South} {
			got, err := a.r.Admin(rig.NodesOf(l)[0]).Account(ctx, a.name)
			if err != nil || got.Redundancy != string(to) || got.Operation != "" {
				return false
			}
		}
		return true
	})
}

// live waits until the secondary's statistics are live.
func (a *account) live(ctx context.Context) {
	a.t.Helper()
	for _, s := range []geo.Service{geo.Table, geo.Blob} {
		a.eventually(ctx, "live statistics", func(ctx context.Context) bool {
			got, err := a.Secondary.Stats(ctx, s)
			return err == nil && got.Status == string(wire.Live) && got.Known
		})
	}
}

// agrees requires that a comparison of both copies, payload included, finds every lane equal. Nobody writes.
func (a *account) agrees(ctx context.Context) {
	a.t.Helper()
	admin := a.r.Admin(rig.Gateway)
	a.eventually(ctx, "both copies are compared", func(ctx context.Context) bool {
		v, err := admin.StartVerify(ctx, a.name, wire.VerifyQuery{Payload: true})
		for err == nil && v.State == wire.VerifyRunning {
			rig.Pause(ctx, poll)
			v, err = admin.Verify(ctx, a.name)
		}
		if err != nil {
			return false
		}
		require.Zero(a.t, v.DifferencesTotal, "%+v", v.Differences)
		require.NotEqual(a.t, wire.VerifyDifferent, v.Outcome)
		return v.Outcome == wire.VerifyEqual
	})
}

// refused requires that -secondary reads nothing, by the code of the protocol, wherever it is asked.
func (a *account) refused(ctx context.Context) {
	a.t.Helper()
	for _, name := range append(rig.NodesOf(rig.South), rig.Gateway) {
		c := a.r.ClientOf(name, a.name, true)
		_, table, err := c.GetEntity(ctx, "crash", "p", "r")
		require.NoError(a.t, err)
		blob, err := c.GetBlob(ctx, "crash", "b")
		require.NoError(a.t, err)
		stats, err := c.Do(ctx, geo.Table, rest.Request{Method: http.MethodGet, Path: "/", Query: "restype=service&comp=stats"})
		require.NoError(a.t, err)
		for _, got := range []rest.Answer{table, blob, stats} {
			require.Equal(a.t, http.StatusForbidden, got.Status, "%s: %v", name, got)
			require.Equal(a.t, "InsufficientAccountPermissions", got.Code, "%s: %v", name, got)
		}
	}
}
