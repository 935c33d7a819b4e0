package ranges

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// R6: a commit time that is given behind a received record, closed record or base in one pass is above its time, whatever the
// clock here shows.
func TestR6OwnTimesAreAboveReceivedOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, arrives := range map[string]func(tx *Tx, at geo.Timestamp){
			"record": func(tx *Tx, at geo.Timestamp) {
				rec := &change.Record{Epoch: geo.Epoch{Number: 1, Location: "south"}, Range: 4, Service: geo.Table, Account: "acct", Seq: 1, CommitTime: at}
				encoded, err := change.AppendRecord(nil, rec)
				require.NoError(t, err)
				require.NoError(t, tx.Received(encoded, rec, true))
			},
			"closed record": func(tx *Tx, at geo.Timestamp) {
				tx.TakeClosed(&change.Closed{Origin: "south", Range: 4, Full: true, T: at})
			},
			"base": func(tx *Tx, at geo.Timestamp) {
				rec := &change.Record{Epoch: geo.Epoch{Number: 1, Location: "south"}, Range: 4, Service: geo.Table, Account: "acct", Seq: 7, CommitTime: at}
				encoded, err := change.AppendRecord(nil, rec)
				require.NoError(t, err)
				tx.Rebase(encoded, rec)
			},
		} {
			c := newColdRange(t)
			at := geo.TimestampOf(c.clock.Now().Add(time.Minute))
			cmd, evaluated := c.takes(0, false), false
			cmd.during = func(tx *Tx) {
				require.Less(t, tx.Timestamp(0), at, name)
				arrives(tx, at)
				require.Greater(t, tx.Timestamp(0), at, name)
				evaluated = true
			}
			require.NoError(t, c.rehearse(t.Context(), cmd))
			require.True(t, evaluated, name)
		}
	})
}
