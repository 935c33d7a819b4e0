package redundancy

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/test/faults/rig"
	"antipode/test/ledger"
)

// boundMax is set by `make redundancy`: on a busy machine the last closed time may be late.
var boundMax = flag.Float64("bound", 0, "how many times the truth the stated bound of what is lost may be where the last contact was 1 s before the kill; 0 bounds nothing, 2 is the aim")

// promotion is the loss of a primary and the promotion of the other location, and what was said of it.
type promotion struct {
	// killed is when the first node of the primary was killed, began when the command was given, and took how long it took
	// from then on until the location was the primary.
	killed, began time.Time
	took          time.Duration
	// last are the Last Sync Times by service that the secondary has reported last before the kill, and loss is what the
	// command states.
	last map[string]time.Time
	loss map[string]wire.ServiceLoss
}

// lose kills all nodes of the primary, and promotes the other location. The link stays as it is: what is on its way is lost.
func (a *account) lose(ctx context.Context, from, to geo.Location, reported *reports) promotion {
	a.t.Helper()
	reported.end()
	p := promotion{last: reported.now(), killed: time.Now()}
	for _, name := range rig.NodesOf(from) {
		require.NoError(a.t, a.r.Kill(name))
	}
	p.began = time.Now()
	p.loss = a.promote(ctx, to)
	p.took = time.Since(p.began)
	return p
}

// promote gives the command, and waits until the location is the primary. It returns what the command then states as lost,
// by service.
func (a *account) promote(ctx context.Context, to geo.Location) (loss map[string]wire.ServiceLoss) {
	a.t.Helper()
	a.eventually(ctx, "the promotion begins", func(ctx context.Context) bool {
		_, err := a.askPromotion(ctx, to, false)
		return err == nil
	})
	a.eventually(ctx, "the account is promoted", func(ctx context.Context) bool {
		now, primary, err := a.stated(ctx, to)
		loss = now
		return err == nil && primary == to
	})
	return loss
}

func (a *account) askPromotion(ctx context.Context, to geo.Location, dry bool) (wire.AccountUpdated, error) {
	return a.r.Admin(rig.Gateway).UpdateAccount(ctx, a.name, wire.UpdateAccount{
		Failover: &wire.Failover{Type: wire.FailoverUnplanned, To: to, DryRun: dry},
	})
}

// stated is what an unplanned failover loses, or has lost, by service, as the command says it, and the primary of now.
func (a *account) stated(ctx context.Context, to geo.Location) (loss map[string]wire.ServiceLoss, primary geo.Location, err error) {
	now, err := a.askPromotion(ctx, to, true)
	loss = map[string]wire.ServiceLoss{}
	for _, l := range now.Loss {
		loss[l.Service] = l
	}
	return loss, now.Primary, err
}

// requireStated compares what is lost with what the secondary had reported and the promotion states, as
// TestR20UnplannedUnderLoad has it. It returns the bounds of each service, for people. near: the link was cut contactAge before the kill.
func (a *account) requireStated(p promotion, writes *ledger.Ledger, found ledger.Found, near bool) string {
	a.t.Helper()
	for _, e := range found.Lost {
		require.False(a.t, e.Began.After(p.began), "acknowledged after the command and gone: %s", e)
	}
	var said []string
	for _, s := range []geo.Service{geo.Table, geo.Blob} {
		lost, last, stated := ledger.Of(found.Lost, s), p.last[s.String()], p.loss[s.String()]
		require.Empty(a.t, ledger.Through(lost, last), "at or below the Last Sync Time reported last, %s", last)
		require.False(a.t, stated.LastSyncTime.Before(last), "the guarantee went back: %s after %s", stated.LastSyncTime, last)
		require.Empty(a.t, ledger.Through(lost, stated.LastSyncTime.Time), "at or below the stated Last Sync Time")
		require.False(a.t, stated.UnboundedSince.IsZero())
		known := len(ledger.Through(lost, stated.UnboundedSince.Time))
		require.LessOrEqual(a.t, uint64(known), stated.KnownRecords, "gone and committed up to the last contact, %s", stated.UnboundedSince)
		text := fmt.Sprintf("%s: %d gone, %d of them up to the last contact, %d known lost", s, len(lost), known, stated.KnownRecords)
		if len(lost) > 0 {
			bound, truth, gap := boundOf(p, s, acked(writes), lost)
			text += fmt.Sprintf(", contact %.3f s and first loss %.3f s before the kill, %.3f s after the write before", bound.Seconds(), truth.Seconds(), gap.Seconds())
			if near && *boundMax > 0 {
				require.LessOrEqual(a.t, bound.Seconds(), *boundMax*truth.Seconds()+gap.Seconds(), "%s", text)
			}
		}
		said = append(said, text)
	}
	return strings.Join(said, "; ")
}

// boundOf is, of a service, how long before the kill the stated last contact and the commit of the first acknowledged write
// that is gone were, and how long before that write there had been no commit of an acknowledged one.
func boundOf(p promotion, s geo.Service, acked, lost []ledger.Entry) (bound, truth, gap time.Duration) {
	first := slices.MinFunc(lost, func(a, b ledger.Entry) int { return a.At.Time().Compare(b.At.Time()) }).At.Time()
	before := first
	for _, e := range ledger.Of(acked, s) {
		if at := e.At.Time(); at.Before(first) && (before.Equal(first) || at.After(before)) {
			before = at
		}
	}
	return p.killed.Sub(p.loss[s.String()].UnboundedSince.Time), p.killed.Sub(first), first.Sub(before)
}

// summary prints the line of a measurement that `make redundancy` is looked at for.
func summary(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("SUMMARY "+format, args...)
}

// percentiles shows the median, the 99th and the greatest of some times: by the nearest rank.
func percentiles(of []time.Duration) string {
	return fmt.Sprintf("median %v, p99 %v, most %v of %d", rank(of, 50), rank(of, 99), rank(of, 100), len(of))
}

// rank returns the percentile of some times by the nearest rank, 0 of none.
func rank(of []time.Duration, percent int) time.Duration {
	if len(of) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(of))[(len(of)*percent+99)/100-1].Round(time.Millisecond)
}

// TestRank: by the nearest rank the 99th of 100 times is the last but one, and that of fewer the greatest.
func TestRank(t *testing.T) {
	var of []time.Duration
	for i := range 100 {
		of = append(of, time.Duration(100-i)*time.Second)
	}
	require.Equal(t, 99*time.Second, rank(of, 99))
	require.Equal(t, 50*time.Second, rank(of, 50))
	require.Equal(t, 100*time.Second, rank(of, 100))
	require.Equal(t, 100*time.Second, rank(of[:50], 99))
	require.Zero(t, rank(nil, 99))
}
