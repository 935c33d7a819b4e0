package directory_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// R17: before an image makes a step, the account's rows are counted in every range, in short turns, and the catalog's
// image begins last. A failure repeats a turn, and counts nothing twice; rows of other accounts do not count. A new
// epoch counts again.
func TestR17RowsAreCounted(t *testing.T) {
	b := newBoth(t)
	b.north.NeverWait()
	_, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: "acct", Redundancy: catalog.LRS})
	require.NoError(t, err)
	_, err = b.north.CreateAs(t.Context(), directory.Wanted{Name: "acctt", Redundancy: catalog.LRS})
	require.NoError(t, err)
	insert := func(a geo.Account, s geo.Service, n, bytes int) {
		p := keys.Partition{Service: s, Account: a, Container: "t", Object: fmt.Sprint("p", n)}
		stamptest.Submit(t, b.stamps["north"], geo.FirstRange(s), stamptest.Change{Partition: p, Record: change.Record{
			Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("r"), Value: make([]byte, bytes)}},
		}})
	}
	for n := range 9 {
		insert("acct", geo.Table, n, 1<<20)
	}
	insert("acct", geo.Blob, 1, 7)
	insert("acctt", geo.Table, 1, 1)
	fake := &images{refuse: errors.New("no leader"), next: func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{Uncounted: true} }}
	b.north.SetImages(fake)
	_, behind := update(t, b.north, "acct", catalog.GRS)
	require.ErrorContains(t, behind, "no leader")
	fake.refuse = nil
	turn := func() time.Duration {
		again, err := b.north.Resume(t.Context())
		require.NoError(t, err)
		return again
	}
	require.Equal(t, 20*time.Millisecond, turn(), "4 MiB")
	require.Equal(t, []geo.Service{geo.Queue, geo.Blob}, fake.begun)
	require.Equal(t, 20*time.Millisecond, turn(), "8 MiB")
	fake.refuse = errors.New("no leader")
	_, err = b.north.Resume(t.Context())
	require.ErrorContains(t, err, "no leader")
	fake.refuse = nil
	require.Equal(t, 20*time.Millisecond, turn(), "the range again")
	require.Equal(t, 20*time.Millisecond, turn())
	require.Equal(t, 10*time.Millisecond, turn())
	require.Equal(t, []geo.Service{geo.Queue, geo.Blob, geo.Table, geo.Catalog}, fake.begun)
	require.EqualValues(t, 2, fake.counted[geo.Catalog].Rows, "the account, and its highest epoch")
	delete(fake.counted, geo.Catalog)
	require.Equal(t, map[geo.Service]change.ImageSize{
		geo.Queue: {}, geo.Blob: {Rows: 1, Bytes: 7, Payload: 3}, geo.Table: {Rows: 9, Bytes: 9 << 20, Payload: 27},
	}, fake.counted)

	require.Equal(t, 20*time.Millisecond, turn(), "half a count")
	insert("acct", geo.Blob, 2, 7)
	_, _, err = b.north.Rebuild(t.Context(), "acct", nil)
	require.NoError(t, err)
	for len(fake.begun) < 10 {
		turn()
	}
	require.EqualValues(t, 2, fake.counted[geo.Blob].Rows)
	require.EqualValues(t, 9, fake.counted[geo.Table].Rows)
}
