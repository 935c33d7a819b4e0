package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"antipode/geo"
	"antipode/stamp/snapshot"
)

// errTransfer: a range snapshot broke off on its way.
var errTransfer = errors.New("sim: the transfer of a range snapshot broke off")

// transfer is a range snapshot on its way between two nodes: a snapshot.Stream. Each
// step takes time, in which either node may die, stand still or be cut off.
type transfer struct {
	net      *network
	task     *task
	from, to geo.NodeID
	in       *snapshot.Incoming
	broken   bool
}

// Snapshot implements node.SnapshotTransport.
func (t *network) Snapshot(from, to geo.NodeID, h snapshot.Header) (snapshot.Stream, error) {
	tr := &transfer{net: t, task: t.l.s.task, from: from, to: to}
	if err := tr.cross(); err != nil {
		return nil, err
	}
	in, err := t.l.member(to).n.AcceptSnapshot(from, h)
	if err != nil {
		return nil, err
	}
	tr.in = in
	if after, _ := in.Resume(); len(after) > 0 {
		t.l.s.counts.SnapshotResumed++
		t.l.s.event("%s snapshot %d>%d goes on behind %x", t.l.name, from, to, after)
	}
	t.transfers = append(t.transfers, tr)
	return tr, nil
}

// transferMax bounds how long a step of a transfer takes.
const transferMax = 20 * time.Millisecond

// cross is the way to the receiver and back.
func (tr *transfer) cross() error {
	s := tr.net.l.s
	if err := tr.task.pause(s.between(time.Millisecond, transferMax)); err != nil {
		return err
	}
	for m := tr.net.l.member(tr.to); m.paused && !tr.broken; {
		if err := tr.task.pause(transferMax); err != nil {
			return err
		}
	}
	m := tr.net.l.member(tr.to)
	if tr.broken || m.n == nil || m.killed != nil || !tr.net.reach(tr.from, tr.to) || s.chance(s.rates.snapLose) {
		s.counts.SnapshotBroken++
		s.event("%s snapshot %d>%d broke off", tr.net.l.name, tr.from, tr.to)
		return errTransfer
	}
	return nil
}

// Send implements snapshot.Stream.
func (tr *transfer) Send(ctx context.Context, p snapshot.Fragment) error {
	if err := tr.cross(); err != nil {
		return err
	}
	return tr.in.Send(ctx, p)
}

// Resume implements snapshot.Stream.
func (tr *transfer) Resume() (after []byte, keeps bool) { return tr.in.Resume() }

// Finish implements snapshot.Stream: see snapshot.Incoming.Finish.
func (tr *transfer) Finish(ctx context.Context, progressed func()) error {
	if err := tr.cross(); err != nil {
		return err
	}
	if err := tr.in.Stage(ctx, progressed); err != nil {
		return err
	}
	for {
		tr.net.l.member(tr.to).dirty = true
		if err := tr.cross(); err != nil {
			return err
		}
		select {
		case err := <-tr.in.Installed():
			return err
		default:
		}
	}
}

// Close implements snapshot.Stream.
func (tr *transfer) Close() {
	tr.in.Close()
	tr.net.transfers = slices.DeleteFunc(tr.net.transfers, func(other *transfer) bool { return other == tr })
}
