package sites

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/cluster"
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
	"antipode/test/ledger"
	"antipode/test/rest"
)

// R4: one node of the primary is set back while all three restart, with calls to the secondary cut and its bus reached:
// the node takes no part before it was rebuilt, and nothing that was acknowledged is missing, nor forked.
func TestR4OneOfThePrimarySetBack(t *testing.T) {
	s := startWhole(t, nil)
	ctx := t.Context()
	north := rig.NodesOf(rig.North)
	var writes ledger.Ledger
	s.write(ctx, &writes, 60)
	copies := s.keepDisks(ctx, north[:1])
	s.write(ctx, &writes, 200)
	s.arrived(ctx, &writes)
	sampled := s.sampling(ctx, rig.South, 0, &writes)
	sampled.sampledAll(ctx)
	s.setBackAlone(ctx, north, copies)
	s.write(ctx, &writes, 60)
	s.heal()
	s.ready(ctx)
	s.kept(ctx, &writes)
	s.arrived(ctx, &writes)
	sampled.end()
	require.Empty(t, s.forks(ctx))
	s.agrees(ctx)
}

// R4, R16: all nodes of the primary are set back, with calls to the secondary cut and its bus reached, and take other writes
// under the numbers of those that they forgot. Last Sync Time is never newer than an acknowledged write that -secondary
// lacks. The fork is found; once the secondary's side is kept the primary has every write that it forgot again, and what it
// took meanwhile is there or in its lost-and-found.
func TestR16ThePrimarySetBackWhole(t *testing.T) {
	s := startWhole(t, nil)
	ctx := t.Context()
	north := rig.NodesOf(rig.North)
	writes, others := ledger.Ledger{Prefix: "w"}, ledger.Ledger{Prefix: "o"}
	s.write(ctx, &writes, 60)
	copies := s.keepDisks(ctx, north)
	s.write(ctx, &writes, 200)
	s.arrived(ctx, &writes)
	sampled := s.sampling(ctx, rig.South, 0, &writes, &others)
	sampled.sampledAll(ctx)
	s.setBackAlone(ctx, north, copies)
	s.write(ctx, &others, 60)
	forgotten := s.found(ctx, &writes).Lost
	require.Greater(t, len(forgotten), 100, "the primary has forgotten nothing: the test shows nothing")
	s.heal()
	s.eventually(ctx, "the fork is found at both locations", func(ctx context.Context) bool {
		all, err := s.r.Admin(rig.Gateway).Forks(ctx)
		at := map[geo.Location]bool{}
		for _, f := range all.Forks {
			at[f.Location] = at[f.Location] || f.Reason == "forked"
		}
		return err == nil && at[rig.North] && at[rig.South]
	})
	sampled.end()
	sampled = s.sampling(ctx, rig.South, 0, &writes) // The others are undone now.
	s.settle(ctx, rig.South)
	s.kept(ctx, &writes)
	s.arrived(ctx, &writes)
	s.keptOrFound(ctx, &others, rig.North)
	s.write(ctx, &writes, 30)
	s.arrived(ctx, &writes)
	s.passes(ctx)
	sampled.end()
	s.agrees(ctx)
	t.Logf("%d acknowledged writes were forgotten and came back", len(forgotten))
}

// R16: all nodes of the secondary are set back under load: it has again what it forgot, once an operator has the primary's
// side kept where a stream was lost; nothing is missing, and Last Sync Time is never newer than what is there.
func TestR16TheSecondarySetBackWhole(t *testing.T) {
	s := startWhole(t, nil)
	ctx := t.Context()
	south := rig.NodesOf(rig.South)
	var writes ledger.Ledger
	s.write(ctx, &writes, 60)
	copies := s.keepDisks(ctx, south)
	s.write(ctx, &writes, 200)
	s.arrived(ctx, &writes)
	end := s.writing(ctx, &writes)
	require.NoError(t, s.r.SetBack(south, copies))
	sampled := s.sampling(ctx, rig.South, 0, &writes)
	s.leads(ctx, rig.South)
	s.more(ctx, &writes, 100)
	s.settle(ctx, rig.North)
	s.passes(ctx)
	end()
	s.kept(ctx, &writes)
	s.arrived(ctx, &writes)
	s.passes(ctx)
	sampled.end()
	_, reads := sampled.counts()
	require.Positive(t, reads, "Last Sync Time demanded nothing")
	s.agrees(ctx)
}

// marksAge is the age from which on the others remember how far a replica has persisted its log, whatever ends them: it
// reports that each second, and they write it every 10 s.
const marksAge = 12 * time.Second

// R4: two of three nodes of the primary are set back, also while no call reaches the secondary: the ranges wait, at rest,
// and status names the two. A dry run of range recover names the third as the survivor, and the recovery brings all back;
// no process is killed for it.
func TestR4TwoOfThePrimarySetBack(t *testing.T) {
	s := startWhole(t, nil)
	ctx := t.Context()
	north := rig.NodesOf(rig.North)
	var writes ledger.Ledger
	s.write(ctx, &writes, 60)
	copies := s.keepDisks(ctx, north[:2])
	s.write(ctx, &writes, 200)
	s.arrived(ctx, &writes)
	sampled := s.sampling(ctx, rig.South, 0, &writes)
	sampled.sampledAll(ctx)
	rig.Pause(ctx, marksAge) // Younger marks may be forgotten: docs/limits.md.
	require.NoError(t, s.r.SetBack(north, copies))
	admin := s.r.Admin(rig.Gateway)
	s.eventually(ctx, "no range has a leader, and status names what was lost", func(ctx context.Context) bool {
		status, err := admin.Status(ctx)
		if err != nil {
			return false
		}
		for _, l := range status.Locations {
			if l.Name != rig.North {
				continue
			}
			waits := len(l.Ranges) > 0
			for _, v := range l.Ranges {
				waits = waits && v.LeaderView == nil
			}
			return waits && contain(l.Warnings, north[0]+" has lost") && contain(l.Warnings, north[1]+" has lost")
		}
		return false
	})
	got, err := s.primary.Insert(ctx, ledger.Name, rest.Entity{"PartitionKey": "waits", "RowKey": "waits"})
	require.NoError(t, err)
	require.False(t, got.OK(), "a range that waits took a write")

	for id := geo.FirstRange(geo.Catalog); id <= geo.FirstRange(geo.Table); id++ {
		s.eventually(ctx, "what would be kept is known", func(ctx context.Context) bool {
			would, err := admin.RecoverRange(ctx, rig.North, id, wire.RecoverRange{DryRun: true})
			if err != nil || len(would.SilentNodes) > 0 {
				return false
			}
			require.Equal(t, north[2], would.Survivor, "range %d", id)
			require.True(t, would.Trusted)
			return true
		})
		s.eventually(ctx, "the range is recovered", func(ctx context.Context) bool {
			done, err := admin.RecoverRange(ctx, rig.North, id, wire.RecoverRange{AcceptLoss: true})
			return err == nil && done.Survivor == north[2]
		})
	}
	s.ready(ctx)
	s.kept(ctx, &writes)
	require.Empty(t, s.forks(ctx))
	s.write(ctx, &writes, 60)
	s.arrived(ctx, &writes)
	s.passes(ctx)
	sampled.end()
	s.agrees(ctx)
}

// setBackAlone sets nodes of the primary back while all of them restart, which cannot call the secondary but reach its bus;
// an operator lets the location take writes (R21).
func (s *site) setBackAlone(ctx context.Context, north []string, copies map[string]string) {
	s.t.Helper()
	require.NoError(s.t, s.r.Cut(proxy.Fault{Refuse: true}, north, rig.NodesOf(rig.South), cluster.Calls))
	require.NoError(s.t, s.r.SetBack(north, copies))
	s.leads(ctx, rig.North)
	s.eventually(ctx, "an operator lets it take writes", func(ctx context.Context) bool {
		_, err := s.r.Admin(north[0]).ConfirmEpochs(ctx, rig.North)
		return err == nil
	})
}

// forks are the streams that may not go on, of both locations.
func (s *site) forks(ctx context.Context) (out []wire.Fork) {
	s.t.Helper()
	s.eventually(ctx, "forks are listed", func(ctx context.Context) bool {
		all, err := s.r.Admin(rig.Gateway).Forks(ctx)
		out = all.Forks
		return err == nil && len(all.Silent) == 0
	})
	return out
}

// settle has the side of a location kept of each stream that is found to be forked or lost, until none is and all statistics
// are live.
func (s *site) settle(ctx context.Context, keep geo.Location) {
	s.t.Helper()
	admin := s.r.Admin(rig.Gateway)
	begun := map[string]bool{}
	var last error
	var left []wire.Fork
	defer func() {
		if s.t.Failed() {
			s.t.Logf("the last refusal: %v; left: %+v", last, left)
		}
	}()
	s.eventually(ctx, "all streams are settled", func(ctx context.Context) bool {
		all, err := admin.Forks(ctx)
		if err != nil || len(all.Silent) > 0 {
			return false
		}
		left = all.Forks
		for _, f := range left {
			if f.Side == wire.SideSource && (f.Reason == "forked" || f.Reason == "lost") {
				_, err := admin.Resolve(ctx, f.Location, wire.ResolveFork{StreamName: f.Name(), Keep: keep})
				last = err
				begun[f.Stream] = begun[f.Stream] || err == nil
			}
		}
		return len(left) == 0 && s.allLive(ctx)
	})
	s.t.Logf("%d streams were settled for %s", len(begun), keep)
}

// allLive reports whether the statistics of all services are live.
func (s *site) allLive(ctx context.Context) bool {
	return !slices.ContainsFunc(geo.Services[:], func(of geo.Service) bool {
		got, err := s.secondary.Stats(ctx, of)
		return err != nil || got.Status != string(wire.Live) || !got.Known
	})
}

// keptOrFound requires of each acknowledged write that the primary has it, or a lost-and-found. Nobody writes.
func (s *site) keptOrFound(ctx context.Context, l *ledger.Ledger, at geo.Location) {
	s.t.Helper()
	names := s.lostAndFound(ctx, at)
	found := s.found(ctx, l)
	for _, e := range found.Lost {
		require.True(s.t, names[e.Key], "acknowledged, and neither at the primary nor in the lost-and-found: %s", e)
	}
	s.t.Logf("of %d acknowledged writes of the set back primary %d are in the lost-and-found of %s", l.Acked(), len(found.Lost), at)
}

// lostAndFound are the names of the objects in the lost-and-found of a location.
func (s *site) lostAndFound(ctx context.Context, at geo.Location) (names map[string]bool) {
	s.t.Helper()
	s.eventually(ctx, "the lost-and-found", func(ctx context.Context) bool {
		names = map[string]bool{}
		for q := (wire.FoundQuery{Account: rest.DevAccount}); ; {
			page, err := s.r.Admin(rig.Gateway).Found(ctx, at, q)
			if err != nil {
				return false
			}
			for _, row := range page.Rows {
				names[row.Object], q.After = true, row.Key
			}
			if !page.More {
				return true
			}
		}
	})
	return names
}
