package ship

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A time or a bound below zero is refused with its field, its value and what is allowed, and New does not take it
// (table). The zero value is valid.
func TestOptions(t *testing.T) {
	t.Parallel()
	require.NoError(t, Options{}.Validate())
	for want, o := range map[string]Options{
		"ship: Linger is -1ns: want a time above zero, or zero for the default":        {Linger: -1},
		"ship: RetryAfter is -1s: want a time above zero, or zero for the default":     {RetryAfter: -time.Second},
		"ship: QueueBytesMax is -1: want a number above zero, or zero for the default": {Bounds: Bounds{QueueBytesMax: -1}},
		"ship: PushBytesMax is -2: want a number above zero, or zero for the default":  {Bounds: Bounds{PushBytesMax: -2}},
		"ship: TrimEvery is -1s: want a time above zero, or zero for the default":      {TrimEvery: -time.Second},
	} {
		require.EqualError(t, o.Validate(), want)
		require.PanicsWithError(t, want, func() { New(o) })
	}
	err := Options{Linger: -1, TrimEvery: -1}.Validate()
	require.ErrorContains(t, err, "Linger")
	require.ErrorContains(t, err, "TrimEvery")
}
