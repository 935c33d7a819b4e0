package dns

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/services/catalog"
)

// The record with the higher epoch wins. Within an epoch the record of the epoch's own location
// wins (table).
func TestMerge(t *testing.T) {
	first := in("pictures", 3, north, catalog.RAGRS)
	grs := in("pictures", 3, north, catalog.GRS)
	for _, c := range []struct {
		name     string
		from     geo.Location
		next     Entry
		replaced bool
	}{
		{"higher epoch from the new primary", south, in("pictures", 4, south, catalog.RAGRS), true},
		{"higher epoch from the former primary", north, in("pictures", 4, south, catalog.RAGRS), true},
		{"equal number, higher location", north, in("pictures", 3, south, catalog.RAGRS), true},
		{"lower epoch", south, in("pictures", 2, south, catalog.RAGRS), false},
		{"redundancy changed at the primary", north, grs, true},
		{"an older redundancy at the secondary", south, grs, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := openView(t, vfs.NewMem())
			require.NoError(t, v.Merge(north, []Entry{first}))
			require.NoError(t, v.Merge(c.from, []Entry{c.next}))
			got, found := v.Lookup("pictures")
			require.True(t, found)
			require.Equal(t, c.replaced, got != first, "%+v", got)
		})
	}
	// The secondary's record counts until the primary's comes.
	v := openView(t, vfs.NewMem())
	require.NoError(t, v.Merge(south, []Entry{first}))
	require.NoError(t, v.Merge(south, []Entry{grs}))
	got, _ := v.Lookup("pictures")
	require.Equal(t, grs, got)
	require.NoError(t, v.Merge(north, []Entry{first}))
	require.NoError(t, v.Merge(south, []Entry{grs}))
	got, _ = v.Lookup("pictures")
	require.Equal(t, first, got)
}

// Entries that no catalog can have are left out, and the others are taken.
func TestMergeLeavesOut(t *testing.T) {
	v := openView(t, vfs.NewMem())
	require.ErrorIs(t, v.Merge(north, []Entry{{Account: "x"}, in("mail", 1, south, catalog.GRS)}), ErrEntry)
	require.Equal(t, 1, v.Len())
}

// A view takes so many accounts and no more; those that are there go on to change.
func TestViewIsBounded(t *testing.T) {
	v := openView(t, vfs.NewMem())
	var list []Entry
	for i := range entriesMax {
		list = append(list, in(geo.Account(fmt.Sprintf("acct%d", i)), 1, north, catalog.GRS))
	}
	require.NoError(t, v.Merge(north, list))
	require.ErrorIs(t, v.Merge(north, []Entry{in("another", 1, north, catalog.GRS), in("acct7", 2, south, catalog.GRS)}), ErrFull)
	require.Equal(t, entriesMax, v.Len())
	e, _ := v.Lookup("acct7")
	require.Equal(t, geo.EpochNumber(2), e.Epoch.Number)
}

// The epoch in the answers for a name never goes back, and the highest one that was seen is there at the end.
// The stamps answer in any sequence, with old answers among them, crashes, and a disk that fails.
func TestViewNeverGoesBack(t *testing.T) {
	names := []geo.Account{"abc", "mail", "pictures"}
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewCrashableMem()
		v := openView(t, fs)
		answered, seen := map[geo.Account]geo.Epoch{}, map[geo.Account]geo.Epoch{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "what") == 0 {
				// The process is killed, and both stamps are away: the view is what the disk has.
				fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rapid.IntRange(0, 100).Draw(t, "kept"), RNG: rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "rng")))})
				v = openView(t, fs)
			} else {
				from := rapid.SampledFrom([]geo.Location{north, south}).Draw(t, "from")
				var list []Entry
				for range rapid.IntRange(1, 4).Draw(t, "rows") {
					e := in(rapid.SampledFrom(names).Draw(t, "name"), geo.EpochNumber(rapid.IntRange(1, 6).Draw(t, "epoch")),
						rapid.SampledFrom([]geo.Location{north, south}).Draw(t, "primary"),
						rapid.SampledFrom([]catalog.Redundancy{catalog.LRS, catalog.GRS, catalog.RAGRS}).Draw(t, "redundancy"))
					list = append(list, e)
					if e.Epoch.Compare(seen[e.Account]) > 0 {
						seen[e.Account] = e.Epoch
					}
				}
				require.NoError(t, v.Merge(from, list))
			}
			serial := uint32(0)
			for _, name := range names {
				e, _ := v.Lookup(name)
				require.GreaterOrEqual(t, e.Epoch.Compare(answered[name]), 0, "%s went back from %s to %s", name, answered[name], e.Epoch)
				require.Equal(t, seen[name], e.Epoch, name)
				answered[name] = e.Epoch
				serial += uint32(e.Epoch.Number)
			}
			require.Equal(t, serial, v.Serial())
		}
	})
}

// While the disk fails the newer entry is answered, the failure is reported, and the file follows once the disk
// works, without another change.
func TestDiskFails(t *testing.T) {
	mem, fail := vfs.NewMem(), false
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fail && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errors.New("no space")
		}
		return nil
	}))
	v := openView(t, fs)
	require.NoError(t, v.Merge(north, []Entry{in("mail", 1, north, catalog.GRS)}))
	fail = true
	require.ErrorIs(t, v.Merge(south, []Entry{in("mail", 2, south, catalog.GRS)}), ErrUnsaved)
	e, _ := v.Lookup("mail")
	require.Equal(t, south, e.Epoch.Location)
	e, _ = openView(t, mem).Lookup("mail")
	require.Equal(t, north, e.Epoch.Location, "it was written")
	require.ErrorIs(t, v.Merge(south, nil), ErrUnsaved)
	fail = false
	require.NoError(t, v.Merge(south, nil))
	e, _ = openView(t, mem).Lookup("mail")
	require.Equal(t, south, e.Epoch.Location)
}

// A watch has each account once, however often it changed, and all accounts at its beginning.
func TestWatch(t *testing.T) {
	v := filled(t)
	w := v.Watch()
	require.Equal(t, []geo.Account{"alone", "mail", "pictures"}, w.take(10))
	require.Empty(t, w.take(10))
	<-w.changed
	for n := range geo.EpochNumber(3) {
		require.NoError(t, v.Merge(south, []Entry{in("mail", 2+n, south, catalog.GRS)}))
	}
	<-w.changed
	require.Equal(t, []geo.Account{"mail"}, w.take(10))
	v.again(w)
	require.Equal(t, 3, w.len())
	require.Len(t, w.take(2), 2)
	require.Equal(t, 1, w.len())
	require.NotContains(t, slices.Collect(maps.Keys(v.entries)), geo.Account(""))
}
