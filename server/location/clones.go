package location

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"antipode/api"
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/server/clone"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

const (
	// clonesMax bounds the clones of a process: each has its own log, memtables and files.
	clonesMax = 4
	// expireEvery is how often the times of clones are looked at.
	expireEvery = time.Second
	// catchUpPoll is after how long a node that knows no leader looks again.
	catchUpPoll = 20 * time.Millisecond
	// openMax bounds how long a clone takes to open: nodes, and other clones, wait for the turn to stop.
	openMax = time.Minute
)

// clones are the clones of accounts that this process has open: see server/clone.
type clones struct {
	l *Location
	// api is what their front ends have in common with that of the location. Set before the location starts.
	api api.Options

	// turn is held while a clone is opened or closed, and while a node stops: none is made of a node that stops.
	turn sync.Mutex
	mu   sync.RWMutex
	// open are those that serve. Guarded by mu.
	open map[geo.Account]*openClone
}

// openClone is a clone with what is shown of it.
type openClone struct {
	clone *clone.Clone
	host  geo.NodeID
	shown wire.Clone
	// until is the monotonic time at which it ends.
	until time.Duration
	// pressed is set once the disk of its node was nearly full: while it is open no payload there is reclaimed. Guarded
	// by clones.mu.
	pressed bool
}

// start has the clones end with the nodes of a stamp, and after their time, and nothing is left of them when a node starts.
func (c *clones) start(s *stamp.Stamp) {
	c.mu.Lock()
	c.open = map[geo.Account]*openClone{}
	c.mu.Unlock()
	s.OnStart(c.hostStarts)
	s.OnStop(c.hostStops)
	s.Go(c.expire)
}

// hostStarts deletes what is left of the clones of a node that was opened, and serves nothing yet. The node starts in any
// case: what could not be deleted costs room.
func (c *clones) hostStarts(n *node.Node) {
	if err := clone.RemoveLeftovers(c.l.o.State, c.l.nodeDir(n.ID()), n, c.l.o.Name, c.l.o.Logger); err != nil {
		c.l.o.Logger.Error("what is left of clones could not be deleted; the next start of the node tries again", "node", node.Name(c.l.o.Name, n.ID()), "error", err)
	}
}

// nodeDir is the folder of a node.
func (l *Location) nodeDir(id geo.NodeID) string {
	return filepath.Join(l.o.Dir, string(l.o.Name), node.Name(l.o.Name, id))
}

// find implements api.Clones.
func (c *clones) find(name geo.Account, _ geo.Service) (*api.Server, string, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if o := c.open[name]; o != nil {
		return o.clone.API(), "", nil
	}
	return nil, "", nil
}

// FindClone implements api.Clones for the clones of this process.
func (l *Location) FindClone(name geo.Account, s geo.Service) (*api.Server, string, error) {
	return l.clones.find(name, s)
}

// Clones lists the open clones of this process by the names of their accounts.
func (l *Location) Clones() []wire.Clone {
	l.clones.mu.RLock()
	defer l.clones.mu.RUnlock()
	var out []wire.Clone
	for _, o := range l.clones.open {
		out = append(out, o.shown)
	}
	slices.SortFunc(out, func(a, b wire.Clone) int { return strings.Compare(string(a.Account), string(b.Account)) })
	return out
}

// Clone returns the open clone of an account in this process.
func (l *Location) Clone(name geo.Account) (wire.Clone, error) {
	l.clones.mu.RLock()
	defer l.clones.mu.RUnlock()
	if o := l.clones.open[name]; o != nil {
		return o.shown, nil
	}
	return wire.Clone{}, noClone(name)
}

func noClone(name geo.Account) error {
	return &wire.Error{Status: http.StatusNotFound, Code: wire.CodeNoClone, Message: fmt.Sprintf(
		"account %s has no clone: it was dropped, its time ended, or the process of its node ended; antipodectl drill %s --clone opens one", name, name)}
}

// refusedClone is the error for an account of which no clone can be opened now.
func refusedClone(format string, args ...any) error {
	return &wire.Error{Status: http.StatusConflict, Code: wire.CodeCloneRefused, Message: fmt.Sprintf(format, args...)}
}

// OpenClone opens a clone of an account whose secondary is this location, on a node of this process. It has everything at
// or before the Last Sync Times that it returns, and ends after q.ForSeconds.
func (l *Location) OpenClone(ctx context.Context, name geo.Account, q wire.OpenClone) (wire.Clone, error) {
	c := &l.clones
	c.turn.Lock()
	defer c.turn.Unlock()
	ctx, cancel := context.WithTimeout(ctx, openMax)
	defer cancel()
	began := l.o.Clock.Mono()
	s, err := l.Stamp()
	if err != nil {
		return wire.Clone{}, err
	}
	a, err := l.Directory.Account(ctx, name)
	if err != nil {
		return wire.Clone{}, err
	}
	if err := l.mayClone(a); err != nil {
		return wire.Clone{}, err
	}
	if err := cloneWhole(ctx, a, l.CopyWhole); err != nil {
		return wire.Clone{}, err
	}
	host, err := l.cloneHost(ctx, s)
	if err != nil {
		return wire.Clone{}, err
	}
	// The times come first: what follows has everything that was applied when they were true.
	cut, err := l.cloneCut(ctx, a)
	if err != nil {
		return wire.Clone{}, err
	}
	if err := catchUp(ctx, host, l.o.Route.IDs()); err != nil {
		return wire.Clone{}, err
	}
	opened, err := clone.Open(ctx, clone.Options{
		Account: name, Host: host, Live: s, HostDir: l.nodeDir(host.ID()), API: c.api,
		Node: node.Options{
			Location: l.o.Name, Route: l.o.Route, State: l.o.State, Clock: l.o.Clock, Seed: l.o.Seed ^ uint64(l.o.Clock.Now().UnixNano()),
			Parity: l.o.Parity, Tick: l.o.Tick, ReserveBytes: l.o.ReserveBytes, Logger: l.o.Logger.With("clone_of", name),
		},
		Data: clone.Data{Scans: l.o.Scans, NameRest: l.o.NameRest, Rehydration: l.o.Rehydration, Logger: l.o.Logger},
	})
	if err != nil {
		return wire.Clone{}, err
	}
	life := time.Duration(q.ForSeconds * float64(time.Second))
	now := l.o.Clock.Now()
	o := &openClone{clone: opened, host: host.ID(), until: l.o.Clock.Mono() + life, shown: wire.Clone{
		Account: name, Name: string(name) + geo.CloneSuffix, Location: l.o.Name, Node: wire.NodeName(l.o.Name, host.ID()),
		Opened: wire.Time{Time: now}, Expires: wire.Time{Time: now.Add(life)}, TookSeconds: (l.o.Clock.Mono() - began).Seconds(), Cut: cut,
	}}
	c.mu.Lock()
	c.open[name] = o
	c.mu.Unlock()
	l.o.Logger.Info("clone of an account opened", "account", name, "node", o.shown.Node, "expires", now.Add(life), "took_seconds", o.shown.TookSeconds)
	return o.shown, nil
}

// mayClone returns why no clone of an account can be opened here now.
func (l *Location) mayClone(a *catalog.Account) error {
	l.clones.mu.RLock()
	defer l.clones.mu.RUnlock()
	switch {
	case a.Secondary == "":
		return refusedClone("account %s is %s: it has no secondary to make a clone of", a.Name, a.Redundancy)
	case a.Secondary != l.o.Name:
		return refusedClone("a clone of account %s is made at its secondary location, %s: ask an admin port of that location", a.Name, a.Secondary)
	case a.Operation != nil:
		return refusedClone("account %s has an operation under way, %s: open the clone when that has ended", a.Name, a.Operation.Describe())
	case l.clones.open[a.Name] != nil:
		return refusedClone("account %s has a clone already, on %s: drop that first (antipodectl drill %s --clone --drop)",
			a.Name, l.clones.open[a.Name].shown.Node, a.Name)
	case len(l.clones.open) >= clonesMax:
		return refusedClone("this process has %d clones open, the most it takes: drop one of them first", clonesMax)
	}
	return nil
}

// cloneWhole returns why the copy of an account is a part alone, since a range here was recovered with loss (R4): nobody may
// read that, under whatever name. whole is Location.CopyWhole.
func cloneWhole(ctx context.Context, a *catalog.Account, whole func(context.Context, *catalog.Account, geo.Service) (bool, error)) error {
	for _, s := range geo.Services {
		switch is, err := whole(ctx, a, s); {
		case err != nil:
			return err
		case !is:
			return refusedClone("account %s has only a part of the copy of its %s service here, since a range was recovered with loss: "+
				"open the clone when that has a Last Sync Time", a.Name, s)
		}
	}
	return nil
}

// cloneHost returns the node of this process that a clone is made of: of those with a replica of every range, the one that
// leads the fewest, so that clients of the location notice least.
func (l *Location) cloneHost(ctx context.Context, s *stamp.Stamp) (*node.Node, error) {
	var hosts []*node.Node
	for _, id := range l.o.Local {
		if n := s.Node(id); n != nil && clone.HasEverything(ctx, n, l.o.Route.IDs()) {
			hosts = append(hosts, n)
		}
	}
	if len(hosts) == 0 {
		return nil, &wire.Error{Status: http.StatusConflict, Code: wire.CodeNoCloneHost, Message: fmt.Sprintf(
			"no node here has a replica of every range of %s: open the clone at another node of it, or when the replicas are rebuilt", l.o.Name)}
	}
	leads := func(n *node.Node) (sum int) {
		for _, id := range l.o.Route.IDs() {
			if n.Range(id).Leading() {
				sum++
			}
		}
		return sum
	}
	return slices.MinFunc(hosts, func(a, b *node.Node) int { return cmp.Compare(leads(a), leads(b)) }), nil
}

// cloneCut returns the Last Sync Times of the account.
func (l *Location) cloneCut(ctx context.Context, a *catalog.Account) ([]wire.CloneCut, error) {
	var out []wire.CloneCut
	for _, s := range geo.Services {
		rep, err := l.Replication(ctx, a, s)
		if err != nil {
			return nil, err
		}
		cut := wire.CloneCut{Service: s.String(), Reason: string(rep.NoTime())}
		if rep.Known() {
			cut.LastSyncTime = wire.Time{Time: rep.LastSync.Time()}
		}
		out = append(out, cut)
	}
	return out, nil
}

// catchUp waits until a node has applied everything that was acknowledged before: it may be behind the leaders, or know none
// for a while.
func catchUp(ctx context.Context, n *node.Node, ids []geo.RangeID) error {
	for _, id := range ids {
		r := n.Range(id)
		read := func() error {
			if r.Leading() {
				return r.Read(ctx, func(ranges.State) error { return nil })
			}
			return r.ReadFollowing(ctx, func(ranges.State) error { return nil })
		}
		err := read()
		for errors.Is(err, ranges.ErrNotLeader) && clock.Wait(ctx, catchUpPoll) == nil {
			err = read()
		}
		if err != nil {
			return storageerr.ServerBusy.Saying(fmt.Sprintf("node %d did not catch up with range %d: %v", n.ID(), id, err))
		}
	}
	return nil
}

// DropClone ends the clone of an account in this process, and deletes it.
func (l *Location) DropClone(_ context.Context, name geo.Account) (wire.Clone, error) {
	c := &l.clones
	c.turn.Lock()
	defer c.turn.Unlock()
	out, err := l.Clone(name)
	if err != nil {
		return out, err
	}
	return out, c.drop("an operator drops it", func(o *openClone) bool { return o.shown.Account == name })
}

// hostStops ends the clones of a node that stops or has failed.
func (c *clones) hostStops(n *node.Node) {
	c.turn.Lock()
	defer c.turn.Unlock()
	_ = c.drop("its node stops", func(o *openClone) bool { return o.host == n.ID() }) // It is logged, and the next start deletes what is left.
}

// note takes an event of a node. Its clones end when its disk is nearly full: the account comes first.
func (c *clones) note(e node.Event) {
	if e.Kind != node.DiskFull {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.open {
		o.pressed = o.pressed || o.host == e.Node
	}
}

// expire ends the clones whose time is over, or whose node needs the room, until ctx ends.
func (c *clones) expire(ctx context.Context) {
	for clock.Wait(ctx, expireEvery) == nil {
		c.turn.Lock()
		now := c.l.o.Clock.Mono()
		_ = c.drop("its time is over", func(o *openClone) bool { return now >= o.until }) // It is logged.
		_ = c.drop("the disk of its node is nearly full", func(o *openClone) bool { return o.pressed })
		c.turn.Unlock()
	}
}

// drop ends some clones. They are not found any more before the first is closed. The caller holds turn.
func (c *clones) drop(why string, which func(*openClone) bool) error {
	c.mu.Lock()
	var ended []*openClone
	for name, o := range c.open {
		if which(o) {
			ended = append(ended, o)
			delete(c.open, name)
		}
	}
	c.mu.Unlock()
	var errs []error
	for _, o := range ended {
		log, name := c.l.o.Logger, o.shown.Account
		if err := o.clone.Close(); err != nil {
			log.Error("clone of an account ended, and not all of its files could be deleted; the next start of the node deletes them", "account", name, "error", err)
			errs = append(errs, fmt.Errorf("clone of account %s: %w", name, err))
			continue
		}
		log.Info("clone of an account ended and was deleted", "account", name, "why", why)
	}
	return errors.Join(errs...)
}
