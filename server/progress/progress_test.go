package progress

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
)

// bubble is a clock that shows the time of a synctest bubble.
type bubble struct {
	clock.Clock
	began time.Time
}

func (b bubble) Mono() time.Duration { return time.Since(b.began) }

// An operation that lasts reports every five seconds what it waits for at that moment, is
// silent while it waits for nothing, and no more once it has ended: checked on the time of
// a synctest bubble.
func TestDuring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bubble{began: time.Now()}
		what := []string{"the bus", "", "the queue range"}
		asked := 0
		var said []string
		failed := errors.New("failed")
		err := During(t.Context(), b, func(context.Context) string {
			asked++
			return what[min(asked-1, 2)]
		}, func(what string, lasted time.Duration) { said = append(said, Line(what, lasted)) }, func() error {
			time.Sleep(21 * time.Second)
			return failed
		})
		require.ErrorIs(t, err, failed)
		require.Equal(t, []string{
			"waiting: the bus (5s)", "waiting: the queue range (15s)", "waiting: the queue range (20s)",
		}, said)
		time.Sleep(time.Minute)
		require.Len(t, said, 3)
	})
}
