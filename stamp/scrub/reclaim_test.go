package scrub

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// room is a Space with some spans of wiped rows.
type room struct {
	left int
	err  error
}

func (r *room) Reclaim(context.Context) (bool, error) {
	if r.left == 0 || r.err != nil {
		return false, r.err
	}
	r.left--
	return true, nil
}

// Wiped rows are reclaimed span after span, with a short rest between them and a long one after the last, or after a
// failure. Without a Space nothing is done.
func TestReclaimStep(t *testing.T) {
	space := &room{left: 2}
	s := &Scrubber{o: Options{Space: space, Logger: slog.New(slog.DiscardHandler)}}
	for _, want := range []time.Duration{reclaimRest, reclaimRest, reclaimAgain} {
		require.Equal(t, want, s.reclaimStep(t.Context()))
	}
	require.Zero(t, space.left)
	space.left, space.err = 1, errors.New("no room")
	require.Equal(t, reclaimAgain, s.reclaimStep(t.Context()))
	space.err = nil
	require.Equal(t, reclaimRest, s.reclaimStep(t.Context()))
	require.Equal(t, reclaimAgain, (&Scrubber{}).reclaimStep(t.Context()))
}
