package location

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/verify"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// R16: a settlement that cannot end is tried again after a pause that doubles up to a bound, since each try compares whole
// lanes, and holds up other settlements. One that makes progress, or for which a command was given, is tried at once.
func TestR16SettlementIsTriedAgainAfterAPause(t *testing.T) {
	t.Parallel()
	now := clock.NewManual(time.Unix(1_700_000_000, 0))
	tries := settleTries{clock: now, of: map[settlement]*settleTry{}}
	one, other := settlement{account: "one"}, settlement{account: "other"}
	stops := map[geo.Lane]change.Stop{3: {Reason: change.StopTaking, Here: geo.Head{Seq: 7}}}
	stuck := errors.New("row 02 differs still")
	// pause is how long the settlement is not tried after it ended so.
	pause := func(changed bool, err error) (out time.Duration) {
		t.Helper()
		require.True(t, tries.due(one, stops))
		tries.ended(one, stops, changed, err)
		for !tries.due(one, stops) {
			require.True(t, tries.due(other, stops), "another one does not wait for it")
			now.Advance(100 * time.Millisecond)
			out += 100 * time.Millisecond
		}
		return out
	}
	for _, want := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		require.Equal(t, time.Duration(want)*time.Second, pause(false, stuck))
	}
	require.Equal(t, time.Second, pause(true, stuck), "it goes on")
	require.Equal(t, 2*time.Second, pause(false, stuck))
	tries.ended(one, stops, false, stuck)
	changed := map[geo.Lane]change.Stop{3: {Reason: change.StopSettling, Here: geo.Head{Seq: 7}}}
	require.False(t, tries.due(one, stops))
	require.True(t, tries.due(one, changed), "an operator has chosen the other side")
	stops = changed
	require.Equal(t, time.Second, pause(false, stuck))
	require.Zero(t, pause(false, nil))
	require.Empty(t, tries.of)

	require.True(t, tries.ended(one, stops, false, stuck), "what holds it up is said")
	require.False(t, tries.ended(one, stops, false, stuck), "once")
	require.True(t, tries.ended(one, stops, false, errors.New("another reason")))
	now.Advance(time.Hour)
	tries.ended(other, stops, false, stuck)
	require.NotContains(t, tries.of, one, "it is gone: its account was rebuilt")
}

// R16: a settlement ends for the lanes that were compared and found equal, whatever the others have. It ends for none
// where it is not known in which lanes rows differ.
func TestR16SettlementOfEqualLanesEnds(t *testing.T) {
	t.Parallel()
	bad := keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: "o"}
	lane := func(n geo.Lane) geo.Lane { return (bad.Lane() + n) % geo.LaneCount }
	stops := map[geo.Lane]change.Stop{lane(0): {}, lane(1): {}, lane(2): {}, lane(3): {}}
	equal := func(r verify.Result) []geo.Lane {
		out := equalLanes(stops, &r)
		slices.Sort(out)
		return out
	}
	sorted := func(lanes ...geo.Lane) []geo.Lane {
		slices.Sort(lanes)
		return lanes
	}
	all := sorted(lane(0), lane(1), lane(2), lane(3))
	differ := []verify.Difference{{Kind: verify.Missing, Key: bad.Append(nil)}}
	moved := []verify.Uncompared{{Lane: lane(1)}}
	require.Equal(t, all, equal(verify.Result{Compared: 4}))
	require.Equal(t, sorted(lane(1), lane(2), lane(3)), equal(verify.Result{Compared: 4, Total: 1, Differences: differ}))
	require.Equal(t, sorted(lane(2), lane(3)), equal(verify.Result{Compared: 3, Uncompared: moved, Total: 1, Differences: differ}))
	for why, r := range map[string]verify.Result{
		"more differ than are listed":   {Compared: 4, Total: 2, Differences: differ},
		"not all parts were followed":   {Compared: 4, AtLeast: true},
		"a row of no lane differs":      {Compared: 4, Total: 1, Differences: []verify.Difference{{Key: []byte("x")}}},
		"nothing is known of some lane": {Compared: 3},
	} {
		require.Empty(t, equal(r), why)
	}
}
