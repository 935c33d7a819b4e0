package directory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/directory"
	"antipode/directory/record"
	"antipode/failover/planned"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// Creations, freeings and late calls of one name at both locations go on in any order, one step at
// a time. Steps are commits and calls; any may be lost, its answer too, and any caller may end at
// any step. Then (R7, R8):
//
//   - one location at most completes the name, and both never disagree about it;
//   - epochs of incomplete records, and the highest one seen, never fall;
//   - no gate is above the epoch of the complete account, so that its records are taken;
//   - an account without a secondary ships nothing (R10), and both locations know it;
//   - when all has come to rest, one call at each location makes the account: the name is not burnt.
func TestR8NameIsCompletedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		n := &name{world: w, underWay: &underWay{}, rt: rt, name: geo.Account(fmt.Sprintf("name%d", runs)), last: map[geo.Location]known{}}
		life := rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(rt, "life")
		for _, l := range w.locations {
			l.directory.SetLife(life)
		}
		for range rapid.IntRange(10, 60).Draw(rt, "steps") {
			n.step()
			n.check()
		}
		n.rest()
	})
}

// world is two locations, each with its own stamp.
type world struct{ locations []*place }

type place struct {
	name      geo.Location
	stamp     *stamp.Stamp
	directory *directory.Directory
	far       *place
}

func newWorld(t *testing.T) *world {
	w := &world{}
	for _, l := range []geo.Location{"north", "south"} {
		s := stamptest.New(t, l, geo.Catalog, geo.Blob, geo.Queue, geo.Table)
		w.locations = append(w.locations, &place{name: l, stamp: s})
	}
	a, b := w.locations[0], w.locations[1]
	a.far, b.far = b, a
	for _, p := range w.locations {
		p.directory = directory.NewDirectory(stepped{p.stamp}, p.far.name)
		p.directory.SetPeer(steppedPeer{p.far})
		p.directory.SetImages(primary.New(stepped{p.stamp}))
		p.directory.SetPace(&leaping{}, 0)
		p.directory.SetTime(clock.Wait, func(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
			return context.WithCancel(ctx)
		})
	}
	return w
}

// leaping is a clock of which each reading is a minute after the last: what is remembered for seconds is asked again, in each
// repetition of a run.
type leaping struct {
	clock.System
	read atomic.Int64
}

func (c *leaping) Mono() time.Duration { return time.Duration(c.read.Add(1)) * time.Minute }

// caller is one call of a directory, on a goroutine that runs between two steps only.
type caller struct {
	what  string
	go_   chan action
	yield chan bool // false: the call has ended
	dead  bool
	n     *name
}

// action is what becomes of a step.
type action int

const (
	run action = iota
	// refuse: the step does not happen, and its caller learns that.
	refuse
	// forget: the step happens, and its answer is lost.
	forget
	// die: the caller ends before the step.
	die
	actions
)

type callerKey struct{}

// at waits until the step may be done.
func at(ctx context.Context) (*caller, action) {
	c, _ := ctx.Value(callerKey{}).(*caller)
	if c == nil {
		return nil, run
	}
	if c.dead {
		return c, die
	}
	c.yield <- true
	do := <-c.go_
	c.dead = c.dead || do == die
	return c, do
}

// stepped is a stamp whose commits are steps.
type stepped struct{ *stamp.Stamp }

func (s stepped) Submit(ctx context.Context, r geo.RangeID, cmd ranges.Command) error {
	_, do := at(ctx)
	if do == refuse || do == die {
		return kv.ErrBusy
	}
	err := s.Stamp.Submit(ctx, r, cmd)
	if do == forget {
		return kv.ErrUnknown
	}
	return err
}

// SubmitAll has the commands of several accounts be one step.
func (s stepped) SubmitAll(ctx context.Context, r geo.RangeID, cmds []ranges.Command) []error {
	_, do := at(ctx)
	if do == refuse || do == die {
		return slices.Repeat([]error{kv.ErrBusy}, len(cmds))
	}
	errs := s.Stamp.SubmitAll(ctx, r, cmds)
	if do == forget {
		errs = slices.Repeat([]error{kv.ErrUnknown}, len(cmds))
	}
	return errs
}

// steppedPeer is the other location, whose calls are steps. A call may come again later.
type steppedPeer struct{ far *place }

func (p steppedPeer) Reserve(ctx context.Context, a catalog.Account) error {
	return p.call(ctx, func(ctx context.Context) error { return p.far.directory.Reserve(ctx, a) })
}

func (p steppedPeer) Announce(ctx context.Context, a catalog.Account) error {
	return p.call(ctx, func(ctx context.Context) error { return p.far.directory.Announce(ctx, a) })
}

func (p steppedPeer) Prepare(ctx context.Context, a catalog.Account) error {
	return p.call(ctx, func(ctx context.Context) error { return p.far.directory.Prepare(ctx, a) })
}

func (p steppedPeer) Offer(ctx context.Context, o planned.Offer) (a *catalog.Account, err error) {
	err = p.call(ctx, func(ctx context.Context) (err error) {
		a, err = p.far.directory.Offer(ctx, o)
		return err
	})
	return a, err
}

func (p steppedPeer) Refuse(ctx context.Context, of catalog.Account) (a *catalog.Account, err error) {
	err = p.call(ctx, func(ctx context.Context) (err error) {
		a, err = p.far.directory.Refuse(ctx, of)
		return err
	})
	return a, err
}

func (p steppedPeer) Rejoin(ctx context.Context, a catalog.Account) error {
	return p.call(ctx, func(ctx context.Context) error { return p.far.directory.Rejoin(ctx, a) })
}

func (p steppedPeer) LostRows(ctx context.Context, a catalog.Account, r geo.RangeID, from rejoin.LostRow) (out rejoin.LostRows, err error) {
	err = p.call(ctx, func(ctx context.Context) (err error) {
		out, err = p.far.directory.LostRows(ctx, a, r, from)
		return err
	})
	return out, err
}

func (p steppedPeer) Adopt(ctx context.Context, t rejoin.Taken) error {
	return p.call(ctx, func(ctx context.Context) error { return p.far.directory.Adopt(ctx, t) })
}

func (p steppedPeer) call(ctx context.Context, f func(context.Context) error) error {
	c, do := at(ctx)
	if c != nil {
		c.n.late = append(c.n.late, f)
	}
	if do == refuse || do == die {
		return errLink
	}
	err := f(ctx)
	if do == forget {
		return errLink
	}
	return err
}

// name is one run, or one of several names in a run.
type name struct {
	*world
	*underWay
	rt   *rapid.T
	name geo.Account
	last map[geo.Location]known
}

// underWay is what goes on in a run.
type underWay struct {
	callers []*caller
	late    []func(context.Context) error
}

// known is what a location holds of the name.
type known struct {
	account *catalog.Account
	seen    geo.Epoch
}

func (n *name) draw(what string, count int) int { return rapid.IntRange(0, count-1).Draw(n.rt, what) }

// step begins a call, or does one step of a call that goes on.
func (n *name) step() {
	begin := n.draw("begin", 8)
	where := n.locations[n.draw("where", len(n.locations))]
	switch {
	case begin == 0 && len(n.callers) < 6:
		as := rapid.SampledFrom([]catalog.Redundancy{catalog.LRS, catalog.RAGRS}).Draw(n.rt, "redundancy")
		n.start(fmt.Sprintf("create as %s at %s", as, where.name), func(ctx context.Context) {
			_, _ = where.directory.CreateAs(ctx, directory.Wanted{Name: n.name, Redundancy: as})
		})
	case begin == 1 && len(n.callers) < 6:
		n.start("free at "+string(where.name), func(ctx context.Context) { _, _ = where.directory.Free(ctx, n.name) })
	case begin == 2 && len(n.late) > 0:
		call := n.late[n.draw("late", len(n.late))]
		n.start("late call", func(ctx context.Context) { _ = call(ctx) })
	case begin == 3:
		n.ship()
	case begin == 4 && len(n.callers) < 6:
		n.start("resume at "+string(where.name), func(ctx context.Context) { _, _ = where.directory.Resume(ctx) })
	case len(n.callers) > 0:
		c := n.callers[n.draw("caller", len(n.callers))]
		do := run
		if n.draw("fault", 4) == 0 {
			do = action(n.draw("action", int(actions)))
		}
		n.resume(c, do)
	}
}

// start begins a call and runs it to its first step.
func (n *name) start(what string, f func(context.Context)) {
	c := &caller{what: what, go_: make(chan action), yield: make(chan bool), n: n}
	ctx := context.WithValue(context.Background(), callerKey{}, c)
	go func() {
		f(ctx)
		c.yield <- false
	}()
	n.await(c, true)
}

func (n *name) resume(c *caller, do action) {
	c.go_ <- do
	n.await(c, false)
}

func (n *name) await(c *caller, first bool) {
	goes := <-c.yield
	switch {
	case goes && first:
		n.callers = append(n.callers, c)
	case !goes && !first:
		for i, o := range n.callers {
			if o == c {
				n.callers = append(n.callers[:i], n.callers[i+1:]...)
				return
			}
		}
	}
}

// ship has the change that completes the account arrive at its secondary.
func (n *name) ship() {
	for _, p := range n.locations {
		a := n.look(p).account
		if a == nil || !a.Active || a.Primary != p.name || !a.Redundancy.Geo() {
			continue
		}
		cmd := &arrive{a: *a}
		require.NoError(n.rt, persist(func() error {
			return p.far.stamp.Submit(context.Background(), geo.FirstRange(geo.Catalog), cmd)
		}))
		require.Equal(n.rt, change.Gate{Epoch: a.GeoEpoch(), Role: change.RoleSecondary, Open: true}, cmd.gate, "at %s", p.far.name)
	}
}

// arrive stores the record of an account as the other location shipped it.
type arrive struct {
	a    catalog.Account
	gate change.Gate
}

func (c *arrive) Evaluate(tx *ranges.Tx) error {
	c.gate = tx.Gate(c.a.Name)
	v, err := c.a.Encode()
	if err != nil {
		return err
	}
	p := catalog.AccountPartition(c.a.Name)
	return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Value: v}}})
}

// look reads what a location holds of the name.
func (n *name) look(p *place) known {
	var k known
	read := func(s ranges.State) (err error) {
		k.account, err = catalog.GetAccount(s, n.name)
		if errors.Is(err, storageerr.AccountNotFound) {
			k.account, err = nil, nil
		}
		if err == nil {
			k.seen, err = catalog.SeenEpoch(s, n.name)
		}
		return err
	}
	require.NoError(n.rt, persist(func() error {
		return p.stamp.Read(context.Background(), geo.FirstRange(geo.Catalog), read)
	}))
	return k
}

// persist does something again while a stamp on a busy machine has no leader for it.
func persist(f func() error) error {
	err := f()
	for record.Passing(err) {
		err = f()
	}
	return err
}

// check checks the promises that hold after each step.
func (n *name) check() {
	var complete []*catalog.Account
	for _, p := range n.locations {
		k, was := n.look(p), n.last[p.name]
		require.LessOrEqual(n.rt, was.seen.Compare(k.seen), 0, "the highest epoch fell at %s", p.name)
		if a := k.account; a != nil {
			require.LessOrEqual(n.rt, a.GeoEpoch().Compare(k.seen), 0, "an epoch above the highest one")
			if a.Active {
				complete = append(complete, a)
			} else if was.account != nil {
				require.False(n.rt, was.account.Active, "a complete account is not complete any more")
				require.LessOrEqual(n.rt, was.account.GeoEpoch().Compare(a.GeoEpoch()), 0, "the epoch of the record fell")
			}
		} else {
			require.False(n.rt, was.account != nil && was.account.Active, "a complete account is gone")
		}
		n.last[p.name] = k
	}
	if len(complete) == 2 {
		require.True(n.rt, complete[0].SameCreation(complete[1]), "%+v and %+v", complete[0], complete[1])
	}
	if len(complete) > 0 {
		n.checkGates(complete[0], false)
	}
}

// checkGates checks that no gate is above the epoch of the complete account; whole: that all are
// of it.
func (n *name) checkGates(a *catalog.Account, whole bool) {
	for _, p := range n.locations {
		want := change.Gate{Epoch: a.GeoEpoch(), Role: change.RoleSecondary, Open: true}
		switch {
		case a.Primary == p.name:
			want.Role, want.Numbered = change.RolePrimary, a.Redundancy.Geo()
		case !a.Redundancy.Geo():
			want.Role, want.Open = change.RoleNone, false
		}
		for _, svc := range []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table} {
			g := p.stamp.Leader(geo.FirstRange(svc)).Machine.Gate(n.name)
			require.LessOrEqual(n.rt, g.Epoch.Compare(a.GeoEpoch()), 0, "%s at %s", svc, p.name)
			if whole {
				require.Equal(n.rt, want, g, "%s at %s", svc, p.name)
			}
		}
	}
}

// rest lets all calls end and then has the account made.
func (n *name) rest() {
	for len(n.callers) > 0 {
		n.resume(n.callers[0], run)
		n.check()
	}
	made := 0
	for _, p := range n.locations {
		n.ship()
		err := persist(func() error {
			_, err := p.directory.Create(context.Background(), n.name, nil, nil)
			return err
		})
		if err == nil {
			made++
		} else {
			requireTaken(n.rt, err)
		}
		n.check()
	}
	n.ship()
	for _, p := range n.locations {
		require.NoError(n.rt, persist(func() error {
			_, err := p.directory.Resume(context.Background())
			return err
		}))
	}
	a, b := n.look(n.locations[0]).account, n.look(n.locations[1]).account
	require.True(n.rt, a != nil && b != nil && a.Active && b.Active && a.SameCreation(b), "%+v and %+v, %d made", a, b, made)
	n.checkGates(a, true)
	heads, _ := n.place(a.Primary).stamp.Leader(geo.FirstRange(geo.Catalog)).Machine.Heads()
	shipped := geo.Stream{Account: n.name, Epoch: a.GeoEpoch(), Range: geo.FirstRange(geo.Catalog), Lane: catalog.AccountPartition(n.name).Lane()}
	if !a.Redundancy.Geo() { // R10
		shipped = geo.Stream{}
		require.Nil(n.rt, a.Operation)
	} else {
		require.EqualValues(n.rt, 1, heads[shipped].Seq, "one change is shipped: the complete record")
	}
	for s := range heads {
		require.False(n.rt, s.Account == n.name && s != shipped, "stream %s of a creation that was never complete", s)
	}
}

func (n *name) place(l geo.Location) *place {
	for _, p := range n.locations {
		if p.name == l {
			return p
		}
	}
	return nil
}
