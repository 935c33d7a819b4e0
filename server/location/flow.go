package location

import (
	"cmp"
	"context"
	"slices"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/cursor"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// flowAccountWait bounds how long Flow waits for the catalog.
const flowAccountWait = time.Second

// Flow returns what this process knows of the streams of an account: of those that it numbers, at the
// ranges that it leads, and of those that it receives. Nothing in it waits for a lease, so that it answers
// while ranges have no leader: an account that the catalog does not answer for is the one last seen there.
func (l *Location) Flow(ctx context.Context, name geo.Account) (wire.Flow, error) {
	stamp, err := l.Stamp()
	if err != nil {
		return wire.Flow{}, err
	}
	a, err := l.knownAccount(ctx, name)
	if err != nil {
		return wire.Flow{}, err
	}
	now := l.o.Clock.Now()
	out := wire.Flow{Location: l.o.Name, Account: DescribeAccount(a), At: wire.Time{Time: now}}
	receives := a.Secondary == l.o.Name && (l.Whole() || l.Receives())
	if receives {
		out.Services = l.AccountStatus(a, now).Services
	}
	for _, d := range l.o.Route.Ranges() {
		r := wire.RangeFlow{Range: d.ID, Service: d.Service.String()}
		if lead := stamp.Leader(d.ID); lead != nil && a.Primary == l.o.Name {
			r.Source = l.sourceFlow(lead, name)
		}
		if receives {
			src := geo.SourceRange{Origin: a.Primary, Range: d.ID}
			p, known := stamp.ProgressNow(d.ID, src, name)
			r.Receiver = l.receiverFlow(p, known, name)
		}
		out.Ranges = append(out.Ranges, r)
	}
	return out, nil
}

// knownAccount returns an account, as it was seen last while the catalog does not answer.
func (l *Location) knownAccount(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	ctx, cancel := context.WithTimeout(ctx, flowAccountWait)
	defer cancel()
	a, err := l.Directory.Account(ctx, name)
	if err == nil {
		return a, nil
	}
	if seen := l.watching.seen.Load(); seen != nil {
		if i := slices.IndexFunc(*seen, func(a *catalog.Account) bool { return a.Name == name }); i >= 0 {
			return (*seen)[i], nil
		}
	}
	return nil, err
}

// sourceFlow is what the leader of a range knows of the streams that it numbers.
func (l *Location) sourceFlow(lead *ranges.Range, name geo.Account) *wire.SourceFlow {
	out := &wire.SourceFlow{Leader: wire.NodeName(l.o.Name, lead.Leader())}
	heads, _ := lead.Machine.Heads()
	for st, head := range heads {
		if st.Account == name {
			out.Streams = append(out.Streams, wire.SourceStream{Stream: st.String(), Lane: st.Lane, Head: uint64(head.Seq)})
		}
	}
	slices.SortFunc(out.Streams, func(a, b wire.SourceStream) int { return cmp.Compare(a.Stream, b.Stream) })
	return out
}

// receiverFlow is how far the streams of a source range are applied here.
func (*Location) receiverFlow(p cursor.Progress, known bool, name geo.Account) *wire.ReceiverFlow {
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
		if len(out.Services) == 0 {
			out.Services = p.Services
		}
		for _, r := range p.Ranges {
			i := slices.IndexFunc(out.Ranges, func(o wire.RangeFlow) bool { return o.Range == r.Range })
			if i < 0 {
				out.Ranges = append(out.Ranges, r)
				continue
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
