package primary

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

// R17: a row that cannot be decoded is named by the count and by the step of an image that come to it: neither goes on
// behind it, since the copy would lack it.
//
// Capability: Two locations: The copy of an account is made while clients write, from LRS, and again (R17).
func TestR17UndecodableRowIsNamed(t *testing.T) {
	t.Parallel()
	stamp, blob := stamptest.New(t, "north", geo.Blob), route.First().Service(geo.Blob)[0]
	p, epoch := New(stamp), geo.Epoch{Number: 2, Location: "north"}
	of := keys.Partition{Service: geo.Blob, Account: "acct", Container: "c", Object: "photo.png", Generation: keys.Generation{Epoch: 1, Created: 5}}
	stamptest.Submit(t, stamp, geo.FirstRange(geo.Blob), stamptest.Change{Partition: of, Record: change.Record{
		Partition: of.Append(nil), Ops: []change.Op{{Row: []byte{1}, Value: []byte("no blob")}},
	}})
	stamptest.Submit(t, stamp, geo.FirstRange(geo.Blob), stamptest.Gate{Account: "acct", Gate: change.Gate{
		Epoch: epoch, Role: change.RolePrimary, Open: true, Numbered: true,
	}})
	_, _, err := p.CountRows(t.Context(), blob, "acct", nil)
	require.ErrorContains(t, err, `row 01 of container "c", object "photo.png": `)
	require.NoError(t, p.BeginImage(t.Context(), blob, "acct", epoch, change.ImageSize{}))
	step, err := p.StepImage(t.Context(), blob, "acct", epoch, 0)
	require.ErrorContains(t, err, `row 01 of container "c", object "photo.png": `)
	require.Nil(t, step.Image.Done)
}

// R17: rows are counted in steps as short as those of an image, each row once, at the leader of the range, and those of
// other accounts are not. A count changes nothing, and crosses between nodes as it is.
//
// Capability: Two locations: The copy of an account is made while clients write, from LRS, and again (R17).
func TestR17CountIsBounded(t *testing.T) {
	t.Parallel()
	w := newImaged(t)
	for n := range 3 {
		for r := range 100 {
			w.set(w.partition("t", n), "value", r)
		}
	}
	p := w.partition("t", 1)
	p.Account = "acctt"
	w.set(p, "of another account", 1)
	before := w.rows()
	var rows []uint64
	var sum change.ImageSize
	for from := []byte(nil); len(rows) == 0 || from != nil; {
		sent, err := parseCount((&count{body: countBody{Account: "acct", Service: geo.Table, From: from}}).Encode())
		require.NoError(t, err)
		require.NoError(t, w.stamp.Submit(t.Context(), geo.FirstRange(geo.Table), sent))
		here := &count{}
		require.NoError(t, here.DecodeResult(sent.EncodeResult()))
		size, next, err := w.primary.CountRows(t.Context(), tableRange, "acct", from)
		require.NoError(t, err)
		require.Equal(t, countOut{size, next}, here.out)
		rows, sum, from = append(rows, size.Rows), sum.Add(size), next
	}
	require.Equal(t, []uint64{256, 44}, rows)
	require.Greater(t, sum.Bytes, uint64(300*len("value")))
	require.Equal(t, before, w.rows())
	for _, bad := range []string{"", "1", `{"Account":"A"}`} {
		_, err := parseCount([]byte(bad))
		require.ErrorIs(t, err, errCount)
	}
	require.ErrorIs(t, (&count{}).DecodeResult([]byte("x")), errCount)
}
