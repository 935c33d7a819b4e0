package blobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/feature"
)

func setTier(to Tier) *SetTier {
	return &SetTier{Command: Command{Name: testName("a")}, Tier: to, Rehydration: time.Hour}
}

// tierIs is a blob of a tier, of one that is rehydrated to it if thaws.
func tierIs(t *testing.T, tier Tier, thaws bool) *scanned {
	s := &scanned{state: state{}}
	w := put("a", "x")
	if w.Blob.Tier = tier; thaws {
		w.Blob.Tier = TierArchive
	}
	require.NoError(t, s.commit(t, w, second))
	if thaws {
		require.NoError(t, s.commit(t, setTier(tier), 2*second))
	}
	return s
}

const (
	hour = 3600 * second
	met  = "200"
)

// Every cell of the table of protocol/blob.md B28; and what no cell changes: content, ETag, Last-Modified.
func TestSetTierTable(t *testing.T) {
	tiers := []Tier{TierHot, TierCool, TierCold, TierArchive}
	const rehydrates, refused = "202", "409"
	for _, row := range []struct {
		from  Tier
		thaws bool
		cells [4]string
	}{
		{TierDefault, false, [4]string{met, met, met, met}},
		{TierHot, false, [4]string{met, met, met, met}},
		{TierCool, false, [4]string{met, met, met, met}},
		{TierCold, false, [4]string{met, met, met, met}},
		{TierArchive, false, [4]string{rehydrates, rehydrates, rehydrates, met}},
		{TierHot, true, [4]string{rehydrates, refused, refused, refused}},
		{TierCool, true, [4]string{refused, rehydrates, refused, refused}},
		{TierCold, true, [4]string{refused, refused, rehydrates, refused}},
	} {
		for i, to := range tiers {
			s := tierIs(t, row.from, row.thaws)
			before, err := GetBlob(s, testName("a"))
			require.NoError(t, err)
			w := setTier(to)
			err = s.commit(t, w, 3*second)
			b, found := GetBlob(s, testName("a"))
			require.NoError(t, found)
			at := []any{"from %d, rehydrating %v, to %d", row.from, row.thaws, to}
			switch row.cells[i] {
			case refused:
				require.ErrorIs(t, err, storageerr.BlobBeingRehydrated, at...)
				require.Equal(t, before, b, at...)
				continue
			case met:
				require.NoError(t, err, at...)
				require.False(t, w.Accepted, at...)
				require.Equal(t, to, b.Tier, at...)
				require.Equal(t, Tiering{Changed: 3 * second}, b.Tiering, at...)
			default:
				require.NoError(t, err, at...)
				require.True(t, w.Accepted, at...)
				require.Equal(t, TierArchive, b.Tier, at...)
				ends := 3*second + hour
				if row.thaws {
					ends = 2*second + hour // Asked for again it ends no later.
				}
				require.Equal(t, Tiering{Changed: 3 * second, To: to, Until: ends}, b.Tiering, at...)
				require.ErrorIs(t, b.Online(), storageerr.BlobBeingRehydrated, at...)
			}
			b.Tier, b.Tiering = before.Tier, before.Tiering
			require.Equal(t, before, b, at...)
		}
	}
	require.ErrorIs(t, state{}.commit(t, setTier(TierHot), second), storageerr.BlobNotFound)
}

// A rehydration is over by the clock, and nothing is written then: the next write finds the new tier. A priority is raised and
// not lowered.
func TestRehydrationEndsByTheClock(t *testing.T) {
	s := tierIs(t, TierCool, true)
	high := setTier(TierCool)
	high.High = true
	require.NoError(t, s.commit(t, high, 3*second))
	require.NoError(t, s.commit(t, setTier(TierCool), 4*second))
	b, err := GetBlob(s, testName("a"))
	require.NoError(t, err)
	require.True(t, b.Tiering.High)
	ends := 2*second + hour
	early, over := b, b
	early.SettleTier(ends - 1)
	require.Equal(t, b, early)
	over.SettleTier(ends)
	require.Equal(t, TierCool, over.Tier)
	require.NoError(t, over.Online())
	require.Equal(t, ends, over.TierChanged())

	change := func(at geo.Timestamp) error { return s.copied().commit(t, &SetMetadata{Command: high.Command}, at) }
	require.ErrorIs(t, change(ends-1), storageerr.BlobBeingRehydrated)
	require.NoError(t, change(ends))
	require.ErrorIs(t, s.copied().commit(t, setTier(TierHot), ends-1), storageerr.BlobBeingRehydrated)
	other := s.copied()
	archived := setTier(TierArchive)
	require.NoError(t, other.commit(t, archived, ends))
	require.False(t, archived.Accepted)
	require.NoError(t, s.commit(t, put("a", "y"), ends), "an overwrite keeps the tier that it got")
	b, err = GetBlob(s, testName("a"))
	require.NoError(t, err)
	require.Equal(t, TierCool, b.Tier)
	require.Zero(t, b.Tiering)
	require.Equal(t, ends, b.TierChanged())

	now := tierIs(t, TierArchive, false)
	w := setTier(TierHot)
	w.Rehydration = 0
	require.NoError(t, now.commit(t, w, 5*second))
	require.True(t, w.Accepted, "202, as from the real service")
	b, err = GetBlob(now, testName("a"))
	require.NoError(t, err)
	require.Equal(t, TierHot, b.Tier)
	require.Equal(t, Tiering{Changed: 5 * second}, b.Tiering)
}

// An archived blob allows its tags, its lease, its tier and its deletion to change, and nothing else; a tier that is chosen for
// the new content changes nothing.
func TestArchivedBlob(t *testing.T) {
	of := Command{Name: testName("a")}
	hot := put("a", "y")
	hot.Blob.Tier = TierHot
	refused := map[string]func() services.Write{
		"PutBlob":      func() services.Write { return put("a", "y") },
		"PutBlob, Hot": func() services.Write { return hot },
		"PutBlockList": func() services.Write { return &PutBlockList{Command: of} },
		"PutBlock": func() services.Write {
			return &PutBlock{Command: of, ID: "aa", Block: Block{Length: 1, Inline: []byte("z")}}
		},
		"SetMetadata":   func() services.Write { return &SetMetadata{Command: of} },
		"SetProperties": func() services.Write { return &SetProperties{Command: of} },
	}
	for thaws, want := range map[bool]storageerr.Row{false: storageerr.BlobArchived, true: storageerr.BlobBeingRehydrated} {
		tier := TierArchive
		if thaws {
			tier = TierHot
		}
		s := tierIs(t, tier, thaws)
		for name, write := range refused {
			require.ErrorIs(t, s.commit(t, write(), 3*second), want, "%s %v", name, thaws)
		}
		require.ErrorIs(t, (&PutBlob{Command: of}).Admit(s, 3*second), want)
		require.ErrorIs(t, (&PutBlock{Command: of, ID: "aa"}).Admit(s, 3*second), want)
		require.NoError(t, s.commit(t, &SetTags{Command: of, Tags: []Pair{{Name: "k"}}}, 3*second))
		require.NoError(t, s.commit(t, acquire([16]byte{1}, 15), 4*second))
		b, err := GetBlob(s, testName("a"))
		require.NoError(t, err)
		require.ErrorIs(t, b.Online(), want)
		require.NotZero(t, b.Lease)
		require.Len(t, b.Tags, 1)
		require.NoError(t, s.commit(t, &DeleteBlob{Command: of}, 5*second))
		require.Empty(t, s.state)
	}
}

// An append blob has no tier.
func TestTierOfAppendBlob(t *testing.T) {
	b := Blob{Modified: 1, Created: 1, Appended: &Appended{Session: 1}}
	e, err := b.effect()
	require.NoError(t, err)
	s := state{string(testName("a").key()): e.Ops[0].Value}
	w := setTier(TierCool)
	w.Conditions = &asked{answer: storageerr.ConditionNotMet}
	require.ErrorIs(t, s.commit(t, w, second), storageerr.InvalidBlobType)
}

// The change of a tier has a condition of its own kind at a deletion: of a blob that nobody chose a tier for it is that of the
// creation.
func TestDeleteByTierChange(t *testing.T) {
	for _, c := range []struct {
		tier   Tier
		set    bool
		change geo.Timestamp
	}{
		{TierDefault, false, second}, {TierCool, false, second}, {TierDefault, true, 3 * second}, {TierCool, true, 3 * second},
	} {
		s := tierIs(t, c.tier, false)
		require.NoError(t, s.commit(t, &SetMetadata{Command: Command{Name: testName("a")}}, 2*second))
		if c.set {
			require.NoError(t, s.commit(t, setTier(TierHot), 3*second))
		}
		of := &asked{answer: storageerr.ConditionNotMet}
		w := &DeleteBlob{Command: Command{Name: testName("a")}, Tier: of}
		require.ErrorIs(t, s.commit(t, w, 4*second), storageerr.ConditionNotMet)
		require.Equal(t, asked{exists: true, modified: c.change, answer: storageerr.ConditionNotMet}, *of)
		of.answer = nil
		require.NoError(t, s.commit(t, w, 4*second))
		require.Empty(t, s.state)
	}
}

// Before the feature level no program writes what the others cannot read: a tier is written with a blob as ever, all but Archive;
// a change of it, and tags, need the level.
func TestLevelOfTiersAndTags(t *testing.T) {
	level := func(s *scanned, w services.Write) feature.Level {
		w.(services.Timed).InTime(3 * second)
		e, err := w.Evaluate(s, 3*second)
		require.NoError(t, err)
		return max(e.Level, feature.Base)
	}
	s := &scanned{state: state{}}
	for tier := TierDefault; tier <= TierArchive; tier++ {
		w, want := put("a", "x"), feature.Base
		if w.Blob.Tier = tier; tier == TierArchive {
			want = feature.Blobs
		}
		require.Equal(t, want, level(s, w), "%d", tier)
	}
	tagged := put("a", "x")
	tagged.Blob.Tags = []Pair{{Name: "k"}}
	require.Equal(t, feature.Blobs, level(s, tagged))
	s = tierIs(t, TierCool, false)
	require.Equal(t, feature.Blobs, level(s, setTier(TierHot)))
	require.Equal(t, feature.Blobs, level(s, &SetTags{Command: tagged.Command, Tags: tagged.Blob.Tags}))
	require.Equal(t, feature.Base, level(s, &SetTags{Command: tagged.Command}))
}

// A snapshot has the tier and the tags of its time, and its own tier from then on; the blob has its. One of an archived blob is
// not made.
func TestTierOfSnapshot(t *testing.T) {
	s := tierIs(t, TierCool, false)
	of := Command{Name: testName("a")}
	require.NoError(t, s.commit(t, &SetTags{Command: of, Tags: []Pair{{Name: "k", Value: "1"}}}, 2*second))
	snap := &SnapshotBlob{Command: of}
	require.NoError(t, s.commit(t, snap, 3*second))
	require.NoError(t, s.commit(t, &SetTags{Command: of}, 4*second))
	blob, err := GetBlob(s, of.Name)
	require.NoError(t, err)
	kept, err := GetSnapshot(s, of.Name, snap.Snapshot)
	require.NoError(t, err)
	require.Equal(t, []Pair{{Name: "k", Value: "1"}}, kept.Tags)
	require.Equal(t, TierCool, kept.Tier)

	w := setTier(TierArchive)
	w.Snapshot = snap.Snapshot
	require.NoError(t, s.commit(t, w, 5*second))
	after, err := GetBlob(s, of.Name)
	require.NoError(t, err)
	require.Equal(t, blob, after)
	got, err := GetSnapshot(s, of.Name, snap.Snapshot)
	require.NoError(t, err)
	require.ErrorIs(t, got.Online(), storageerr.BlobArchived)
	got.Tier, got.Tiering = kept.Tier, kept.Tiering
	require.Equal(t, kept, got)
	w.Snapshot++
	require.ErrorIs(t, s.commit(t, w, 6*second), storageerr.BlobNotFound)
	gone := &DeleteSnapshot{Command: of, Snapshot: snap.Snapshot, Tier: &asked{answer: storageerr.ConditionNotMet}}
	require.ErrorIs(t, s.commit(t, gone, 7*second), storageerr.ConditionNotMet)
	require.Equal(t, 5*second, gone.Tier.(*asked).modified)

	require.NoError(t, s.commit(t, setTier(TierArchive), 8*second))
	require.ErrorIs(t, s.commit(t, &SnapshotBlob{Command: of}, 9*second), storageerr.BlobArchived)
	require.NoError(t, s.commit(t, setTier(TierHot), 9*second))
	require.ErrorIs(t, s.commit(t, &SnapshotBlob{Command: of}, 10*second), storageerr.BlobBeingRehydrated)
	again := &SnapshotBlob{Command: of}
	require.NoError(t, s.commit(t, again, 9*second+hour))
	thawed, err := GetSnapshot(s, of.Name, again.Snapshot)
	require.NoError(t, err)
	require.Equal(t, TierHot, thawed.Tier)
	require.NoError(t, thawed.Online())
}
