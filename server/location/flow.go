package location

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
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/cursor"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// flowAccountWait bounds how long Flow waits for the catalog.
const flowAccountWait = time.Second

// Flow returns what this process knows of the streams of an account: of those that it numbers, at the
// ranges that it leads, and of those that it receives. Nothing in it waits for a lease, so that it answers
// while ranges have no leader.
func (l *Location) Flow(ctx context.Context, name geo.Account) (wire.Flow, error) {
	stamp, err := l.Stamp()
	if err != nil {
		return wire.Flow{}, err
	}
	a, err := l.knownAccount(ctx, stamp, name)
	if err != nil {
		return wire.Flow{}, err
	}
	now := l.o.Clock.Now()
	out := wire.Flow{Location: l.o.Name, Account: DescribeAccount(a), At: wire.Time{Time: now}, Link: l.Link()}
	receives := a.Secondary == l.o.Name && (l.Whole() || l.Receives())
	if receives {
		out.Services = l.AccountStatus(a, now).Services
		out.Speeds = l.speedsOf(name)
	}
	for _, d := range l.o.Route.Ranges() {
		r := wire.RangeFlow{Range: d.ID, Service: d.Service.String()}
		if node, known := stamp.LeaderNode(d.ID); known {
			r.Leader = wire.NodeName(l.o.Name, node)
		}
		if lead := stamp.Leader(d.ID); lead != nil && a.Primary == l.o.Name {
			r.Source = l.sourceFlow(lead, name)
		}
		if receives {
			src := geo.SourceRange{Origin: a.Primary, Range: d.ID}
			p, known := stamp.ProgressNow(d.ID, src, name)
			r.Receiver = receiverFlow(p, known, name)
			if receiver := l.receiving.receiver.Load(); receiver != nil && r.Receiver != nil {
				addWaits(&out, r.Receiver, receiver.View(d.ID, name))
			}
		}
		out.Ranges = append(out.Ranges, r)
	}
	return out, nil
}

// knownAccount returns an account; while the catalog does not answer, as a replica of it in this process
// has it, which may be behind.
func (l *Location) knownAccount(ctx context.Context, stamp *stamp.Stamp, name geo.Account) (*catalog.Account, error) {
	ctx, cancel := context.WithTimeout(ctx, flowAccountWait)
	defer cancel()
	a, err := l.Directory.Account(ctx, name)
	if err == nil {
		return a, nil
	}
	if errors.Is(err, storageerr.AccountNotFound) {
		return nil, err
	}
	for _, id := range l.o.Local {
		n := stamp.Node(id)
		if n == nil || n.Range(l.o.Route.Catalog()) == nil {
			continue
		}
		if a, readErr := catalog.GetAccount(n.Range(l.o.Route.Catalog()).State(), name); readErr == nil && a.Active {
			return a, nil
		}
	}
	return nil, err
}

// sourceFlow is what the leader of a range knows of the streams that it numbers.
func (l *Location) sourceFlow(lead *ranges.Range, name geo.Account) *wire.SourceFlow {
	out := &wire.SourceFlow{}
	var v ship.View
	if s := l.Shipper(lead.ID()); s != nil {
		v = s.View(name)
		out.Frames, out.OldestSeconds = v.Frames, v.Oldest.Seconds()
		out.Publish, out.Full = trouble(v.Err, v.Failing), v.Full
	}
	heads, _ := lead.Machine.Heads()
	for st, head := range heads {
		if st.Account != name {
			continue
		}
		s := wire.SourceStream{Stream: st.String(), Lane: st.Lane, Head: uint64(head.Seq)}
		if v.Leading {
			at := v.Streams[st]
			built, acked := uint64(at.Built), uint64(at.Acked)
			s.Published, s.Acknowledged, s.Held = &built, &acked, at.Held
		}
		out.Streams = append(out.Streams, s)
	}
	slices.SortFunc(out.Streams, func(a, b wire.SourceStream) int { return cmp.Compare(a.Stream, b.Stream) })
	return out
}

// receiverFlow is how far the streams of a source range are applied here.
func receiverFlow(p cursor.Progress, known bool, name geo.Account) *wire.ReceiverFlow {
	if !known {
		return nil
	}
	out := &wire.ReceiverFlow{Closed: wireTime(p.Closed)}
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
			SyncTime: wireTime(stats.SyncTime(p.Closed, s)), Stopped: stops[s.Stream],
		})
		delete(stops, s.Stream)
	}
	for st, why := range stops { // They have no cursor.
		out.Streams = append(out.Streams, wire.ReceiverStream{Stream: st.String(), Lane: st.Lane, Stopped: why})
	}
	slices.SortFunc(out.Streams, func(a, b wire.ReceiverStream) int { return cmp.Compare(a.Stream, b.Stream) })
	return out
}

// addWaits adds what the receiver knows of a range.
func addWaits(out *wire.Flow, to *wire.ReceiverFlow, v receive.RangeView) {
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

// unreached reports whether a call failed because the other location was not reached. Any other error is
// its answer.
func unreached(err error) bool {
	for _, e := range []error{link.ErrCut, link.ErrBusy, node.ErrUnreachable, context.DeadlineExceeded} {
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

// speedsOf is how fast the Last Sync Time of each service moves, as far as that is known.
func (l *Location) speedsOf(name geo.Account) map[string]float64 {
	out := map[string]float64{}
	for _, s := range geo.Services {
		if v, known := l.watching.speeds.speed(serviceKey{name, s}); known {
			out[s.String()] = v
		}
	}
	return out
}

// wireTime is a time that is absent if it is zero.
func wireTime(t geo.Timestamp) wire.Time {
	if t == 0 {
		return wire.Time{}
	}
	return wire.Time{Time: t.Time()}
}

// MergeFlows makes one flow of a location out of those of its processes. The first is that of the
// process that was asked.
func MergeFlows(processes []wire.Flow) wire.Flow {
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
