package location

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// A speed is known after some seconds of samples, follows the last ones alone, and is forgotten with a number that
// is not known.
func TestSpeeds(t *testing.T) {
	t.Parallel()
	s := speeds[serviceKey]{keep: syncSamples}
	table := serviceKey{"pictures", geo.Table}
	at, last := time.Duration(0), int64(1e9)
	run := func(samples int, moves int64) {
		for range samples {
			at += watchEvery
			last += moves
			s.add(at, map[serviceKey]int64{table: last})
		}
	}
	run(4, 50)
	_, known := s.speed(table)
	require.False(t, known, "1.5 s of samples")
	run(1, 50)
	v, known := s.speed(table)
	require.True(t, known)
	require.InDelta(t, 100, v, 1e-6)
	run(3*syncSamples, 150)
	v, _ = s.speed(table)
	require.InDelta(t, 300, v, 1e-6)
	require.Len(t, s.of[table], syncSamples)
	run(3*syncSamples, 0)
	v, known = s.speed(table)
	require.True(t, known)
	require.Zero(t, v)
	s.add(at+watchEvery, nil)
	_, known = s.speed(table)
	require.False(t, known)
}
