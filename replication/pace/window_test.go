package pace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The window doubles in a round trip while it is used up and answers come soon. It is halved once in a round
// trip while they come late, and begins low after a failure. It keeps its bounds.
//
// Capability: Two locations: A narrow line between the locations.
func TestWindow(t *testing.T) {
	const least, most = 64 << 10, 1 << 20
	p := Window{Bytes: 256 << 10, Least: least, Most: most}
	require.True(t, p.Admits(0))
	p.Answered(100<<10, 0, time.Millisecond)
	require.Equal(t, 256<<10, p.Bytes, "it was not used up")
	for range 40 {
		require.False(t, p.Admits(p.Bytes))
		p.Answered(256<<10, 0, time.Millisecond)
	}
	require.Equal(t, most, p.Bytes)
	p.Answered(1, 0, Late+1)
	p.Answered(1, 1, Late+2)
	require.Equal(t, most/2, p.Bytes, "both were sent before the window shrank")
	for at := time.Minute; at < time.Hour; at += time.Minute {
		p.Answered(1, at, at+Late+1)
	}
	require.Equal(t, least, p.Bytes)
	p.Bytes = most
	p.Failed(2 * time.Hour)
	require.Equal(t, least, p.Bytes)
}
