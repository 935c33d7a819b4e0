package operator

import (
	"context"
	"log/slog"
	"time"

	wire "antipode/client/admin"
)

var (
	showClone = operation[wire.None, wire.Clone]{
		Call: wire.CallClone, members: showMembersClone,
		here: func(_ context.Context, l *Local, at wire.At, _ wire.None) (wire.Clone, error) {
			return l.Location.Clone(at.Account)
		},
	}
	openClone = operation[wire.OpenClone, wire.Clone]{
		Call: wire.CallOpenClone, members: openMembersClone,
		here: func(ctx context.Context, l *Local, at wire.At, in wire.OpenClone) (wire.Clone, error) {
			return l.Location.OpenClone(ctx, at.Account, in)
		},
	}
	dropClone = operation[wire.None, wire.Clone]{
		Call: wire.CallDropClone, members: dropMembersClone,
		here: func(ctx context.Context, l *Local, at wire.At, _ wire.None) (wire.Clone, error) {
			return l.Location.DropClone(ctx, at.Account)
		},
	}
)

func cloneCalls() []call {
	return []call{
		answered(&openClone, port[wire.OpenClone, wire.Clone]{
			verb: "clone", what: anAccount[wire.OpenClone], scope: ofAccount, wrong: wrongLife,
			do: func(ctx context.Context, b *Backend, q asked, in wire.OpenClone) (wire.Clone, error) {
				return b.OpenClone(ctx, q.At.Account, in)
			},
			log: func(l *slog.Logger, q asked, in wire.OpenClone, out wire.Clone) {
				l.Info("an operator opens a clone of an account", "account", q.At.Account, "node", out.Node,
					"life", time.Duration(in.ForSeconds*float64(time.Second)))
			},
		}),
		answered(&showClone, port[wire.None, wire.Clone]{
			verb: "show the clone of", what: anAccount[wire.None], scope: ofAccount,
			do: func(ctx context.Context, b *Backend, q asked, _ wire.None) (wire.Clone, error) {
				return b.Clone(ctx, q.At.Account)
			},
		}),
		answered(&dropClone, port[wire.None, wire.Clone]{
			verb: "drop the clone of", what: anAccount[wire.None], scope: ofAccount,
			do: func(ctx context.Context, b *Backend, q asked, _ wire.None) (wire.Clone, error) {
				return b.DropClone(ctx, q.At.Account)
			},
			log: func(l *slog.Logger, q asked, _ wire.None, out wire.Clone) {
				l.Info("an operator drops the clone of an account", "account", q.At.Account, "node", out.Node)
			},
		}),
	}
}

// wrongLife says what is wrong with the life of a clone, and puts the default in.
func wrongLife(q *wire.OpenClone) string {
	if q.ForSeconds == 0 {
		q.ForSeconds = wire.CloneLifeDefault.Seconds()
	}
	if !(q.ForSeconds >= wire.CloneLifeLeast.Seconds() && q.ForSeconds <= wire.CloneLifeMax.Seconds()) {
		return "for_seconds is from 1 s to 24 h: a clone keeps the disk space of all that is deleted beside it"
	}
	return ""
}
