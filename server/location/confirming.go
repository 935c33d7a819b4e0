package location

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	wire "antipode/client/admin"
	"antipode/failover/confirm"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// The kinds of events about epochs (R21).
const (
	// EpochsConfirmed: this process may answer writes of accounts that have a copy, and why.
	EpochsConfirmed node.EventKind = "epochs-confirmed"
	// EpochsLost: it may no longer.
	EpochsLost node.EventKind = "epochs-unconfirmed"
	// EpochsPassed: an account whose primary was here has a higher epoch at the other location.
	EpochsPassed node.EventKind = "epoch-passed"
)

const (
	// exchangeTimeout bounds an exchange with the other location.
	exchangeTimeout = 5 * time.Second
	// renewTimeout bounds a renewal, claimTimeout any other call to the witness.
	renewTimeout = 2 * time.Second
	claimTimeout = 2 * time.Second
	// remindMax bounds how long an answer to the other location waits until that has followed what it has lost.
	remindMax = time.Second
	// confirmWait is how long a process tries to have its epochs confirmed before it refuses a write without a wait: two
	// locations that start together, or a process that goes on after a pause, need some round trips.
	confirmWait = 3 * time.Second
)

// confirming has the epochs of this process confirmed while the location runs: see package confirm.
type confirming struct {
	l *Location

	mu      sync.Mutex
	machine *confirm.Machine // nil while the location is stopped
	fence   *ranges.Fence
	// moved is closed and replaced when the machine has changed.
	moved chan struct{}
	// passed are the accounts of which a higher epoch was reported.
	passed map[geo.Account]geo.Epoch
	// fresh are those of them that were not reported yet.
	fresh map[geo.Account]geo.Epoch
	// parted is the machine's: see withheld.go. While it is set a frame is sent at probeAt.
	parted  atomic.Bool
	probeAt time.Duration
	// own are the gates of the accounts whose primary is here, as they were read last; nil before.
	own map[geo.Account]change.Gate

	cancel context.CancelFunc // guarded by Location.mu
	wg     sync.WaitGroup
}

// begin returns the fence of a stamp that is about to start. Nothing is confirmed yet.
func (c *confirming) begin() *ranges.Fence {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine, c.fence, c.moved = confirm.New(confirm.Options{Witness: c.l.o.Witness != nil}), &ranges.Fence{}, make(chan struct{})
	c.passed, c.fresh, c.own = map[geo.Account]geo.Epoch{}, map[geo.Account]geo.Epoch{}, nil
	return c.fence
}

// start steps the machine until stop.
func (c *confirming) start(s *stamp.Stamp) {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.wg.Go(func() {
		ticker := time.NewTicker(confirm.LookEvery)
		defer ticker.Stop()
		for {
			c.step(ctx, s, confirm.Look{Alone: c.l.o.Alone()})
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
}

// stop ends what start began and waits for it.
func (c *confirming) stop() {
	if c.cancel == nil {
		return
	}
	c.cancel()
	c.wg.Wait()
	c.cancel = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fence.Set(ranges.Confirmed{})
	c.machine = nil
	c.parted.Store(false)
}

// step gives the machine an event, and the fence what it holds then.
func (c *confirming) step(ctx context.Context, s *stamp.Stamp, e confirm.Event) {
	c.mu.Lock()
	if c.machine == nil {
		c.mu.Unlock()
		return
	}
	effects := c.machine.Step(c.l.o.Clock.Mono(), e)
	c.fence.Set(c.machine.Held())
	for _, e := range effects {
		if e, ok := e.(confirm.Higher); ok {
			c.pass(e.Above)
		}
	}
	c.parted.Store(c.machine.State().Parted) // What has passed is withheld by now.
	if _, look := e.(confirm.Look); !look {
		close(c.moved)
		c.moved = make(chan struct{})
	}
	c.mu.Unlock()
	for _, e := range effects {
		c.carryOut(ctx, s, e)
	}
}

func (c *confirming) carryOut(ctx context.Context, s *stamp.Stamp, e confirm.Effect) {
	switch e := e.(type) {
	case confirm.Exchange:
		c.wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
			defer cancel()
			above, err := c.exchange(ctx)
			c.step(ctx, s, confirm.Exchanged{Above: above, Err: err})
		})
	case confirm.AskNodes:
		c.wg.Go(func() {
			above, holds := s.Confirmed(ctx)
			c.step(ctx, s, confirm.NodesAsked{Holds: holds, Above: above})
		})
	case confirm.Renew:
		c.wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, renewTimeout)
			defer cancel()
			g, err := c.l.o.Witness.Renew(ctx, e.After)
			c.step(ctx, s, confirm.Renewed{Grant: g, Err: err})
		})
	case confirm.Changed:
		c.report(e)
	case confirm.Higher:
		c.higher(e.Above)
	}
}

// exchange asks the other location about all accounts that are primary here.
func (c *confirming) exchange(ctx context.Context) (confirm.Epochs, error) {
	own, err := c.l.Directory.Own(ctx)
	if err != nil {
		return nil, fmt.Errorf("the catalog does not answer: %w", err)
	}
	if c.l.far.Epochs == nil {
		return nil, errors.New("the other location is not connected")
	}
	above, err := confirm.Run(ctx, own, c.l.far.Epochs)
	if err == nil {
		above = c.l.Directory.Passing(ctx, above)
		c.unpass(own, above)
	}
	return above, err
}

// unpass forgets higher epochs of accounts that the other location was asked for and has no more: it was made again, or has
// lost them. The fence lets their writes through then, and their records must go on (R22).
func (c *confirming) unpass(asked, above confirm.Epochs) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range asked {
		if _, is := above[name]; !is {
			delete(c.passed, name)
		}
	}
}

// report reports that the epochs are confirmed, or are no longer.
func (c *confirming) report(e confirm.Changed) {
	if e.Source == confirm.None {
		why := fmt.Sprintf("the process stood still for %s; writes of accounts that have a copy wait for %s", e.Stood.Round(time.Millisecond), c.l.o.Other)
		if e.Was == confirm.ByWitness {
			why = "its lease has ended; writes of accounts that have a copy wait for the witness"
		}
		c.l.report(wire.Event{Kind: string(EpochsLost), Node: c.l.ownName(), Reason: why})
		return
	}
	c.l.report(wire.Event{Kind: string(EpochsConfirmed), Node: c.l.ownName(), Reason: map[confirm.Source]string{
		confirm.ByExchange: "location " + string(c.l.o.Other) + " answered",
		confirm.ByNode:     "another node of the stamp holds them",
		confirm.ByWitness:  "the witness has granted a lease",
		confirm.ByOverride: "an operator's override",
		confirm.ByPolicy:   "location " + string(c.l.o.Other) + " does not answer, and the policy is to go on without it",
	}[e.Source]})
}

// pass takes accounts that the other location has in a higher epoch: their records are withheld, also those in frames that
// wait. The caller holds mu.
func (c *confirming) pass(above confirm.Epochs) {
	before := len(c.fresh)
	for name, e := range above {
		if c.passed[name].Compare(e) < 0 {
			c.passed[name], c.fresh[name] = e, e
		}
	}
	if len(c.fresh) > before {
		c.l.rebuildFrames()
	}
}

// higher reports accounts that the other location has in a higher epoch, each once, and passes them on.
func (c *confirming) higher(above confirm.Epochs) {
	c.mu.Lock()
	fresh := c.fresh
	c.fresh = map[geo.Account]geo.Epoch{}
	c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(fresh)) {
		c.l.report(wire.Event{Kind: string(EpochsPassed), Node: c.l.ownName(), Account: name, Reason: fmt.Sprintf(
			"it is in epoch %s at %s: its writes are refused here", fresh[name], c.l.o.Other)})
	}
	c.l.o.OnHigher(above)
}

// await waits until a write that was refused for unconfirmed epochs may be tried again, for confirmWait at most, and not
// if the epochs have been unconfirmed for that long already. It reports whether they are confirmed.
func (c *confirming) await(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, confirmWait)
	defer cancel()
	for {
		c.mu.Lock()
		moved, fence, running := c.moved, c.fence, c.machine != nil
		var state confirm.State
		if running {
			state = c.machine.State()
		}
		c.mu.Unlock()
		now := c.l.o.Clock.Mono()
		switch {
		case running && now < fence.Held().Until:
			return true
		case !running, state.Source == confirm.None && state.Since > 0 && now-state.Since > confirmWait:
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-moved:
		}
	}
}

// setOwn takes the accounts of the location.
func (c *confirming) setOwn(list []*catalog.Account) {
	own := map[geo.Account]change.Gate{}
	for _, a := range list {
		if a.Primary == c.l.o.Name {
			own[a.Name] = agreedGate(a)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own = own
}

// refused are those of higher epochs that keep an account of this location from its writes. A claim at the witness stays
// when the account has moved on, or has come back in a later epoch.
func (c *confirming) refused(above confirm.Epochs) []wire.RefusedEpoch {
	c.mu.Lock()
	own := c.own
	c.mu.Unlock()
	var out []wire.RefusedEpoch
	for _, name := range slices.Sorted(maps.Keys(above)) {
		if g, primary := own[name]; own == nil || primary && g.PassedBy(above[name]) {
			out = append(out, wire.RefusedEpoch{Account: name, Epoch: wire.EpochOf(above[name])})
		}
	}
	return out
}

// state returns what the machine shows; ok is false while the location is stopped.
func (c *confirming) state() (s confirm.State, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.machine == nil {
		return s, false
	}
	return c.machine.State(), true
}

// ownName is the name of the node of this process in events: of its first one where it runs all.
func (l *Location) ownName() string { return wire.NodeName(l.o.Name, l.o.Local[0]) }

// HigherEpochs answers the question of the other location which of its accounts have a higher epoch here. One that it must have
// known, and has lost, it is reminded of.
func (l *Location) HigherEpochs(ctx context.Context, of confirm.Epochs) (confirm.Epochs, error) {
	if _, err := l.Stamp(); err != nil {
		return nil, err
	}
	above, err := l.Directory.Higher(ctx, of)
	if err != nil || len(above) == 0 {
		return above, err
	}
	within, cancel := context.WithTimeout(ctx, remindMax)
	defer cancel()
	if err := l.Directory.Rejoiner().Remind(within, above); err != nil { // The next question is followed by the next try.
		l.o.Logger.Info("accounts are not followed by their former primary", "location", l.o.Name, "error", err)
	}
	return above, nil
}

// UpToDate reports whether a read of an account under its primary name shows all that was acknowledged anywhere, as far
// as this process can know (R21).
func (l *Location) UpToDate(a *catalog.Account) bool {
	l.confirming.mu.Lock()
	fence := l.confirming.fence
	l.confirming.mu.Unlock()
	copied := a.Redundancy.Geo() || a.Agreed() != 0
	return !copied || a.Primary != l.o.Name || fence.Confirms(a.Name, agreedGate(a), l.o.Clock.Mono())
}

// Passed reports whether another location is known to have, or to claim, an account in a higher epoch than the one that this
// one has it in as its primary (R21).
func (l *Location) Passed(a *catalog.Account) bool {
	l.confirming.mu.Lock()
	fence := l.confirming.fence
	l.confirming.mu.Unlock()
	if a.Primary != l.o.Name || fence == nil {
		return false
	}
	above, known := fence.Held().Above[a.Name]
	return known && agreedGate(a).PassedBy(above)
}

// agreedGate is the gate of an account at its primary, as far as another epoch may pass it.
func agreedGate(a *catalog.Account) change.Gate {
	return change.Gate{Epoch: a.GeoEpoch(), Agreed: a.Agreed()}
}

// ConfirmEpochs confirms the epochs in this process by an operator's word.
func (l *Location) ConfirmEpochs(ctx context.Context) (wire.Epochs, error) {
	s, err := l.Stamp()
	if err != nil {
		return wire.Epochs{}, err
	}
	l.confirming.step(ctx, s, confirm.Overridden{})
	return l.Epochs(), nil
}

// Epochs describes whether the epochs are confirmed in this process.
func (l *Location) Epochs() wire.Epochs {
	s, running := l.confirming.state()
	out := wire.Epochs{
		Confirmed: s.Source != confirm.None, By: string(s.Source), Policy: l.o.Alone(),
		Witness: l.o.Witness != nil, WitnessAddress: l.o.WitnessAddress,
	}
	var nodes []string
	for _, id := range l.o.Local {
		nodes = append(nodes, wire.NodeName(l.o.Name, id))
	}
	if !out.Confirmed {
		out.UnconfirmedNodes = nodes
	}
	waits := s.Failed
	if out.Witness {
		waits = s.Unwitnessed
	}
	if running && waits != nil {
		out.Waiting, out.WaitingNodes = waits.Error(), nodes
	}
	if running && s.Parted {
		out.PartedSeconds = (l.o.Clock.Mono() - s.PartedSince).Seconds()
	}
	out.Refused = l.confirming.refused(s.Above)
	return out
}
