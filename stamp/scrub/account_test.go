package scrub

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

// R14, R16: the outboxes of all ranges are walked a little at a time. What the last whole walk found is counted
// and named; once it is mended, nothing is.
//
// Capability: Two locations: Every number between what a stream has trimmed and its head is in the outbox (R14, R16).
func TestR16AccountStep(t *testing.T) {
	store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	stream := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: 3}
	set := func(key, value []byte) {
		b := store.NewBatch()
		require.NoError(t, b.Set(key, value))
		require.NoError(t, store.Commit(b))
		require.NoError(t, b.Close())
		require.NoError(t, store.Flush())
	}
	const records = accountRows + 10
	set(keys.Head(3, stream), change.AppendOutboxHead(nil, change.OutboxHead{Head: geo.Head{Seq: records}}))
	for n := geo.Seq(1); n <= records; n++ {
		if n != 5 {
			set(keys.Outbox(3, stream, n), make([]byte, 100))
		}
	}
	var log strings.Builder
	s := &Scrubber{o: Options{Rows: store, Outboxes: true, Ranges: []Range{{ID: 2}, {ID: 3}}, Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	rest := s.accountStep(t.Context())
	require.Equal(t, accountRest, rest, "range 2 has none")
	rest = s.accountStep(t.Context())
	require.Equal(t, accountRest+100*accountRows*time.Second/accountRate, rest)
	require.Zero(t, s.counts.missingRecords.Load(), "before the end of the walk")
	require.Equal(t, accountAgain, s.accountStep(t.Context()))
	require.EqualValues(t, 1, s.counts.missingRecords.Load())
	require.EqualValues(t, records-1, s.counts.accountedRecords.Load())
	require.Contains(t, log.String(), "account rebuild acct")
	require.Contains(t, log.String(), "missing=1 extra=0")

	log.Reset()
	set(keys.Outbox(3, stream, 5), make([]byte, 100))
	set(keys.Outbox(3, stream, records+1), nil)
	for s.accountStep(t.Context()) != accountAgain {
	}
	require.Zero(t, s.counts.missingRecords.Load())
	require.EqualValues(t, 1, s.counts.extraRecords.Load())
	require.Contains(t, log.String(), "missing=0 extra=1")

	// A row that cannot be read ends the walk; the counts stay.
	log.Reset()
	set(keys.Head(3, stream), []byte("damaged"))
	for s.accountStep(t.Context()) != accountAgain {
	}
	require.EqualValues(t, 1, s.counts.extraRecords.Load())
	require.Contains(t, log.String(), "cannot read the outbox")
	require.Equal(t, accountAgain, (&Scrubber{}).accountStep(t.Context()))
}
