package operator

import (
	"context"
	"fmt"
	"log/slog"

	wire "antipode/client/admin"
	"antipode/geo"
)

var (
	startNode = operation[wire.None, wire.Changed]{
		Call: wire.CallStartNode, place: theNode,
		here: func(_ context.Context, l *Local, at wire.At, _ wire.None) (wire.Changed, error) {
			return l.setNode(at, wire.Running, l.view().StartNode)
		},
		process: func(
			ctx context.Context, m *Members, _ *operation[wire.None, wire.Changed], at wire.At, _ wire.None,
		) (wire.Changed, error) {
			return wire.Changed{Name: at.Node, State: wire.Running}, m.o.Server.Begin(ctx)
		},
	}
	stopNode = operation[wire.None, wire.Changed]{
		Call: wire.CallStopNode, place: theNode,
		here: func(_ context.Context, l *Local, at wire.At, _ wire.None) (wire.Changed, error) {
			return l.setNode(at, wire.Stopped, l.view().StopNode)
		},
		process: func(
			_ context.Context, m *Members, _ *operation[wire.None, wire.Changed], at wire.At, _ wire.None,
		) (wire.Changed, error) {
			return wire.Changed{Name: at.Node, State: wire.Stopped}, m.o.Server.Stop()
		},
	}
	nodeSupport = operation[wire.None, wire.Support]{
		Call: wire.CallNodeSupport, place: theNode,
		here: func(_ context.Context, l *Local, at wire.At, _ wire.None) (wire.Support, error) { return l.support(at) },
	}
	recoverRange = operation[wire.RecoverRange, wire.RangeRecovered]{
		Call: wire.CallRecoverRange, // The best survivor may be on any node that the stamp reaches.
		here: func(ctx context.Context, l *Local, at wire.At, in wire.RecoverRange) (wire.RangeRecovered, error) {
			return l.Location.RecoverRange(ctx, at.Range, in)
		},
	}
)

func nodeCalls() []call {
	return []call{
		answered(&startNode, port[wire.None, wire.Changed]{
			verb: "start", what: aNode[wire.None], scope: ofNode, log: logChange,
			do: func(ctx context.Context, b *Backend, q asked, _ wire.None) (wire.Changed, error) {
				out, err := onNode(ctx, b, &startNode, q.At)
				if err == nil {
					_, out.Waiting = b.serving(ctx, q.At.Location)
				}
				return out, err
			},
		}),
		answered(&stopNode, port[wire.None, wire.Changed]{
			verb: "stop", what: aNode[wire.None], scope: ofNode, log: logChange,
			do: func(ctx context.Context, b *Backend, q asked, _ wire.None) (wire.Changed, error) {
				return onNode(ctx, b, &stopNode, q.At)
			},
		}),
		answered(&nodeSupport, port[wire.None, wire.Support]{
			verb: "read the state of", what: aNode[wire.None], scope: ofNode,
			do: func(ctx context.Context, b *Backend, q asked, _ wire.None) (wire.Support, error) {
				return onNode(ctx, b, &nodeSupport, q.At)
			},
		}),
		answered(&recoverRange, port[wire.RecoverRange, wire.RangeRecovered]{
			verb: "recover", what: aRange, scope: ofRange,
			wrong: func(in *wire.RecoverRange) string {
				if !in.AcceptLoss && !in.DryRun {
					return "what only the lost replicas held is given up: agree with accept_loss"
				}
				return ""
			},
			log: logRecovery,
			show: func(_ asked, out wire.RangeRecovered) wire.RangeRecovered {
				out.SilentNodes = list(out.SilentNodes)
				return out
			},
		}),
	}
}

// onNode has a node carry out an operation. Its location looks for it.
func onNode[Resp any](ctx context.Context, b *Backend, o *operation[wire.None, Resp], at wire.At) (out Resp, err error) {
	l, err := b.find(at.Location)
	if err != nil {
		_, id, _ := wire.ParseNodeName(at.Node) // The port has parsed it.
		return out, wire.NoNode(at.Location, id)
	}
	return ask(ctx, l, o, at, wire.None{})
}

func logChange(l *slog.Logger, _ asked, _ wire.None, done wire.Changed) {
	l.Info("changed by an operator", "name", done.Name, "state", string(done.State), "waiting", done.Waiting)
}

func aRange(at wire.At, _ wire.RecoverRange) string {
	return fmt.Sprintf("range %d of %s", at.Range, at.Location)
}

func logRecovery(l *slog.Logger, q asked, in wire.RecoverRange, out wire.RangeRecovered) {
	if in.DryRun {
		return
	}
	l.Warn("range re-formed by an operator, who accepts what is lost by that", "location", q.At.Location, "range", q.At.Range,
		"survivor", out.Survivor, "kept_index", out.KeptIndex, "known_committed", out.KnownCommitted, "lost_index", out.LostIndex,
		"above", out.Above, "times_unchecked", out.TimesUnchecked, "silent_nodes", out.SilentNodes)
}

// setNode starts or stops a node of this process.
func (l *Local) setNode(at wire.At, to wire.State, set func(geo.NodeID) error) (wire.Changed, error) {
	_, id, err := wire.ParseNodeName(at.Node)
	if err == nil {
		err = set(id)
	}
	return wire.Changed{Name: at.Node, State: to}, err
}
