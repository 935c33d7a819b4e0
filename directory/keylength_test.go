package directory_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// A key that could be guessed is refused where a person names the account that is to be there, either of the two. An account
// that has such a key since an earlier version goes on with it.
func TestKeysThatCouldBeGuessed(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	short, long := bytes.Repeat([]byte{1}, 15), bytes.Repeat([]byte{2}, 16)
	want := func(key1, key2 []byte) directory.Wanted {
		return directory.Wanted{Name: "acct", Redundancy: catalog.LRS, Key1: key1, Key2: key2}
	}
	for _, w := range []directory.Wanted{want(short, nil), want(nil, short), want(long, short[:1])} {
		_, err := b.north.EnsureAs(t.Context(), w, nil)
		row, _ := storageerr.Of(err)
		require.Equal(t, storageerr.InvalidInput.Code, row.Code)
		require.ErrorContains(t, err, "16 at least")
	}
	_, err := b.north.EnsureAs(t.Context(), want(long, nil), nil)
	require.NoError(t, err)

	require.NoError(t, b.stamps["north"].Submit(t.Context(), geo.FirstRange(geo.Catalog), evaluated(func(tx *ranges.Tx) error {
		a, err := catalog.GetAccount(tx, "acct")
		if err != nil {
			return err
		}
		a.Key1 = short
		v, err := a.Encode()
		if err != nil {
			return err
		}
		p := catalog.AccountPartition("acct")
		return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Value: v}}})
	})))
	a, err := b.north.EnsureAs(t.Context(), want(short, nil), nil)
	require.NoError(t, err)
	require.Equal(t, short, a.Key1)
}
