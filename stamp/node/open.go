package node

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"antipode/geo"
	"antipode/stamp/durable"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
	"antipode/stamp/seglog"
	"antipode/stamp/state"
)

// stampRanges are those that a stamp has.
func stampRanges() []geo.RangeID {
	var out []geo.RangeID
	for _, s := range []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table} {
		out = append(out, geo.FirstRange(s))
	}
	return out
}

// openLogs opens the log of every range that is here. A log that is damaged is set aside
// whole and begun anew: each replica then misses its hard state and is lost (R4).
func (n *Node) openLogs() error {
	fs := n.o.State.FS
	dir := fs.PathJoin(n.o.Dir, "log")
	err := n.tryLogs(dir)
	if !state.Damaged(err) {
		return err
	}
	if n.log != nil {
		if err := n.log.Close(); err != nil {
			return err
		}
		n.log = nil
	}
	if err := n.setAside(dir, err); err != nil {
		return err
	}
	return n.tryLogs(dir)
}

// setAside gives a store that is damaged another name, for whoever wants to look at it,
// and makes an empty folder in its place.
func (n *Node) setAside(dir string, why error) error {
	fs := n.o.State.FS
	aside := fmt.Sprintf("%s.damaged-%d", dir, n.o.Clock.Now().UnixNano())
	n.o.Logger.Error("store is damaged: set aside; what is lost by that is rebuilt from the peers", "aside", aside, "error", why)
	if err := fs.Rename(dir, aside); err != nil {
		return err
	}
	return durable.MkdirAll(fs, dir)
}

// openState opens the state store. Without it the log is applied again from its
// beginning, if it still has that; else the replica is lost.
func (n *Node) openState() (err error) {
	dir := n.o.State.FS.PathJoin(n.o.Dir, "state")
	n.state, err = state.Open(dir, n.o.State)
	if !state.Damaged(err) {
		return err
	}
	if err := n.setAside(dir, err); err != nil {
		return err
	}
	n.state, err = state.Open(dir, n.o.State)
	return err
}

func (n *Node) tryLogs(dir string) (err error) {
	o := n.o.State
	o.Rand = n.newSource()
	if err := state.CheckDamaged(o.FS, dir); err != nil {
		return err
	}
	if n.log, err = seglog.Open(dir, o); err != nil {
		n.log = nil
		return err
	}
	for _, id := range n.placement.has {
		if n.logs[id], err = n.log.Range(id, nil); err != nil {
			return err
		}
	}
	return nil
}

// openRanges opens every range that is here. What they load may be what is damaged in the
// state store, which opened: it is then set aside as well.
func (n *Node) openRanges() error {
	err := n.tryRanges()
	if !pebble.IsCorruptionError(err) && !errors.Is(err, state.ErrDamaged) {
		return err
	}
	err = errors.Join(err, n.state.Close())
	n.state = nil
	fs := n.o.State.FS
	dir := fs.PathJoin(n.o.Dir, "state")
	if err := n.setAside(dir, err); err != nil {
		return err
	}
	if n.state, err = state.Open(dir, n.o.State); err != nil {
		n.state = nil
		return err
	}
	n.snapshots = newSnapshots(n)
	return n.tryRanges()
}

func (n *Node) tryRanges() error {
	n.ranges = nil
	for _, id := range n.placement.has {
		if err := n.openRange(id); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) openRange(id geo.RangeID) error {
	lost, err := n.snapshots.Recover(id, n.logs[id])
	if err != nil {
		return err
	}
	onCommit := func(d time.Duration) {
		if n.o.OnCommit != nil {
			n.o.OnCommit(id, d)
		}
	}
	var onApplied func(ranges.Applied)
	if n.o.OnApplied != nil {
		onApplied = func(a ranges.Applied) { n.o.OnApplied(id, a) }
	}
	interval := time.Duration(0)
	if n.o.CloseInterval != nil {
		interval = n.o.CloseInterval(id)
	}
	r, err := ranges.New(ranges.Options{
		Location: n.o.Location, Range: id, Clock: n.o.Clock, Running: n.running, Parity: n.o.Parity, State: n.state, Nodes: n.placement.Of(id), Wake: n.Wake,
		CloseInterval: interval, LeaseLength: time.Duration(n.o.ElectionTicks-3) * n.o.Tick, OnCommit: onCommit,
		Full:      n.full.Load,
		HasChunk:  func(ref extent.Ref) bool { return n.extents.Durable(ref.ID) },
		OnApplied: onApplied,
	})
	if err != nil {
		return err
	}
	h := &hosted{Range: r, log: n.logs[id], durable: map[geo.NodeID]uint64{}}
	n.ranges = append(n.ranges, h)
	n.byID[id] = h
	return n.openMembership(h, lost)
}

// reopen builds the replica over what the stores hold of the range. lost is why it cannot be
// trusted whatever they hold.
func (n *Node) reopen(r *hosted, lost error) error {
	id, applied := r.ID(), r.Machine.AppliedState().Index
	rep, err := replica.Open(replica.Options{
		Snapshots: n.snapshots.ForRange(id), Lost: lost, Range: id, Node: n.o.ID, ID: r.membership.Identity().Replica, Log: r.log,
		Applied: applied, Machine: r.Machine, Tick: n.o.Tick, ElectionTicks: n.o.ElectionTicks, InSyncTimeout: n.o.InSyncTimeout,
		Running:   n.running,
		Reachable: func(of geo.NodeID) bool { return of == n.o.ID || n.o.Transport.Peer(n.o.ID, of) != nil },
		OnInSync:  func(of geo.NodeID, in bool) { n.reportInSync(id, of, in) },
		Rand:      rand.New(rand.NewPCG(n.rng.Uint64(), uint64(id))), Logger: n.o.Logger,
	}, n.o.Clock.Mono())
	if err != nil {
		return err
	}
	r.Attach(rep)
	r.durable[n.o.ID], r.flushed, r.held = applied, applied, nil
	return nil
}
