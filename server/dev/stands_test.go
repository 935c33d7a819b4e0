package dev

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/server/location"
	"antipode/services/catalog"
	"antipode/stamp/keys"
	"antipode/stamp/memtransport"
	"antipode/stamp/node"
)

// rangeCut loses what the nodes of a location send each other about one range, while it is cut.
type rangeCut struct {
	*memtransport.Transport
	id  geo.RangeID
	cut atomic.Bool
}

func (c *rangeCut) Send(from, to geo.NodeID, batch []node.Envelope) {
	if c.cut.Load() {
		kept := make([]node.Envelope, 0, len(batch))
		for _, e := range batch {
			if e.Range != c.id {
				kept = append(kept, e)
			}
		}
		batch = kept
	}
	c.Transport.Send(from, to, batch)
}

// R15: while one range of the secondary has no quorum, and more is written to it than a receiver holds, what is
// written to the others arrives and their Last Sync Time passes it. Then the range catches up, with all that was
// written.
//
// Capability: Two locations: One range that stands does not stop the others (R15).
func TestR15OneRangeWithoutQuorum(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it writes more than a receiver holds")
	}
	table, blob := geo.FirstRange(geo.Table), geo.FirstRange(geo.Blob)
	cut := &rangeCut{Transport: memtransport.New(), id: table}
	c := startAdjusted(t, func(o *location.Options) {
		if o.Name == South {
			o.Transport = func() node.Transport { return cut }
		}
	})
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k0", "before")
	eventually(t, "a value arrives", func() bool { return read(t, c, "northacct", "-secondary", "k0") == "before" })
	account, err := c.locations[South].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	create := &catalog.Create{Service: geo.Blob, Account: "northacct", Name: "c"}
	require.NoError(t, c.locations[North].Primary.Write(t.Context(), create))
	object := keys.Partition{Service: geo.Blob, Account: "northacct", Container: "c", Generation: create.Created.Generation(), Object: "b"}

	cut.cut.Store(true)
	eventually(t, "the range has no leader", func() bool { return c.locations[South].Leader(table) == nil })
	const values = 240
	value := strings.Repeat("v", 30_000) // All together more than the receiver's share of a range.
	for i := range values {
		a := call(t, c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", fmt.Sprintf("k%d", i)), fmt.Sprintf(`{"v":%q}`, value))
		require.Equal(t, http.StatusNoContent, a.status, a.body)
		require.NoError(t, c.locations[North].Primary.Write(t.Context(), &blobWrite{object, fmt.Sprint(i)}))
	}
	written := time.Now()
	eventually(t, "the blobs pass while the tables stand", func() bool {
		rep := looked(c, South, account, geo.Blob)
		return rep.Known() && rep.LastSync.Time().After(written)
	})
	v, ok, err := runningStamp(c.locations[South]).Replica(blob).State().Get(append(object.Append(nil), noBlobRow))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, fmt.Sprint(values-1), string(v))
	require.Positive(t, c.meters.Alarms.Counts(South)[receive.AlarmStands])
	if rep := looked(c, South, account, geo.Table); rep.Known() {
		require.True(t, rep.LastSync.Time().Before(written))
	}

	cut.cut.Store(false)
	eventually(t, "the tables catch up", func() bool {
		rep := looked(c, South, account, geo.Table)
		return rep.Known() && rep.LastSync.Time().After(written)
	})
	for i := range values {
		require.Equal(t, value, read(t, c, "northacct", "-secondary", fmt.Sprintf("k%d", i)))
	}
}
