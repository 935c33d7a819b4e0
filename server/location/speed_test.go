package location

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// The speed of Last Sync Time is known after some seconds of samples, follows the last ones alone, and is
// forgotten with a service that has no Last Sync Time.
func TestSpeedOfLastSyncTime(t *testing.T) {
	var s speeds
	table := serviceKey{"pictures", geo.Table}
	at, last := time.Duration(0), time.Unix(1e9, 0)
	run := func(samples int, moves time.Duration) {
		for range samples {
			at += watchEvery
			last = last.Add(moves)
			s.add(at, map[serviceKey]geo.Timestamp{table: geo.TimestampOf(last)})
		}
	}
	run(4, watchEvery)
	_, known := s.speed(table)
	require.False(t, known, "1.5 s of samples")
	run(1, watchEvery)
	v, known := s.speed(table)
	require.True(t, known)
	require.InDelta(t, 1, v, 1e-6)
	run(3*speedSamples, 3*watchEvery)
	v, _ = s.speed(table)
	require.InDelta(t, 3, v, 1e-6)
	require.Len(t, s.of[table], speedSamples)
	run(3*speedSamples, 0)
	v, known = s.speed(table)
	require.True(t, known)
	require.Zero(t, v)
	s.add(at+watchEvery, nil)
	_, known = s.speed(table)
	require.False(t, known)
}
