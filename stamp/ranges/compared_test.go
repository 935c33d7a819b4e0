package ranges_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/stamptest"
)

// R7: a range whose gates were not compared since its recovery takes no change of an account that is primary here, with
// a number or without, and says so to the client, who tries again. One of an account that is not, such as what a
// settlement keeps, is taken. The catalog, which others are compared with, takes all.
//
// Capability: Proofs: Redundancy across recoveries with loss (R7, R10, R17, R19).
func TestR7UncomparedRangeTakesNoChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "north", geo.Catalog, geo.Table)
		write := func(svc geo.Service, a geo.Account) error {
			p := keys.Partition{Service: svc, Account: a, Container: "t", Generation: keys.Generation{Epoch: 1, Created: 7}, Object: "p"}
			rec := change.Record{Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}}}
			return s.Submit(t.Context(), geo.FirstRange(svc), stamptest.Change{Partition: p, Record: rec})
		}
		epoch := geo.Epoch{Number: 1, Location: "north"}
		for _, svc := range []geo.Service{geo.Catalog, geo.Table} {
			stamptest.Submit(t, s, geo.FirstRange(svc), stamptest.Gate{Account: "shipped", Gate: change.Gate{
				Epoch: epoch, Role: change.RolePrimary, Open: true, Numbered: true,
			}})
			stamptest.Submit(t, s, geo.FirstRange(svc), stamptest.Gate{Account: "alone", Gate: change.Gate{
				Epoch: epoch, Role: change.RolePrimary, Open: true,
			}})
			require.NoError(t, write(svc, "shipped"))
			stamptest.Submit(t, s, geo.FirstRange(svc), stamptest.Compared{As: 5})
			require.NoError(t, write(svc, "found"))
		}
		require.True(t, s.Leader(geo.FirstRange(geo.Table)).Machine.Uncompared())
		require.ErrorIs(t, write(geo.Table, "shipped"), kv.ErrBusy)
		require.ErrorIs(t, write(geo.Table, "alone"), kv.ErrBusy)
		require.NoError(t, write(geo.Catalog, "shipped"))

		stamptest.Submit(t, s, geo.FirstRange(geo.Table), stamptest.Compared{})
		require.NoError(t, write(geo.Table, "shipped"))
		require.NoError(t, write(geo.Table, "alone"))
	})
}

// R7: under which incarnation the gates were compared is state of the range: it is known after a restart that replays
// nothing.
func TestR7ComparedIsDurable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "north", geo.Table)
		id := geo.FirstRange(geo.Table)
		stamptest.Submit(t, s, id, stamptest.Compared{As: 5}) // Of a range that was never recovered it is another one.
		for _, n := range s.Nodes() {
			m := s.Node(n).Range(id).Machine
			require.Eventually(t, m.Uncompared, time.Minute, time.Millisecond)
			require.NoError(t, s.Node(n).State().Flush())
			require.NoError(t, s.Stop(n, true))
			require.NoError(t, s.Start(n))
			m = s.Node(n).Range(id).Machine
			require.True(t, m.Uncompared())
		}
	})
}
