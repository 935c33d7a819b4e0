package flow

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/replication/link"
	"antipode/replication/receive"
	"antipode/replication/ship"
	"antipode/stamp/cursor"
	"antipode/stamp/kv"
	"antipode/stamp/node"
	"antipode/stats"
)

// Lead is what keeps the leader of a range from committing, nil if the node does not lead it.
func Lead(location geo.Location, n *node.Node, id geo.RangeID) *wire.LeadFlow {
	r := n.Range(id)
	if r == nil || !r.Leading() {
		return nil
	}
	out := &wire.LeadFlow{DiskFull: r.NoRoom()}
	switch {
	case r.ClockRefused():
		out.Refuses = "the clock is not believed: " + n.Clocks().Why()
	case r.InSync() < 2 && !out.DiskFull:
		out.Refuses = "fewer than two replicas are in sync"
	}
	for _, s := range r.View().Standings {
		if took := s.Took.Seconds(); s.InSync && s.Node != n.ID() && took > out.SlowestSeconds {
			out.Slowest, out.SlowestSeconds = wire.NodeName(location, s.Node), took
		}
	}
	return out
}

// Source is what the leader of a range knows of the streams of an account that it numbers: their heads, the account's
// epoch, and what its shipper has under way, the zero view if there is none.
func Source(name geo.Account, heads map[geo.Stream]geo.Head, epoch geo.Epoch, v ship.View) *wire.SourceFlow {
	out := &wire.SourceFlow{
		Frames: v.Frames, OldestSeconds: v.Oldest.Seconds(), Publish: trouble(v.Err, v.Failing), Full: v.Full,
	}
	for st, head := range heads {
		if st.Account != name {
			continue
		}
		s := wire.SourceStream{Stream: st.String(), Lane: st.Lane, Head: uint64(head.Seq), Ended: st.Epoch.Compare(epoch) < 0}
		if v.Leading {
			at := v.Streams[st]
			built, acked := uint64(at.Built), uint64(at.Acked)
			s.Published, s.Acknowledged, s.Held, s.Stopped = &built, &acked, at.Held, at.Stopped.String()
		}
		out.Streams = append(out.Streams, s)
	}
	slices.SortFunc(out.Streams, func(a, b wire.SourceStream) int { return cmp.Compare(a.Stream, b.Stream) })
	return out
}

// Receiver is how far the streams of an account in a source range are applied.
func Receiver(name geo.Account, p cursor.Progress) *wire.ReceiverFlow {
	out := &wire.ReceiverFlow{Closed: timeOf(p.Shown())}
	stops := map[geo.Stream]string{}
	for _, s := range p.Stops {
		if s.Stream.Account == name {
			stops[s.Stream] = s.Reason.String()
		}
	}
	for _, s := range p.Streams {
		if s.Stream.Account != name {
			continue
		}
		out.Streams = append(out.Streams, wire.ReceiverStream{
			Stream: s.Stream.String(), Lane: s.Stream.Lane, Applied: uint64(s.Applied.Seq), ClosedHead: uint64(s.Behind),
			SyncTime: timeOf(p.SyncTime(s)), Stopped: stops[s.Stream],
		})
		delete(stops, s.Stream)
	}
	for st, why := range stops { // They have no cursor.
		out.Streams = append(out.Streams, wire.ReceiverStream{Stream: st.String(), Lane: st.Lane, Stopped: why})
	}
	slices.SortFunc(out.Streams, func(a, b wire.ReceiverStream) int { return cmp.Compare(a.Stream, b.Stream) })
	return out
}

// Add adds what the receiver knows of a range to the flow of its location, and to that of the range.
func Add(out *wire.Flow, to *wire.ReceiverFlow, v receive.RangeView) {
	out.Bus, out.Chunks = trouble(v.Bus.Err, v.Bus.Since), trouble(v.Chunks.Err, v.Chunks.Since)
	if unreached(v.Calls.Err) {
		out.Calls = trouble(v.Calls.Err, v.Calls.Since)
	}
	if v.Known {
		contact := v.Contact.Seconds()
		to.ContactSeconds = &contact
	}
	to.Commit, to.CommittingSeconds, to.Ahead = trouble(v.Failing.Err, v.Failing.Since), v.Committing.Seconds(), v.Ahead
	for st, s := range v.Streams {
		w := &wire.Waits{Record: uint64(s.Seq), Seconds: s.Since.Seconds(), Pulling: s.Pulling}
		if s.Seq > 0 {
			w.For = s.For.String()
		}
		if s.PullErr != nil {
			w.Error = s.PullErr.Error()
		}
		i := slices.IndexFunc(to.Streams, func(o wire.ReceiverStream) bool { return o.Stream == st.String() })
		if i < 0 { // It has no cursor yet, and no closed record named it.
			to.Streams = append(to.Streams, wire.ReceiverStream{Stream: st.String(), Lane: st.Lane, SyncTime: to.Closed})
			i = len(to.Streams) - 1
		}
		to.Streams[i].Waits = w
	}
}

// unreached reports whether a call failed because the other location was not reached, or before it came to
// an answer: there it is refused, for example, without the right certificate. Any other error is its answer.
func unreached(err error) bool {
	for _, e := range []error{link.ErrCut, link.ErrBusy, node.ErrUnreachable, kv.ErrUnknown, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func trouble(err error, since time.Duration) *wire.Trouble {
	if err == nil {
		return nil
	}
	return &wire.Trouble{Error: err.Error(), Seconds: since.Seconds()}
}

// timeOf is a time that is absent if it is zero.
func timeOf(t geo.Timestamp) wire.Time {
	if t == 0 {
		return wire.Time{}
	}
	return wire.Time{Time: t.Time()}
}

// Merge makes one flow of a location out of those of its processes. The first is that of the
// process that was asked.
func Merge(processes []wire.Flow) wire.Flow {
	out := processes[0]
	out.Ranges = slices.Clone(out.Ranges)
	for _, p := range processes[1:] {
		out.Silent = append(out.Silent, p.Silent...)
		if len(out.Services) == 0 { // The other process receives.
			out.Services, out.Speeds, out.Bus, out.Calls, out.Chunks = p.Services, p.Speeds, p.Bus, p.Calls, p.Chunks
		}
		if p.Link.State == wire.LinkCut {
			out.Link = p.Link
		}
		for _, r := range p.Ranges {
			i := slices.IndexFunc(out.Ranges, func(o wire.RangeFlow) bool { return o.Range == r.Range })
			if i < 0 {
				out.Ranges = append(out.Ranges, r)
				continue
			}
			if out.Ranges[i].Leader == "" {
				out.Ranges[i].Leader = r.Leader
			}
			if out.Ranges[i].Lead == nil {
				out.Ranges[i].Lead = r.Lead
			}
			if out.Ranges[i].Source == nil {
				out.Ranges[i].Source = r.Source
			}
			if out.Ranges[i].Receiver == nil {
				out.Ranges[i].Receiver = r.Receiver
			}
		}
	}
	return out
}

// Status describes the replication of a service at the time now.
func Status(s geo.Service, rep stats.Replication, now time.Time) wire.ServiceStatus {
	out := wire.ServiceStatus{Service: s.String(), Status: wire.ReplicationStatus(rep.Status), Reason: string(rep.Reason), StreamsBehind: rep.Behind}
	last := rep.Kept
	if rep.Known() {
		last = rep.LastSync
	}
	if last != 0 {
		lag := now.Sub(last.Time()).Seconds()
		out.LastSyncTime, out.LagSeconds = wire.Time{Time: last.Time()}, &lag
	}
	return out
}
