package node

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.etcd.io/raft/v3"

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
	fs := n.o.Engine.FS
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
	fs := n.o.Engine.FS
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
	dir := n.o.Engine.FS.PathJoin(n.o.Dir, "state")
	n.state, err = state.Open(dir, n.o.Engine)
	if !state.Damaged(err) {
		return err
	}
	if err := n.setAside(dir, err); err != nil {
		return err
	}
	n.state, err = state.Open(dir, n.o.Engine)
	return err
}

func (n *Node) tryLogs(dir string) (err error) {
	o := n.o.Engine
	o.Rand = n.newSource()
	if err := state.CheckDamaged(o.FS, dir); err != nil {
		return err
	}
	if n.log, err = seglog.Open(dir, o); err != nil {
		n.log = nil
		return err
	}
	for _, id := range n.has {
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
	fs := n.o.Engine.FS
	dir := fs.PathJoin(n.o.Dir, "state")
	if err := n.setAside(dir, err); err != nil {
		return err
	}
	if n.state, err = state.Open(dir, n.o.Engine); err != nil {
		n.state = nil
		return err
	}
	n.snapshots = newSnapshots(n)
	return n.tryRanges()
}

func (n *Node) tryRanges() error {
	n.ranges = nil
	for _, id := range n.has {
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
	n.ranges = append(n.ranges, r)
	n.byID[id] = r
	n.durable[id] = map[geo.NodeID]uint64{}
	n.reported[id], n.claims[id] = map[geo.NodeID]geo.ReplicaID{}, map[geo.ReplicaID]geo.NodeID{}
	if n.identities[id], err = n.identify(id); err != nil {
		return err
	}
	if n.identities[id].phase == rebuilding {
		if err := n.wipe(id); err != nil {
			return err
		}
		lost = nil
	}
	if n.identities[id].phase == recovering {
		if err := n.finishRecovery(id); err != nil {
			return err
		}
		lost = nil
	}
	return n.reopen(id, lost)
}

// identify finds out which replica of a range this node holds.
func (n *Node) identify(id geo.RangeID) (*identity, error) {
	d, err := n.loadIdentity(id)
	if err != nil {
		return nil, err
	}
	if d != nil {
		// Written anew: what was read may be in the page cache only, since an fsync of an
		// earlier life failed, and what is done next must not outlive it (R4).
		return d, n.saveIdentity(id, d)
	}
	// The clock makes a folder that was lost and made anew another one.
	nonce := n.rng.Uint64() ^ uint64(n.o.Clock.Now().UnixNano())
	d = &identity{phase: joining, replica: replica.FirstID(n.o.ID), nonce: nonce, peers: map[geo.NodeID]uint64{}}
	hs, _, err := n.logs[id].InitialState()
	if err != nil {
		return nil, err
	}
	m := n.byID[id].Machine
	last, err := n.logs[id].LastIndex()
	if err != nil {
		return nil, err
	}
	if last > 0 || hs.GetVote() != 0 || hs.GetTerm() > replica.FirstTerm || m.AppliedState().Index > 0 {
		// A folder from before there were identities, or one that lost just this file.
		d.phase = member
		if own, ok := m.Members().On(n.o.ID); ok {
			d.replica = own.ID
		}
	}
	return d, n.saveIdentity(id, d)
}

// reopen builds the replica over what the stores hold of the range. lost says that it
// cannot be trusted whatever they hold.
func (n *Node) reopen(id geo.RangeID, gone error) error {
	d, r := n.identities[id], n.byID[id]
	hs, _, err := n.logs[id].InitialState()
	if err != nil {
		return err
	}
	switch {
	case gone != nil:
	case d.phase == lost, d.phase == forgotten:
		gone = fmt.Errorf("%w: found in an earlier life", replica.ErrLost)
	case d.phase == member && raft.IsEmptyHardState(hs):
		gone = fmt.Errorf("%w: its hard state is gone", replica.ErrLost)
	}
	applied := r.Machine.AppliedState().Index
	rep, err := replica.Open(replica.Options{
		Snapshots: n.snapshots.ForRange(id), Lost: gone, Range: id, Node: n.o.ID, ID: d.replica, Log: n.logs[id], Applied: applied, Machine: r.Machine,
		Tick: n.o.Tick, ElectionTicks: n.o.ElectionTicks, InSyncTimeout: n.o.InSyncTimeout,
		Running:   n.running,
		Reachable: func(of geo.NodeID) bool { return of == n.o.ID || n.o.Transport.Peer(n.o.ID, of) != nil },
		OnInSync:  func(of geo.NodeID, in bool) { n.noteInSync(id, of, in) },
		Rand:      rand.New(rand.NewPCG(n.rng.Uint64(), uint64(id))), Logger: n.o.Logger,
	}, n.o.Clock.Mono())
	if err != nil {
		return err
	}
	r.Attach(rep)
	n.mu.Lock()
	n.durable[id][n.o.ID] = applied
	n.mu.Unlock()
	n.flushed[id] = applied
	delete(n.held, id)
	return nil
}
