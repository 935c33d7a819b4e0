package blobs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/services"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/extent"
)

func snapshot() *SnapshotBlob { return &SnapshotBlob{Command: Command{Name: testName("a")}} }

func remove(with WithSnapshots) *DeleteBlob {
	return &DeleteBlob{Command: Command{Name: testName("a")}, Snapshots: with}
}

func removeSnapshot(at geo.Timestamp) *DeleteSnapshot {
	return &DeleteSnapshot{Command: Command{Name: testName("a")}, Snapshot: at}
}

// A snapshot is the blob as it was: content, metadata, properties; it has no lease, and the blob keeps its ETag and its lease.
// Metadata that is given replaces the blob's in the snapshot, which then has an ETag that is its alone.
//
// Capability: Blobs: Snapshots.
func TestSnapshot(t *testing.T) {
	id := lease.ID{1}
	r := &scanned{state: state{}}
	require.ErrorIs(t, r.commit(t, snapshot(), 1), storageerr.BlobNotFound)
	w := put("a", "one")
	w.Blob.Metadata, w.Blob.Properties.ContentType = []Pair{{Name: "k", Value: "v"}}, "a/b"
	require.NoError(t, r.commit(t, w, 2))
	require.NoError(t, r.commit(t, acquire(id, 0), 3))

	plain, named := snapshot(), snapshot()
	require.NoError(t, r.commit(t, plain, 4), "the lease is asked for where a request names one alone")
	named.Metadata = []Pair{{Name: "other"}}
	named.Lease = &id
	require.NoError(t, r.commit(t, named, 5))
	foreign := snapshot()
	foreign.Lease = &lease.ID{2}
	require.ErrorIs(t, r.commit(t, foreign, 6), storageerr.LeaseMismatchOnBlob)
	require.Equal(t, []geo.Timestamp{4, 2, 5, 5}, []geo.Timestamp{plain.Snapshot, plain.Modified, named.Snapshot, named.Modified})

	over := put("a", "two")
	over.Lease = &id
	require.NoError(t, r.commit(t, over, 7))
	b, err := GetBlob(r, testName("a"))
	require.NoError(t, err)
	require.Equal(t, Snapshots{First: 4, Last: 5, Count: 2}, b.Snapshots)
	require.Equal(t, id, b.Lease.ID)
	for _, want := range []struct {
		at, modified geo.Timestamp
		metadata     []Pair
	}{{4, 2, w.Blob.Metadata}, {5, 5, named.Metadata}} {
		s, err := GetSnapshot(r, testName("a"), want.at)
		require.NoError(t, err)
		require.Equal(t, "one", string(s.Inline))
		require.Equal(t, want.modified, s.Modified)
		require.Equal(t, geo.Timestamp(2), s.Created)
		require.Equal(t, want.metadata, s.Metadata)
		require.Equal(t, "a/b", s.Properties.ContentType)
		require.Equal(t, lease.Lease{}, s.Lease)
	}
	for _, at := range []geo.Timestamp{0, 2, 3, 6, 7} {
		_, err := GetSnapshot(r, testName("a"), at)
		require.ErrorIs(t, err, storageerr.BlobNotFound, at)
	}
}

// A blob with snapshots goes with them alone, all of them by a change that does not grow with their number; one of them goes
// by itself, under conditions that are its, and the last one leaves the blob as one without snapshots.
//
// Capability: Blobs: Snapshots.
func TestDeleteSnapshots(t *testing.T) {
	for with, want := range map[WithSnapshots]error{SnapshotsRefuse: storageerr.SnapshotsPresent, SnapshotsInclude: nil, SnapshotsOnly: nil} {
		r := &scanned{state: state{}}
		require.NoError(t, r.commit(t, put("a", "one"), 1))
		bare := r.state[string(testName("a").key())]
		for at := geo.Timestamp(2); at < 300; at++ {
			require.NoError(t, r.commit(t, snapshot(), at))
		}
		w := remove(with)
		effect, err := w.Evaluate(r, 300)
		require.ErrorIs(t, err, want)
		require.ErrorIs(t, r.commit(t, w, 300), want)
		if want != nil {
			require.Len(t, r.state, 299)
			continue
		}
		require.Len(t, effect.Ops, 1)
		require.True(t, w.Left)
		_, err = GetSnapshot(r, testName("a"), 17)
		require.ErrorIs(t, err, storageerr.BlobNotFound)
		_, err = GetBlob(r, testName("a"))
		require.Equal(t, with == SnapshotsOnly, err == nil)
		if with == SnapshotsInclude {
			require.NoError(t, r.commit(t, put("a", "other"), 301))
		}
		_, err = GetSnapshot(r, testName("a"), 17)
		require.ErrorIs(t, err, storageerr.BlobNotFound, "those of before do not come back")
		require.NoError(t, r.commit(t, snapshot(), 302))
		sweep(t, r, 303, 50*deadWork)
		require.Len(t, r.state, 2)
		_, err = GetSnapshot(r, testName("a"), 302)
		require.NoError(t, err)
		require.NoError(t, r.commit(t, removeSnapshot(302), 304))
		if with == SnapshotsOnly {
			require.Equal(t, bare, r.state[string(testName("a").key())])
		}
	}

	r := &scanned{state: state{}}
	require.NoError(t, r.commit(t, put("a", "one"), 1))
	before := maps.Clone(r.state)
	require.ErrorIs(t, r.commit(t, removeSnapshot(2), 2), storageerr.BlobNotFound)
	require.NoError(t, r.commit(t, snapshot(), 2))
	require.NoError(t, r.commit(t, snapshot(), 3))
	require.NoError(t, r.commit(t, acquire(lease.ID{1}, 15), 3))
	w := removeSnapshot(2)
	w.Conditions = &asked{answer: storageerr.ConditionNotMet}
	require.ErrorIs(t, r.commit(t, w, 4), storageerr.ConditionNotMet)
	require.NoError(t, r.commit(t, removeSnapshot(2), 4), "the lease is the blob's")
	require.ErrorIs(t, r.commit(t, removeSnapshot(2), 4), storageerr.BlobNotFound)
	require.NoError(t, r.commit(t, removeSnapshot(3), 4))
	release := acquire(lease.ID{1}, 0)
	release.Request.Action = lease.Release
	require.NoError(t, r.commit(t, release, 5))
	require.Equal(t, before, r.state)
}

// A snapshot names the chunks of its blob, so that they stay, and its change names none: they are there. So R9 and R3.
func TestR9SnapshotNamesChunks(t *testing.T) {
	r := &scanned{state: state{}}
	w := put("a", "")
	w.Blob.Chunks = []extent.Ref{{ID: extent.ChunkID{7}, Length: 9}}
	w.Blob.Length = 9
	require.NoError(t, r.commit(t, w, 1))
	effect, err := snapshot().Evaluate(r, 2)
	require.NoError(t, err)
	require.Empty(t, effect.Chunks)
	require.NoError(t, r.commit(t, snapshot(), 2))
	require.NoError(t, r.commit(t, put("a", "two"), 3))
	refs, err := RowChunks(testName("a").keyOf(snapshotRow(2, 2)), r.state[string(testName("a").keyOf(snapshotRow(2, 2)))])
	require.NoError(t, err)
	require.Equal(t, w.Blob.Chunks, refs)
}

// kept is a state of a blob in TestR9SnapshotsModel: blocks by identity, since a row is kept once whatever names it.
type kept struct {
	text   string
	listed bool
	blocks map[string]*string // by id
	list   *int               // the identity of its list
}

// Each snapshot keeps its content to its end, whatever is staged, committed, put, copied, snapshotted, deleted and
// dropped, also later than it was found dead. Once the dead rows are dropped, no row is kept that nothing names.
func TestR9SnapshotsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &scanned{state: state{}}
		base, staged, snaps := (*kept)(nil), map[string]*string{}, map[geo.Timestamp]*kept{}
		ids := rapid.SampledFrom([]string{"i1", "i2", "i3", "i4"})
		var found [][]byte // dead, and not dropped yet
		under := &underway{}
		at := geo.Timestamp(100)
		left := false // Some write left dead rows.
		commit := func(w services.Write, want error) {
			require.ErrorIs(rt, r.commit(t, w, at), want)
			left = left || leftDead(w)
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			at += 2
			var missing error
			if base == nil {
				missing = storageerr.BlobNotFound
			}
			switch rapid.IntRange(0, 16).Draw(rt, "step") {
			case 0, 1, 2:
				i, body := ids.Draw(rt, "id"), rapid.StringMatching("[a-z]{1,3}").Draw(rt, "body")
				commit(stage(i, body), nil)
				staged[i] = &body
			case 3, 4, 5:
				w, next := named(Latest), &kept{listed: true, blocks: map[string]*string{}, list: new(int)}
				for _, i := range rapid.SliceOfNDistinct(ids, 0, 4, rapid.ID).Draw(rt, "ids") {
					b := staged[i]
					if b == nil && base != nil {
						b = base.blocks[i]
					}
					if b == nil {
						continue
					}
					w.Blocks = append(w.Blocks, Named{Latest, i})
					next.text += *b
					next.blocks[i] = b
				}
				commit(w, nil)
				if len(w.Blocks) == 0 {
					next.listed = false
				}
				base, staged, under.rows = next, map[string]*string{}, 0
			case 6:
				commit(put("a", "whole"), nil)
				base, staged, under.rows = &kept{text: "whole"}, map[string]*string{}, 0
			case 7, 8:
				commit(snapshot(), missing)
				if base != nil {
					snaps[at] = base
				}
			case 9:
				if len(snaps) > 0 {
					gone := rapid.SampledFrom(slices.Sorted(maps.Keys(snaps))).Draw(rt, "snapshot")
					commit(removeSnapshot(gone), nil)
					delete(snaps, gone)
				}
			case 10:
				with := rapid.SampledFrom([]WithSnapshots{SnapshotsRefuse, SnapshotsInclude, SnapshotsOnly}).Draw(rt, "with")
				switch {
				case base == nil:
					commit(remove(with), missing)
				case with == SnapshotsRefuse && len(snaps) > 0:
					commit(remove(with), storageerr.SnapshotsPresent)
				default:
					commit(remove(with), nil)
					clear(snaps)
					if with != SnapshotsOnly {
						base, staged, under.rows = nil, map[string]*string{}, 0
					}
				}
			case 11:
				rows, _, err := Dead(t.Context(), r, testName("a"), nil, work(rapid.IntRange(1, 30).Draw(rt, "work")*deadWork))
				require.NoError(rt, err)
				found = append(found, rows...)
			case 12:
				commit(&DropDead{Command: Command{Name: testName("a")}, Rows: found}, nil)
				found = nil
			case 13:
				sweep(t, r, at, rapid.IntRange(1, 30).Draw(rt, "work")*deadWork)
				left = false
			case 14:
				under.begin(rt, r, base, snaps)
			case 15:
				if s := under.stage(); s != nil {
					if s.Session == 0 || under.rows > 0 {
						commit(s, nil)
						under.staged(s)
					} else {
						commit(s, ErrOvertaken)
						under.w = nil
					}
				}
			case 16:
				if w := under.w; w != nil && w.session != 0 && under.rows == 0 {
					commit(w, ErrOvertaken)
				} else if w != nil {
					commit(w, nil)
					base, staged, under.rows = under.next, map[string]*string{}, 0
				}
				under.w = nil
			}
			if rows, _, err := Dead(t.Context(), r, testName("a"), nil, work(1<<20)); !left {
				require.NoError(rt, err)
				require.Empty(rt, rows, "dead rows that no write spoke of")
			}
			requireKept(rt, r, base, snaps)
		}
		sweep(t, r, at, 3*deadWork)
		requireKept(rt, r, base, snaps)
		rows := map[any]bool{}
		for _, k := range append(slices.Collect(maps.Values(snaps)), base) {
			if k == nil || !k.listed {
				continue
			}
			rows[k.list] = true
			for _, b := range k.blocks {
				rows[b] = true
			}
		}
		want := len(rows) + len(snaps) + len(staged)
		if base != nil {
			want++
		}
		if len(staged) > 0 || under.rows > 0 {
			want++
		}
		want += under.rows
		require.Len(rt, r.state, want, "dead rows stay, or others went")
	})
}

func requireKept(t require.TestingT, r *scanned, base *kept, snaps map[geo.Timestamp]*kept) {
	b, err := GetBlob(r, testName("a"))
	if base == nil {
		require.ErrorIs(t, err, storageerr.BlobNotFound)
		return
	}
	require.NoError(t, err)
	require.Equal(t, base.text, textOf(t, r, &b))
	require.Equal(t, len(snaps), int(b.Snapshots.Count))
	for at, k := range snaps {
		s, err := GetSnapshot(r, testName("a"), at)
		require.NoError(t, err)
		require.Equal(t, k.text, textOf(t, r, &s), "snapshot %d", at)
	}
	var want []string
	for _, at := range slices.Sorted(maps.Keys(snaps)) {
		want = append(want, fmt.Sprintf("a@%d", at))
	}
	l := listing()
	l.Snapshots = true
	require.Equal(t, strings.Join(append(want, "a"), " "), strings.Join(listAll(t, r, l, 2), " "))
}

func leftDead(w services.Write) bool {
	switch w := w.(type) {
	case *PutBlob:
		return w.Left
	case *PutBlock:
		return w.Left
	case *PutBlockList:
		return w.Left
	case *DeleteBlob:
		return w.Left
	case *DeleteSnapshot:
		return w.Left
	case *StageCopy:
		return w.Left
	case *CopyBlob:
		return w.Left
	}
	return false
}

// A row of a snapshot that is there is not dropped.
func TestDropDeadRefusesSnapshots(t *testing.T) {
	r := &scanned{state: state{}}
	require.NoError(t, r.commit(t, put("a", "one"), 1))
	require.NoError(t, r.commit(t, snapshot(), 2))
	drop := &DropDead{Command: Command{Name: testName("a")}, Rows: [][]byte{snapshotRow(2, 2)}}
	require.ErrorIs(t, r.commit(t, drop, 3), ErrMalformed)
	require.NoError(t, r.commit(t, remove(SnapshotsInclude), 4))
	require.NoError(t, r.commit(t, drop, 5))
	require.Empty(t, r.state)
}

// A list that a snapshot might have had, which was deleted, is dropped behind the write that replaces it.
func TestListOfDeletedSnapshot(t *testing.T) {
	for left, over := range map[int]services.Write{1: put("a", "whole"), 3: named(Committed, "i1")} {
		r := &scanned{state: state{}}
		require.NoError(t, r.commit(t, stage("i1", "one"), 1))
		require.NoError(t, r.commit(t, named(Uncommitted, "i1"), 2))
		for at := range geo.Timestamp(2) {
			require.NoError(t, r.commit(t, snapshot(), 3+at))
		}
		require.NoError(t, r.commit(t, removeSnapshot(4), 5))
		require.NoError(t, r.commit(t, over, 6))
		require.True(t, leftDead(over), "%T", over)
		require.NoError(t, r.commit(t, removeSnapshot(3), 7))
		sweep(t, r, 8, 50*deadWork)
		require.Len(t, r.state, left, "%T", over)
	}
}
