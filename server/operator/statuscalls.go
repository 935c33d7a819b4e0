package operator

import (
	"context"
	"slices"

	wire "antipode/client/admin"
)

var (
	showStatus = operation[wire.None, wire.Status]{
		Call: wire.CallStatus, place: gathered, merge: mergeStatus, silent: unreachableNode, remote: checkStatus, earlier: earlierStatusOf,
		here: func(ctx context.Context, l *Local, _ wire.At, _ wire.None) (wire.Status, error) { return l.status(ctx) },
	}
	listEvents = operation[wire.None, wire.EventList]{
		Call: wire.CallEvents, place: gathered, merge: mergeEvents, remote: silentEvents, earlier: earlierEventsOf,
		silent: func(node string) wire.EventList { return wire.EventList{Silent: []string{node}} },
		here: func(_ context.Context, l *Local, _ wire.At, _ wire.None) (wire.EventList, error) {
			return wire.EventList{Events: l.view().Events()}, nil
		},
	}
)

func statusCalls() []call {
	return []call{
		answered(&showStatus, port[wire.None, wire.Status]{
			verb: "read the status of", what: saying[wire.None]("the process"),
			do:   func(ctx context.Context, b *Backend, _ asked, _ wire.None) (wire.Status, error) { return b.Status(ctx) },
			show: func(q asked, s wire.Status) wire.Status { return arrange(s, q.Scope) },
		}),
		answered(&listEvents, port[wire.None, wire.EventList]{
			verb: "list", what: saying[wire.None]("the events"),
			do: func(ctx context.Context, b *Backend, _ asked, _ wire.None) (wire.EventList, error) {
				return b.Events(ctx), nil
			},
			show: showEvents,
		}),
		composed(wire.CallSupport, port[wire.None, wire.Support]{
			verb: "read the state of", what: saying[wire.None]("the process"),
			do: func(_ context.Context, b *Backend, _ asked, _ wire.None) (wire.Support, error) { return b.support() },
		}),
	}
}

// showEvents lists the events of the port's location, or of all, newest first.
func showEvents(q asked, all wire.EventList) wire.EventList {
	out := wire.EventList{Events: []wire.Event{}, Silent: all.Silent}
	for _, e := range all.Events {
		if q.Shows(e.Location) {
			out.Events = append(out.Events, e)
		}
	}
	slices.SortStableFunc(out.Events, func(a, b wire.Event) int { return b.Time.Compare(a.Time.Time) })
	return out
}

// mergeEvents lists the events of all processes.
func mergeEvents(of []wire.EventList) (out wire.EventList) {
	for _, l := range of {
		out.Events, out.Silent = append(out.Events, l.Events...), append(out.Silent, l.Silent...)
	}
	return out
}

// unreachableNode is the status that a process shows that does not answer.
func unreachableNode(node string) wire.Status {
	return wire.Status{Locations: []wire.Location{{Nodes: []wire.Node{{Name: node, State: wire.Unreachable}}}}}
}
