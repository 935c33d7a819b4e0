package node

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
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

// openRanges opens every range that is here. What they load may be what is damaged in the
// state store, which opened: it is then set aside as well.
func (n *Node) openRanges() error {
	err := n.tryRanges()
	if !pebble.IsCorruptionError(err) && !errors.Is(err, state.ErrDamaged) {
		return err
	}
	if err := n.stores.replaceState(errors.Join(err, n.stores.state.Close())); err != nil {
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
	lost, err := n.snapshots.Recover(id, n.stores.logs[id])
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
		Location: n.o.Location, Range: id, Clock: n.o.Clock, Running: n.running, Parity: n.o.Parity, State: n.stores.state, Nodes: n.placement.Of(id), Wake: n.Wake,
		CloseInterval: interval, LeaseLength: time.Duration(n.o.ElectionTicks-3) * n.o.Tick, OnCommit: onCommit,
		Full:      n.full.Load,
		HasChunk:  func(ref extent.Ref) bool { return n.stores.extents.Durable(ref.ID) },
		OnApplied: onApplied,
	})
	if err != nil {
		return err
	}
	h := &hosted{Range: r, log: n.stores.logs[id], durable: map[geo.NodeID]uint64{}}
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
