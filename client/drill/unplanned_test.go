package drill_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/drill"
)

// unplanned runs a drill whose primary acknowledges for 200 ms what gets lost, and is then stopped, which takes 50 ms; 300 ms
// later the new primary takes writes.
func unplanned(t *testing.T, a *account) *drill.Report {
	t.Helper()
	skipped := drill.Move{Name: "skipped", Skip: func() bool { return true }, Do: func(context.Context) error {
		t.Error("a move that is not needed is carried out")
		return nil
	}}
	r, err := drill.Run(t.Context(), options(a), drill.Move{Name: "cut", AtOnce: true, Do: func(context.Context) error {
		a.set(func() { a.forgets = true })
		time.Sleep(200 * time.Millisecond)
		return nil
	}}, drill.Move{Name: "stop", Fails: true, AtOnce: true, Do: func(context.Context) error {
		a.set(func() { a.closed = true })
		time.Sleep(50 * time.Millisecond)
		return nil
	}}, drill.Move{Name: "promote", Do: func(context.Context) error {
		time.Sleep(300 * time.Millisecond)
		a.set(func() { a.closed, a.forgets = false, false })
		return nil
	}}, skipped)
	require.NoError(t, err)
	require.Equal(t, []string{"cut", "stop", "promote"}, []string{r.Moves[0].Name, r.Moves[1].Name, r.Moves[2].Name})
	require.Equal(t, r.Moves[1].From, r.Unplanned.From)
	r.Account, r.Verify, r.Unplanned.Followed = "pictures", admin.VerifyEqual, true
	return r
}

// The report of an unplanned failover has the time until the new primary took a write, and the span of what is lost: each
// write that was acknowledged and is gone, whatever was written to its row later.
func TestUnplanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{rows: map[int][]uint64{}}
		r := unplanned(t, a)
		u := r.Unplanned
		require.Equal(t, len(a.forgot), r.Lost)
		require.Len(t, r.LostWrites, r.Lost)
		require.NotNil(t, u.RTO)
		require.InDelta(t, 355, u.RTO.Milliseconds(), 15)
		require.InDelta(t, 200, u.RPO.Milliseconds(), 15)
		for i, w := range r.LostWrites {
			require.Positive(t, w.Acked-w.Began)
			require.LessOrEqual(t, w.Acked, u.From+time.Millisecond)
			require.False(t, i > 0 && w.Acked < r.LostWrites[i-1].Acked)
		}

		require.Equal(t, []string{"the lost-change report was not read"}, r.Faults())
		r.Compare(a.forgot)
		require.Empty(t, r.Faults(), "losses that the report lists are none")
		require.Equal(t, admin.AnsweredSurely, r.LostWrites[0].Listed)
		require.Equal(t, r.Lost, u.Listed)
		var page strings.Builder
		require.NoError(t, drill.WritePage(&page, r))
		for _, want := range []string{"RTO", `class="lost"`, `class="served"`, "No fault was found", "answered surely"} {
			require.Contains(t, page.String(), want)
		}
	})
}

// A lost write that the lost-change report does not have is a fault, and so is one that the failover had promised to keep: its
// commit is at or below the Last Sync Time that was stated of its service.
func TestUnplannedFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{rows: map[int][]uint64{}}
		r := unplanned(t, a)
		r.Compare(a.forgot[2:])
		require.Equal(t, 2, r.Unplanned.Unlisted)
		require.Contains(t, strings.Join(r.Faults(), "\n"), "acknowledged writes are gone and not in the lost-change report: 2")

		stated := admin.Time{Time: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
		r.Unplanned.Stated = []admin.ServiceLoss{{Service: "blob", LastSyncTime: admin.Time{Time: stated.Add(time.Hour)}}, {Service: "table", LastSyncTime: stated}}
		for i := range a.forgot {
			a.forgot[i].Change.Committed = admin.Time{Time: stated.Add(time.Second)}
		}
		r.Compare(a.forgot)
		require.Empty(t, r.Faults(), "what was committed later may be lost")
		a.forgot[3].Change.Committed = stated
		r.Compare(a.forgot)
		require.Equal(t, 1, r.Unplanned.Promised)
		require.Contains(t, strings.Join(r.Faults(), "\n"), "acknowledged writes are gone although the Last Sync Time that was stated covers them: 1")

		r.Unplanned.Followed, r.Verify, r.Unplanned.RTO = false, admin.VerifyDifferent, nil
		faults := strings.Join(r.Faults(), "\n")
		for _, want := range []string{"has not followed", "the copies are different", "no write was acknowledged"} {
			require.Contains(t, faults, want)
		}
		var page strings.Builder
		require.NoError(t, drill.WritePage(&page, r))
		require.Contains(t, page.String(), "FAILED: the former primary has not followed")
	})
}

// Where the former primary lives, what it acknowledges until the failover has ended counts as its own: the new primary's first
// write is one that is kept and began later.
func TestUnplannedOfALivePrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{rows: map[int][]uint64{}}
		r, err := drill.Run(t.Context(), options(a), drill.Move{Name: "promote", Fails: true, Do: func(context.Context) error {
			time.Sleep(300 * time.Millisecond)
			a.set(func() { a.forgets = true })
			time.Sleep(100 * time.Millisecond)
			go func() { // The former primary learns it later.
				time.Sleep(200 * time.Millisecond)
				a.set(func() { a.forgets = false })
			}()
			return nil
		}})
		require.NoError(t, err)
		require.InDelta(t, 605, r.Unplanned.RTO.Milliseconds(), 20)
		require.InDelta(t, 300, r.Unplanned.RPO.Milliseconds(), 20)
	})
}
