package operator

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	wire "antipode/client/admin"
	"antipode/geo"
)

var (
	listForks = operation[wire.None, wire.Forks]{
		Call: wire.CallForks,
		here: func(ctx context.Context, l *Local, _ wire.At, _ wire.None) (wire.Forks, error) {
			return l.Location.Forks(ctx)
		},
	}
	resumeStream = operation[wire.StreamName, wire.Resumed]{
		Call: wire.CallResume,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.StreamName) (wire.Resumed, error) {
			return l.Location.ResumeStream(ctx, in)
		},
	}
	resolveFork = operation[wire.ResolveFork, wire.ForkResolved]{
		Call: wire.CallResolve,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.ResolveFork) (wire.ForkResolved, error) {
			return l.Location.ResolveFork(ctx, in)
		},
	}
	copyAlone = operation[wire.AloneQuery, wire.CopyAlone]{
		Call: wire.CallCopyAlone,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.AloneQuery) (wire.CopyAlone, error) {
			return l.Location.CopyAlone(ctx, in.Account)
		},
	}
	listFound = operation[wire.FoundQuery, wire.Found]{
		Call: wire.CallFound,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.FoundQuery) (wire.Found, error) {
			return l.Location.Found(ctx, in)
		},
	}
	readFound = operation[wire.FoundChunk, wire.FoundPayload]{
		Call: wire.CallFoundPayload,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.FoundChunk) (wire.FoundPayload, error) {
			return l.Location.FoundPayload(ctx, in)
		},
	}
	dropFound = operation[wire.DropFound, wire.FoundDropped]{
		Call: wire.CallDropFound,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.DropFound) (wire.FoundDropped, error) {
			return l.Location.DropFound(ctx, in)
		},
	}
	listLost = operation[wire.LostQuery, wire.Lost]{
		Call: wire.CallLost,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.LostQuery) (wire.Lost, error) {
			return l.Location.Lost(ctx, in)
		},
	}
	dropLost = operation[wire.DropLost, wire.LostDropped]{
		Call: wire.CallDropLost,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.DropLost) (wire.LostDropped, error) {
			return l.Location.DropLost(ctx, in)
		},
	}
)

// streamCalls are of streams that may not go on, and of what was kept of rows and changes that are not in the account. What shows
// what clients stored needs the token.
func streamCalls() []call {
	return []call{
		// A port of a location shows what is kept there alone.
		answered(&listForks, port[wire.None, wire.Forks]{
			verb: "list", what: saying[wire.None]("the forks"), show: showForks,
			do: func(ctx context.Context, b *Backend, _ asked, _ wire.None) (wire.Forks, error) { return b.Forks(ctx) },
		}),
		answered(&resumeStream, port[wire.StreamName, wire.Resumed]{
			verb: "resume", what: aStream, scope: ofLocation,
			wrong: func(s *wire.StreamName) string {
				if !named(*s) {
					return "a stream has an account, an epoch, a range and a lane: antipodectl fork list shows them"
				}
				return ""
			},
			log: func(l *slog.Logger, q asked, _ wire.StreamName, out wire.Resumed) {
				l.Warn("an operator lets a stopped stream go on", "location", q.At.Location, "stream", out.Stream, "reason", out.Reason)
			},
		}),
		answered(&resolveFork, port[wire.ResolveFork, wire.ForkResolved]{
			verb: "resolve", what: saying[wire.ResolveFork]("a fork"), scope: ofLocation,
			wrong: func(q *wire.ResolveFork) string {
				if !named(q.StreamName) || q.Keep == "" {
					return "a stream has an account, an epoch, a range and a lane (antipodectl fork list shows them), and keep is one of its locations"
				}
				return ""
			},
			log: func(l *slog.Logger, q asked, _ wire.ResolveFork, out wire.ForkResolved) {
				l.Warn("an operator resolves a fork", "location", q.At.Location, "stream", out.Stream, "keep", out.Keep)
			},
		}),
		answered(&copyAlone, port[wire.AloneQuery, wire.CopyAlone]{ // It reads the whole copy.
			verb: "compare", what: saying[wire.AloneQuery]("a copy with its primary"), scope: ofLocation,
			wrong: func(q *wire.AloneQuery) string {
				if !q.Account.Valid() {
					return "name the account: 3 to 24 lower-case letters and digits"
				}
				return ""
			},
		}),
		answered(&listFound, port[wire.FoundQuery, wire.Found]{
			verb: "list", what: saying[wire.FoundQuery]("the lost-and-found"), scope: ofLocation,
		}),
		answered(&readFound, port[wire.FoundChunk, wire.FoundPayload]{
			verb: "read", what: saying[wire.FoundChunk]("payload of the lost-and-found"), scope: ofLocation,
		}),
		answered(&dropFound, port[wire.DropFound, wire.FoundDropped]{
			verb: "drop", what: saying[wire.DropFound]("rows of the lost-and-found"), scope: ofLocation,
			wrong: func(q *wire.DropFound) string {
				if len(q.Keys) > wire.FoundRowsMax {
					return "too many rows at once"
				}
				return ""
			},
			log: func(l *slog.Logger, q asked, _ wire.DropFound, out wire.FoundDropped) {
				l.Warn("an operator drops rows of the lost-and-found", "location", q.At.Location, "rows", out.Dropped)
			},
		}),
		answered(&listLost, port[wire.LostQuery, wire.Lost]{
			verb: "list", what: saying[wire.LostQuery]("lost changes"), scope: ofLocation,
			wrong: func(q *wire.LostQuery) string { return wrongName(q.Account) },
		}),
		answered(&dropLost, port[wire.DropLost, wire.LostDropped]{
			verb: "drop", what: saying[wire.DropLost]("lost changes"), scope: ofLocation,
			wrong: func(q *wire.DropLost) string { return wrongName(q.Account) },
			log: func(l *slog.Logger, q asked, in wire.DropLost, out wire.LostDropped) {
				l.Warn("an operator drops the report of lost changes", "location", q.At.Location, "account", in.Account, "changes", out.Dropped)
			},
		}),
	}
}

func aStream(_ wire.At, s wire.StreamName) string {
	if s == (wire.StreamName{}) {
		return "a stream"
	}
	return "stream " + s.String()
}

// named reports whether a stream is named whole.
func named(s wire.StreamName) bool {
	return s.Account != "" && s.Range != 0 && s.Lane < geo.LaneCount && s.Epoch.Number != 0
}

func wrongName(a geo.Account) string {
	if !a.Valid() {
		return "account is the name of one"
	}
	return ""
}

// showForks lists those of the port's location, or all, by stream.
func showForks(q asked, out wire.Forks) wire.Forks {
	found := slices.DeleteFunc(slices.Clone(out.Forks), func(f wire.Fork) bool { return !q.Shows(f.Location) })
	slices.SortFunc(found, func(x, y wire.Fork) int {
		return cmp.Or(cmp.Compare(x.Account, y.Account), cmp.Compare(x.Epoch.Number, y.Epoch.Number), cmp.Compare(x.Epoch.Location, y.Epoch.Location),
			cmp.Compare(x.Range, y.Range), cmp.Compare(x.Lane, y.Lane), cmp.Compare(x.Location, y.Location))
	})
	return wire.Forks{Forks: list(found), Silent: list(out.Silent)}
}
