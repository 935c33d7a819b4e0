package directory_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// stick has the south receive no range of a service.
func (h *house) stick(svc geo.Service) *clock.Manual {
	now := clock.NewManual(time.Now())
	h.north.directory.SetPace(now, 0)
	h.north.directory.Mover().SetReceived(func(_ context.Context, id geo.RangeID) (geo.Timestamp, error) {
		if id == geo.FirstRange(svc) {
			return 1, nil
		}
		_, closed := h.north.stamp.Leader(id).Machine.Heads()
		return closed, nil
	})
	return now
}

// occupy gives an account of the north an operation.
func (h *house) occupy(t *testing.T, name geo.Account) {
	t.Helper()
	a, err := h.north.directory.Account(t.Context(), name)
	require.NoError(t, err)
	row := *a
	row.Operation = &catalog.Operation{Kind: catalog.OperationTaken, Diverged: true}
	v, err := row.Encode()
	require.NoError(t, err)
	part := catalog.AccountPartition(name)
	stamptest.Submit(t, h.north.stamp, geo.FirstRange(geo.Catalog), does(func(tx *ranges.Tx) error {
		return tx.Local(part, change.Record{CommitTime: tx.Timestamp(0), Partition: part.Append(nil), Ops: []change.Op{{Value: v}}})
	}))
}

// R19: the check of the planned failover of a location refuses where the other location receives nothing of one of its ranges,
// by an account that has no operation, and begins nothing. Else it says how many accounts would move.
//
// Capability: Failover: A failover of a whole location.
func TestR19LocationDryRunNamesAStandingStream(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 3)
	h.north.directory.NeverWait()
	h.occupy(t, h.name(0))
	h.stick(0)
	c, err := h.north.directory.CheckLocationFlow(t.Context())
	require.NoError(t, err)
	require.Equal(t, directory.LocationProgress{Waiting: 3, Alone: 1, Moving: map[string]int{}}, c.LocationProgress)
	h.stick(geo.Queue)
	_, err = h.north.directory.CheckLocationFlow(t.Context())
	requireCode(t, storageerr.ServerBusy, err)
	require.ErrorContains(t, err, "south did not receive what the queue range had sent; nothing was changed")
	m, err := h.north.directory.LocationMove(t.Context())
	require.NoError(t, err)
	require.Nil(t, m)
	_, err = h.north.directory.MoveLocation(t.Context(), time.Second)
	require.NoError(t, err)
	_, err = h.north.directory.CheckLocationFlow(t.Context())
	requireCode(t, storageerr.OperationInProgress, err)
}

// R19: the failover of a location whose accounts stay says why, by cause, most accounts first, with the next command. What it
// says is in its row, so it outlives the process.
//
// Capability: Failover: A failover of a whole location.
func TestR19LocationSaysWhyAccountsStay(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 4)
	h.occupy(t, h.name(3))
	now := h.stick(geo.Table)
	_, err := h.north.directory.MoveLocation(t.Context(), 3*time.Second)
	require.NoError(t, err)
	h.goOn(t, func() bool {
		now.Advance(time.Second)
		return h.over(t, h.north)
	})
	m, p := h.progress(t, h.north)
	require.Equal(t, 4, p.Waiting)
	occupied := (&catalog.Operation{Kind: catalog.OperationTaken, Diverged: true}).Describe()
	require.Equal(t, "3 accounts, such as acct0000: its time was over while south did not receive what the table range had sent: "+
		"antipodectl why acct0000\naccount acct0003: StorageAccountOperationInProgress: account acct0003: an operation is under way: "+
		occupied+": antipodectl account show acct0003", m.Reason)
}
