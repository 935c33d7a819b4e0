package drill_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/drill"
)

// account is a Target in memory. Its requests take a millisecond of the bubble's time.
type account struct {
	mu     sync.Mutex
	rows   map[int][]uint64
	closed bool
	// unread are the names that cannot be read.
	unread [2]bool
	// forgets has acknowledged writes get lost: forgot are these.
	forgets bool
	forgot  []drill.Listed
}

var errClosed = errors.New("it is being moved")

func (a *account) Write(ctx context.Context, row int, value uint64) error {
	time.Sleep(time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return errClosed
	}
	if a.forgets {
		a.forgot = append(a.forgot, drill.Listed{Row: row, Value: value, Change: admin.LostChange{Answered: admin.AnsweredSurely}})
	} else {
		a.rows[row] = append(a.rows[row], value)
	}
	return ctx.Err()
}

func (a *account) Values(ctx context.Context, row int) ([]uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unread[0] {
		return nil, errClosed
	}
	return a.rows[row], ctx.Err()
}

func (a *account) Read(ctx context.Context, _ int, secondary bool) error {
	time.Sleep(time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	name := 0
	if secondary {
		name = 1
	}
	if a.unread[name] {
		return errClosed
	}
	return ctx.Err()
}

func (a *account) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func options(a *account) drill.Options {
	began := time.Now()
	return drill.Options{
		Target: a, Now: func() time.Duration { return time.Since(began) }, Calm: time.Second,
		Wait: func(ctx context.Context, d time.Duration) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(d):
				return nil
			}
		},
	}
}

// A drill whose move stops writes for 300 ms and reads of each name for 100 ms, one after the other, reports that.
func TestDrill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{rows: map[int][]uint64{}}
		move := drill.Move{Name: "there", Do: func(context.Context) error {
			a.set(func() { a.closed, a.unread[0] = true, true })
			time.Sleep(100 * time.Millisecond)
			a.set(func() { a.unread = [2]bool{false, true} })
			time.Sleep(100 * time.Millisecond)
			a.set(func() { a.unread[1] = false })
			time.Sleep(100 * time.Millisecond)
			a.set(func() { a.closed = false })
			return nil
		}}
		r, err := drill.Run(t.Context(), options(a), move)
		require.NoError(t, err)
		require.Zero(t, r.Lost)
		require.Len(t, r.Moves, 1)
		require.InDelta(t, 300, r.Moves[0].Took().Milliseconds(), 2)
		require.InDelta(t, 310, r.Moves[0].Stood[drill.Writes].Milliseconds(), 20)
		require.InDelta(t, 110, r.Moves[0].Stood[drill.PrimaryReads].Milliseconds(), 20)
		require.InDelta(t, 110, r.Moves[0].Stood[drill.SecondaryReads].Milliseconds(), 20)
		require.LessOrEqual(t, r.NeitherRead, 12*time.Millisecond)
		require.Equal(t, "it is being moved", r.Errors[0].Says)
		failed := 0
		for _, s := range r.Seen {
			require.Positive(t, s.Done, s.Kind)
			require.Positive(t, s.Failed, s.Kind)
			failed += s.Failed
		}
		for _, f := range r.Errors {
			failed -= f.N
		}
		require.Zero(t, failed, "each failed request is in the list of answers")

		var page strings.Builder
		r.Account = "pictures<b>"
		require.NoError(t, drill.WritePage(&page, r))
		for _, want := range []string{"pictures&lt;b&gt;", "there", `class="failed"`, `class="done"`, "it is being moved", "</html>"} {
			require.Contains(t, page.String(), want)
		}
	})
}

// A write that was acknowledged and is gone is counted; a time without any name is shown; a move that fails ends the drill,
// and what was measured is reported.
func TestDrillFindsWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{rows: map[int][]uint64{}}
		failed := errors.New("the failover ended without effect")
		r, err := drill.Run(t.Context(), options(a), drill.Move{Name: "there", Do: func(context.Context) error {
			a.set(func() { a.unread, a.forgets = [2]bool{true, true}, true })
			time.Sleep(200 * time.Millisecond)
			a.set(func() { a.unread = [2]bool{} })
			return failed
		}}, drill.Move{Name: "back", Do: func(context.Context) error {
			t.Error("the drill goes on after a move that failed")
			return nil
		}})
		require.ErrorIs(t, err, failed)
		require.LessOrEqual(t, r.Lost, len(a.forgot), "the end of the drill cuts some off")
		require.Greater(t, r.Lost, 8)
		require.Contains(t, strings.Join(r.Faults(), "\n"), fmt.Sprintf("acknowledged writes are gone: %d", r.Lost))
		require.InDelta(t, 205, r.NeitherRead.Milliseconds(), 15)
		require.Len(t, r.Moves, 1)
		require.Contains(t, r.Moves[0].Failed, "without effect")
	})
}

// A drill without a single success shows that, and no figure that looks like one.
func TestDrillOfADeadAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{rows: map[int][]uint64{}, closed: true, unread: [2]bool{true, true}}
		r, err := drill.Run(t.Context(), options(a))
		require.ErrorIs(t, err, errClosed)
		require.Equal(t, r.Took, r.NeitherRead)
		for _, s := range r.Seen {
			require.Zero(t, s.Done)
			require.Equal(t, r.Took, s.Stood, s.Kind)
		}
	})
}
