package sites

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/test/devproc"
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
	"antipode/test/ledger"
	"antipode/test/rest"
)

// site is a deployment whose dev account has its primary in the north. Its methods fail the test.
type site struct {
	t *testing.T
	r *rig.Rig
	// primary and secondary go through the gateway, wherever the account is.
	primary, secondary *rest.Client
}

func (s *site) setup(ctx context.Context) {
	s.t.Helper()
	s.primary, s.secondary = s.r.Client(rig.Gateway, false), s.r.Client(rig.Gateway, true)
	s.eventually(ctx, "a table and a container", func(ctx context.Context) bool { return ledger.Setup(ctx, s.primary) == nil })
	s.eventually(ctx, "the locations are finalized", func(ctx context.Context) bool { // As those that cluster start has just made.
		_, err := s.r.Admin(rig.Gateway).Finalize(ctx, wire.Finalize{})
		return err == nil
	})
}

// eventually repeats ok until it is true. Each try has some seconds: a process that was killed may leave a call open.
func (s *site) eventually(ctx context.Context, what string, ok func(ctx context.Context) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, calmWait)
	defer cancel()
	for {
		one, cancel := context.WithTimeout(ctx, 15*time.Second)
		good := ok(one)
		cancel()
		if good {
			return
		}
		require.NoError(s.t, ctx.Err(), what)
		rig.Pause(ctx, poll)
	}
}

// writing writes until the function that it returns is called, which returns once every write has its answer.
func (s *site) writing(ctx context.Context, l *ledger.Ledger) (end func()) {
	ctx, halt := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { l.Run(ctx, s.primary, 6, 10*time.Millisecond) })
	end = sync.OnceFunc(func() {
		halt()
		wg.Wait()
	})
	s.t.Cleanup(end)
	return end
}

// more waits until so many more writes of a ledger are acknowledged.
func (s *site) more(ctx context.Context, l *ledger.Ledger, n int) {
	s.t.Helper()
	was := l.Acked()
	s.eventually(ctx, "writes are acknowledged", func(context.Context) bool { return l.Acked() >= was+n })
}

// write makes so many more writes of a ledger.
func (s *site) write(ctx context.Context, l *ledger.Ledger, n int) {
	s.t.Helper()
	end := s.writing(ctx, l)
	defer end()
	s.more(ctx, l, n)
}

// arrived waits until all acknowledged writes of a ledger can be read at -secondary. Nobody writes.
func (s *site) arrived(ctx context.Context, l *ledger.Ledger) {
	s.t.Helper()
	s.eventually(ctx, "what was acknowledged is at -secondary", func(ctx context.Context) bool {
		found, err := l.Find(ctx, s.secondary)
		return err == nil && len(found.Lost) == 0
	})
}

// kept requires that every acknowledged write of a ledger can be read at the primary. Nobody writes.
func (s *site) kept(ctx context.Context, l *ledger.Ledger) {
	s.t.Helper()
	found := s.found(ctx, l)
	require.Empty(s.t, found.Lost, "acknowledged, and gone")
}

// found is what the primary has of a ledger. Nobody writes.
func (s *site) found(ctx context.Context, l *ledger.Ledger) (found ledger.Found) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, calmWait)
	defer cancel()
	found, err := l.Find(ctx, s.primary)
	require.NoError(s.t, err)
	return found
}

// passes waits until Last Sync Time of each service has passed the present.
func (s *site) passes(ctx context.Context) {
	s.t.Helper()
	began := time.Now()
	for _, of := range geo.Services {
		s.eventually(ctx, "Last Sync Time of "+of.String()+" passes the present", func(ctx context.Context) bool {
			got, err := s.secondary.Stats(ctx, of)
			return err == nil && got.Known && got.LastSyncTime.After(began)
		})
	}
}

// agrees requires that a comparison of both copies, payload included, finds every lane equal. Nobody writes.
func (s *site) agrees(ctx context.Context) {
	s.t.Helper()
	admin := s.r.Admin(rig.Gateway)
	s.eventually(ctx, "both copies are compared", func(ctx context.Context) bool {
		v, err := admin.StartVerify(ctx, rest.DevAccount, wire.VerifyQuery{Payload: true})
		for err == nil && v.State == wire.VerifyRunning {
			rig.Pause(ctx, poll)
			v, err = admin.Verify(ctx, rest.DevAccount)
		}
		if err != nil {
			return false
		}
		require.Zero(s.t, v.DifferencesTotal, "%+v", v.Differences)
		return v.Outcome == wire.VerifyEqual
	})
}

// ready waits until both locations serve and all statistics are live.
func (s *site) ready(ctx context.Context) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, calmWait)
	defer cancel()
	require.NoError(s.t, s.r.Ready(ctx))
}

// leads waits until every range of a location has a leader.
func (s *site) leads(ctx context.Context, l geo.Location) {
	s.t.Helper()
	s.eventually(ctx, "every range has a leader", func(ctx context.Context) bool {
		views, err := s.r.Views(ctx, l)
		return err == nil && len(views) > 0 && !slices.ContainsFunc(views, func(v wire.Range) bool { return v.LeaderView == nil })
	})
}

// heal makes whole what is between the locations.
func (s *site) heal() {
	s.t.Helper()
	require.NoError(s.t, s.r.Cut(proxy.Fault{}, rig.NodesOf(rig.North), rig.NodesOf(rig.South)))
}

// keepDisks copies the disks of nodes, which are killed for it, and waits until all is well again.
func (s *site) keepDisks(ctx context.Context, nodes []string) (copies map[string]string) {
	s.t.Helper()
	copies, err := s.r.KeepDisks(s.t.TempDir(), nodes...)
	require.NoError(s.t, err)
	s.ready(ctx)
	return copies
}

// account is the dev account as the gateway shows it, once it does.
func (s *site) account(ctx context.Context) (a wire.AccountInfo) {
	s.t.Helper()
	s.eventually(ctx, "the account is shown", func(ctx context.Context) (ok bool) {
		var err error
		a, err = s.r.Admin(rig.Gateway).Account(ctx, rest.DevAccount)
		return err == nil
	})
	return a
}

// antipodectl builds the command and returns a function that runs it against the gateway; what it printed has both outputs.
func (s *site) antipodectl() func(line string) (printed string, err error) {
	s.t.Helper()
	binary, err := devproc.BuildTool(s.t.Context(), s.t.TempDir())
	require.NoError(s.t, err)
	return func(line string) (string, error) {
		ctx, cancel := context.WithTimeout(s.t.Context(), calmWait)
		defer cancel()
		c := exec.CommandContext(ctx, binary, strings.Fields(line)...)
		c.Env = append(os.Environ(), "ANTIPODE_ADMIN="+s.r.Admin(rig.Gateway).URL())
		out, err := c.CombinedOutput()
		return string(out), err
	}
}
