package location

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/verify"
	"antipode/services/catalog"
	"antipode/stamp/change"
)

// R17: what a rebuild would delete, and the command that keeps most of it: each is one that is not refused in that state.
func TestR17RebuildNamesWhatKeepsMost(t *testing.T) {
	a := &catalog.Account{Name: "pictures", Primary: "north", Secondary: "south"}
	at := func(seq geo.Seq, stop change.StopReason) verify.LaneHead {
		h := verify.LaneHead{Head: geo.Head{Seq: seq}}
		if stop != 0 {
			h.Stopped = stop.String()
		}
		return h
	}
	const resolve = "antipodectl fork resolve pictures --keep south takes them back"
	for name, c := range map[string]struct {
		service geo.Service
		near    verify.LaneHead
		far     verify.LaneHead
		streams int
		want    string
	}{
		"behind":         {geo.Table, at(5, 0), at(4, 0), 0, ""},
		"equal":          {geo.Table, at(5, 0), at(5, 0), 0, ""},
		"ahead":          {geo.Table, at(4, 0), at(5, 0), 1, resolve},
		"forked":         {geo.Table, at(5, 0), at(4, change.StopForked), 1, resolve},
		"forked here":    {geo.Blob, at(5, change.StopForked), at(4, 0), 1, resolve},
		"settling":       {geo.Table, at(5, change.StopSettling), at(4, 0), 1, "they are being settled, which goes on alone (antipodectl fork list): try again once it has ended"},
		"of the catalog": {geo.Catalog, at(4, 0), at(5, 0), 1, "antipodectl failover unplanned pictures makes south the primary, with all that it has"},
		"another record": {geo.Table, verify.LaneHead{Head: geo.Head{Seq: 5, Hash: 1}}, at(5, 0), 1, resolve},
	} {
		t.Run(name, func(t *testing.T) {
			var f aheadStreams
			f.add(c.service, c.near, c.far)
			require.Equal(t, c.streams, f.streams)
			if c.streams > 0 {
				require.Equal(t, c.want, f.keepsMost(a))
			}
		})
	}
	// One that is being settled beside one that is not: the second still has to be.
	var both aheadStreams
	both.add(geo.Table, at(5, change.StopSettling), at(4, 0))
	both.add(geo.Blob, at(4, 0), at(5, 0))
	require.Equal(t, resolve, both.keepsMost(a))
}
