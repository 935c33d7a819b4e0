package directory_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// rewinds is a rewind of the table range of which the tests see the pages.
type rewinds struct {
	*apart
	fake images
	// pages are the sizes of the pages that were numbered; fails is the page that fails, once.
	pages []int
	fails int
	// applied: the other location has applied what was numbered.
	applied bool
	// rowBytes is the payload of each row; keys are the rows that were numbered.
	rowBytes uint64
	keys     []string
}

func newRewinds(t *testing.T, changes int) *rewinds {
	r := &rewinds{apart: newApart(t), applied: true, fails: -1}
	r.fake.next = func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{Applied: r.applied} }
	r.fake.rewind = func(_ geo.Service, rows [][]byte, bytesMax uint64) (done int, bytes uint64, err error) {
		if len(rows) == 0 {
			return 0, 0, nil
		}
		if len(r.pages) == r.fails {
			r.fails = -1
			return 0, 0, kv.ErrBusy
		}
		for ; done < len(rows) && (bytesMax == 0 || bytes < bytesMax); done++ {
			r.keys = append(r.keys, string(rows[done]))
			bytes += r.rowBytes
		}
		r.pages = append(r.pages, done)
		return done, bytes, nil
	}
	var many []string
	for i := range 1500 {
		many = append(many, fmt.Sprintf("row%04d", i))
	}
	for i := range changes {
		r.write(t, fmt.Sprint(i), many...)
	}
	r.promoted(t, true)
	r.follows(t)
	r.process()
	return r
}

// process begins a new process at the south.
func (r *rewinds) process() {
	r.restart()
	r.pair.south.SetImages(&r.fake)
}

func (r *rewinds) numbered() (rows int) {
	for _, n := range r.pages {
		rows += n
	}
	return rows
}

// R22: a rewind goes in pages whose position is durable. After an error, a commit whose outcome is not known, and a crash
// between two pages it goes on where it was, in a new process too. No page is numbered while the other location has not
// applied those of the turn before. In the end each row was numbered, and no page twice but one whose position was not
// committed.
//
// Capability: Failover: A former primary is rewound (R22).
func TestR22RewindGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	r := newRewinds(t, 8) // 12,000 rows: three turns.
	r.fails = 3
	var err error
	for i := 0; r.fails >= 0; i++ {
		require.Less(t, i, 20)
		err = r.resumed(t, 1)
	}
	require.ErrorIs(t, err, kv.ErrBusy)
	require.Len(t, r.pages, 3)
	op := r.at(t).Operation
	require.True(t, op.Joined)
	require.NotEmpty(t, op.RewoundTo)

	r.process()
	r.applied = false
	require.NoError(t, r.resumed(t, 5))
	require.Len(t, r.pages, 3, "the other location has not applied them")

	r.applied = true
	require.NoError(t, r.resumed(t, 1))
	require.Len(t, r.pages, 3+8, "a turn")
	require.NotEqual(t, op.RewoundTo, r.at(t).Operation.RewoundTo)

	at := *r.at(t).Operation
	r.south.in = 1 // The pages are numbered, and the range knows; the position is not committed.
	require.Error(t, r.resumed(t, 1))
	require.Equal(t, at, *r.at(t).Operation)
	twice := r.numbered()
	require.Len(t, r.pages, 3+8+8)
	r.process()
	for i := 0; r.at(t).Operation != nil; i++ {
		require.Less(t, i, 20)
		require.NoError(t, r.resumed(t, 1))
	}
	again := 0
	for _, n := range r.pages[11:19] {
		again += n
	}
	require.Equal(t, 12000+again, r.numbered())
	require.Less(t, twice, r.numbered())
}

// R22: where nothing fails each row of a range is numbered once.
func TestR22RewindNumbersEachRowOnce(t *testing.T) {
	t.Parallel()
	r := newRewinds(t, 4)
	for i := 0; r.at(t).Operation != nil; i++ {
		require.Less(t, i, 20)
		require.NoError(t, r.resumed(t, 1))
	}
	require.Equal(t, 6000, r.numbered())
	require.Equal(t, catalog.RAGRS, r.at(t).Redundancy)
}

// R22: a turn numbers some 16 MiB, however large the payload of the rows of a page is, and the next one goes on with the row
// behind, in a new process too. A location of a former version does not say where that is: its pages are numbered whole.
func TestR22RewindIsBoundedByPayload(t *testing.T) {
	t.Parallel()
	for _, former := range []bool{false, true} {
		r := newRewinds(t, 1)
		r.rowBytes = 1 << 20
		for i := 0; r.at(t).Operation != nil; i++ {
			require.Less(t, i, 300)
			r.process()
			if former {
				r.pair.south.SetPeer(formerPeer{linked{r.pair, r.north}})
			}
			before := r.numbered()
			require.NoError(t, r.resumed(t, 1))
			if !former {
				require.LessOrEqual(t, r.numbered()-before, 16)
			}
		}
		require.Len(t, r.keys, 1500)
		require.True(t, slices.IsSorted(r.keys), "each row once, in the sequence of the change")
		require.Len(t, slices.Compact(r.keys), 1500)
		require.Equal(t, former, slices.Max(r.pages) > 16)
	}
}

// formerPeer is a location of a version that does not say of which changes the rows of a page are.
type formerPeer struct{ directory.Peer }

// LostRows implements directory.Peer.
func (p formerPeer) LostRows(ctx context.Context, a catalog.Account, id geo.RangeID, from rejoin.LostRow) (rejoin.LostRows, error) {
	out, err := p.Peer.LostRows(ctx, a, id, from)
	out.Changes = nil
	return out, err
}

// R22: a rewind does not end before the other location has applied the rows of all ranges: until then its copy is a part. The
// record says then from which time on the copy is whole (R4).
func TestR22RewindWaitsForItsLastRows(t *testing.T) {
	t.Parallel()
	r := newRewinds(t, 1)
	r.applied = false
	for range 10 {
		require.NoError(t, r.resumed(t, 1))
	}
	require.Equal(t, 1500, r.numbered())
	require.NotNil(t, r.at(t).Operation)
	require.True(t, r.at(t).Unsure())
	require.Zero(t, r.at(t).Copied)

	r.applied = true
	for i := 0; r.at(t).Operation != nil; i++ {
		require.Less(t, i, 20)
		require.NoError(t, r.resumed(t, 1))
	}
	require.Equal(t, 1500, r.numbered())
	require.Greater(t, r.at(t).Copied, r.at(t).LastFailover)
}
