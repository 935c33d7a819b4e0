package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A size or a time below zero is refused with its field, its value and what is allowed, and New does
// not take it (table). The zero value is valid.
func TestOptions(t *testing.T) {
	require.NoError(t, Options{}.Validate())
	for want, o := range map[string]Options{
		"receive: BatchBytesMax is -1: want bytes above zero, or zero for the default":    {BatchBytesMax: -1},
		"receive: PendingBytesMax is -1: want bytes above zero, or zero for the default":  {PendingBytesMax: -1},
		"receive: WindowBytesMax is -1: want bytes above zero, or zero for the default":   {WindowBytesMax: -1},
		"receive: PullBytesMax is -1: want bytes above zero, or zero for the default":     {PullBytesMax: -1},
		"receive: ChunkBytesMax is -1: want bytes above zero, or zero for the default":    {ChunkBytesMax: -1},
		"receive: UnackedMax is -1: want a number above zero, or zero for the default":    {UnackedMax: -1},
		"receive: StandAfter is -1s: want a time above zero, or zero for the default":     {StandAfter: -time.Second},
		"receive: BehindGrace is -1s: want a time above zero, or zero for the default":    {BehindGrace: -time.Second},
		"receive: RetryAfter is -1s: want a time above zero, or zero for the default":     {RetryAfter: -time.Second},
		"receive: AckEvery is -1s: want a time above zero, or zero for the default":       {AckEvery: -time.Second},
		"receive: ReconcileEvery is -1s: want a time above zero, or zero for the default": {ReconcileEvery: -time.Second},
		"receive: SilenceAfter is -1s: want a time above zero, or zero for the default":   {SilenceAfter: -time.Second},
	} {
		require.EqualError(t, o.Validate(), want)
		require.PanicsWithError(t, want, func() { New(o) })
	}
	err := Options{BatchBytesMax: -1, SilenceAfter: -1}.Validate()
	require.ErrorContains(t, err, "BatchBytesMax")
	require.ErrorContains(t, err, "SilenceAfter")
}
