package operator

import (
	"context"
	"fmt"
	"strings"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/flow"
)

var showFlows = operation[wire.None, wire.Flows]{
	Call: wire.CallFlows, place: gathered, merge: mergeFlows, remote: onlyFlow, earlier: earlierFlowsOf,
	silent: func(node string) wire.Flows { return wire.Flows{Flows: []wire.Flow{{Silent: []string{node}}}} },
	here: func(ctx context.Context, l *Local, at wire.At, _ wire.None) (wire.Flows, error) {
		f, err := l.Location.Flow(ctx, at.Account)
		return wire.Flows{Flows: []wire.Flow{f}}, err
	},
}

func lagCalls() []call {
	return []call{
		answered(&showFlows, port[wire.None, wire.Flows]{
			verb: "read the streams of", what: anAccount[wire.None], scope: ofAccount,
			do: func(ctx context.Context, b *Backend, q asked, _ wire.None) (wire.Flows, error) {
				return b.Flows(ctx, q.At.Account, q.Scope)
			},
			show: func(_ asked, out wire.Flows) wire.Flows {
				out.Flows, out.Silent = list(out.Flows), list(out.Silent)
				for i := range out.Flows {
					f := &out.Flows[i]
					f.Ranges, f.Services, f.Silent = list(f.Ranges), list(f.Services), list(f.Silent)
				}
				return out
			},
		}),
		composed(wire.CallLag, port[wire.LagQuery, wire.Lag]{
			verb: "read the lag of", what: anAccount[wire.LagQuery], scope: ofAccount, wrong: wrongLag,
			do: func(ctx context.Context, b *Backend, q asked, in wire.LagQuery) (wire.Lag, error) {
				return b.Lag(ctx, q.At.Account, in, q.Scope)
			},
			show: func(_ asked, out wire.Lag) wire.Lag {
				out.Services, out.Streams, out.Silent = list(out.Services), list(out.Streams), list(out.Silent)
				return out
			},
		}),
		composed(wire.CallWhy, port[wire.WhyQuery, wire.Why]{
			verb: "explain the lag of", what: anAccount[wire.WhyQuery], scope: ofAccount, wrong: wrongWhy,
			do: func(ctx context.Context, b *Backend, q asked, in wire.WhyQuery) (wire.Why, error) {
				threshold := time.Duration(0)
				if in.ThresholdSeconds != nil {
					threshold = time.Duration(float64(*in.ThresholdSeconds) * float64(time.Second))
				}
				return b.Why(ctx, q.At.Account, threshold, q.Scope)
			},
			show: func(_ asked, out wire.Why) wire.Why {
				out.Services, out.Silent = list(out.Services), list(out.Silent)
				return out
			},
		}),
		// For a port of one location the other one counts as unavailable.
		composed(wire.CallGeoReplication, port[wire.None, wire.GeoReplication]{
			verb: "read the lag of", what: anAccount[wire.None], scope: ofKnownAccount,
			do: func(ctx context.Context, b *Backend, q asked, _ wire.None) (wire.GeoReplication, error) {
				l, err := b.Lag(ctx, q.At.Account, wire.LagQuery{}, q.Scope)
				if err != nil {
					return wire.GeoReplication{}, err
				}
				return wire.GeoReplicationOf(q.Account.Account, l), nil
			},
		}),
	}
}

// wrongLag says what is wrong with a query for a lag.
func wrongLag(q *wire.LagQuery) string {
	s, err := geo.ParseService(q.Service)
	switch {
	case q.Service != "" && (err != nil || s == geo.Catalog):
		return fmt.Sprintf("the service is blob, queue or table, not %q", q.Service)
	case q.Partition == "":
		return ""
	case q.Service == "":
		return "a partition needs its service"
	case s == geo.Queue:
		return "partitions of the queue service cannot be named yet"
	}
	if container, key, cut := strings.Cut(q.Partition, "/"); !cut || container == "" || s == geo.Blob && key == "" {
		return "a partition is container/blob or table/PartitionKey"
	}
	return ""
}

// wrongWhy says what is wrong with a threshold.
func wrongWhy(q *wire.WhyQuery) string {
	if q.ThresholdSeconds == nil {
		return ""
	}
	if s := float64(*q.ThresholdSeconds); !(s > 0 && s <= wire.ThresholdMax.Seconds()) {
		return "the threshold is a number of seconds above 0"
	}
	return ""
}

// mergeFlows makes one flow of those of the processes of a location.
func mergeFlows(of []wire.Flows) wire.Flows {
	var all []wire.Flow
	for _, f := range of {
		all = append(all, f.Flows...)
	}
	return wire.Flows{Flows: []wire.Flow{flow.Merge(all)}}
}
