package sites

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
	"antipode/test/ledger"
	"antipode/test/rest"
)

// R16, R17: the primary is set back to before a table was created, so that the catalog is forked. account rebuild counts
// what only the copy has and changes nothing; it is refused while the secondary is ahead, and fork resolve is, too. Forced,
// it makes the copy again: what only the copy had, acknowledged writes, is in the lost-and-found of the secondary.
func TestR17ForkOfTheCatalog(t *testing.T) {
	s := startWhole(t, nil)
	ctx := t.Context()
	ctl := s.antipodectl()
	var writes ledger.Ledger
	s.write(ctx, &writes, 40)
	copies := s.keepDisks(ctx, rig.NodesOf(rig.North))
	require.NoError(t, s.primary.CreateTable(ctx, "forgotten"))
	got, err := s.primary.Insert(ctx, "forgotten", rest.Entity{"PartitionKey": "in-forgotten", "RowKey": "r"})
	require.NoError(t, err)
	require.True(t, got.OK(), "%v", got)
	s.write(ctx, &writes, 100)
	s.arrived(ctx, &writes)
	s.eventually(ctx, "the table arrives", func(ctx context.Context) bool {
		_, got, err := s.secondary.GetEntity(ctx, "forgotten", "in-forgotten", "r")
		return err == nil && got.OK()
	})
	sampled := s.sampling(ctx, rig.South, 0, &writes)
	require.NoError(t, s.r.SetBack(rig.NodesOf(rig.North), copies))
	s.eventually(ctx, "the catalog is forked", func(ctx context.Context) bool {
		all, err := s.r.Admin(rig.Gateway).Forks(ctx)
		return err == nil && slices.ContainsFunc(all.Forks, func(f wire.Fork) bool { return f.Service == geo.Catalog.String() && f.Side == wire.SideSource })
	})
	sampled.end()
	for _, f := range s.forks(ctx) {
		if f.Service == geo.Catalog.String() && f.Side == wire.SideSource {
			_, err := s.r.Admin(rig.Gateway).Resolve(ctx, f.Location, wire.ResolveFork{StreamName: f.Name(), Keep: rig.South})
			require.Error(t, err, "a fork of the catalog was settled")
		}
	}
	before := s.account(ctx)
	out, err := ctl("account rebuild " + string(rest.DevAccount))
	require.Error(t, err, "it would be refused: %s", out)
	require.Regexp(t, `[1-9]\d* rows \(.*\) of the copy at `+string(rig.South)+" are not at the primary", out)
	require.Equal(t, before.Epoch, s.account(ctx).Epoch, "what only shows has changed something")
	_, err = s.r.Admin(rig.Gateway).UpdateAccount(ctx, rest.DevAccount, wire.UpdateAccount{Rebuild: true})
	requireRefused(t, err, wire.CodeSecondaryAhead)
	require.Equal(t, before.Epoch, s.account(ctx).Epoch)

	out, err = ctl("account rebuild " + string(rest.DevAccount) + " --force " + string(rest.DevAccount))
	require.NoError(t, err, out)
	s.eventually(ctx, "the copy is made again", func(ctx context.Context) bool {
		a, err := s.r.Admin(rig.Gateway).Account(ctx, rest.DevAccount)
		return err == nil && a.Operation == "" && a.Epoch.Number > before.Epoch.Number && s.allLive(ctx)
	})
	require.Empty(t, s.forks(ctx))
	lost := s.found(ctx, &writes).Lost
	require.NotEmpty(t, lost, "the primary has forgotten nothing: the test shows nothing")
	s.keptOrFound(ctx, &writes, rig.South)
	require.True(t, s.lostAndFound(ctx, rig.South)["in-forgotten"], "the row of a table that the primary had forgotten")
	s.agrees(ctx)
	later := ledger.Ledger{Prefix: "later"}
	s.write(ctx, &later, 30)
	s.arrived(ctx, &later)
}

// R19: the secondary takes the account, the former primary follows, and the location that took it is set back to before
// that, so that each takes the other one for the primary. account show and status name it, with a command; that command
// makes the location that followed the primary. Writes go on, and every acknowledged write that had arrived is there.
func TestR19AccountWithoutAPrimary(t *testing.T) {
	s := startWhole(t, nil)
	ctx := t.Context()
	ctl := s.antipodectl()
	var writes ledger.Ledger
	s.write(ctx, &writes, 60)
	s.arrived(ctx, &writes)
	copies := s.keepDisks(ctx, rig.NodesOf(rig.South))
	s.promote(ctx, rig.South)
	s.write(ctx, &writes, 60)
	s.arrived(ctx, &writes)
	require.NoError(t, s.r.Cut(proxy.Fault{Refuse: true}, rig.NodesOf(rig.North), rig.NodesOf(rig.South)))
	require.NoError(t, s.r.SetBack(rig.NodesOf(rig.South), copies))
	s.heal()

	var why string
	s.eventually(ctx, "account show and status name it", func(ctx context.Context) bool {
		admin := s.r.Admin(rig.Gateway)
		a, err := admin.Account(ctx, rest.DevAccount)
		status, there := admin.Status(ctx)
		why = a.WithoutPrimary
		return err == nil && there == nil && why != "" && slices.ContainsFunc(status.Accounts, func(of wire.AccountStatus) bool {
			return of.Name == rest.DevAccount && of.WithoutPrimary == why
		})
	})
	for _, line := range []string{"account show " + string(rest.DevAccount), "status"} {
		s.eventually(ctx, "antipodectl "+line+" names it", func(context.Context) bool { // A node that just started may not answer.
			out, err := ctl(line)
			return err == nil && strings.Contains(out, "no location takes its writes")
		})
	}
	got, err := s.primary.Insert(ctx, ledger.Name, rest.Entity{"PartitionKey": "nobody", "RowKey": "nobody"})
	require.NoError(t, err)
	require.False(t, got.OK(), "a write was taken though no location is the primary")
	command := regexp.MustCompile(`antipodectl ([^;:]*--yes)`).FindStringSubmatch(why)
	require.NotNil(t, command, why)
	out, err := ctl(command[1])
	require.NoError(t, err, out)
	later := ledger.Ledger{Prefix: "later"}
	s.write(ctx, &later, 30)
	require.Equal(t, rig.North, s.account(ctx).Primary)
	s.kept(ctx, &writes)
	s.rejoined(ctx)
	s.arrived(ctx, &writes)
	s.arrived(ctx, &later)
	s.agrees(ctx)
}

// promote makes a location the primary without asking the present one, and waits until both agree and nothing is under way.
func (s *site) promote(ctx context.Context, to geo.Location) {
	s.t.Helper()
	s.promoteAlone(ctx, to)
	s.rejoined(ctx)
}

// rejoined waits until nothing is under way for the account at either location and all statistics are live. It has the copy
// made again where that is asked for.
func (s *site) rejoined(ctx context.Context) {
	s.t.Helper()
	s.eventually(ctx, "both locations agree", func(ctx context.Context) bool {
		a, err := s.r.Admin(rig.Gateway).Account(ctx, rest.DevAccount)
		if err == nil && strings.Contains(a.Operation, "account rebuild") {
			_, _ = s.r.Admin(rig.Gateway).UpdateAccount(ctx, rest.DevAccount, wire.UpdateAccount{Rebuild: true})
		}
		for _, l := range []geo.Location{rig.North, rig.South} {
			got, err := s.r.Admin(rig.NodesOf(l)[0]).Account(ctx, rest.DevAccount)
			if err != nil || got.Operation != "" || got.Primary != a.Primary || got.Epoch != a.Epoch {
				return false
			}
		}
		return s.allLive(ctx)
	})
}
