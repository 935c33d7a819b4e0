package directory_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/primary"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
)

// catalogs is an account whose former primary has other tables than the present one. What is numbered once more is copied
// at once, but that of the catalog when the south looks for the second time whether it is.
type catalogs struct {
	*apart
	t     *testing.T
	there *failing
	// sent counts the rows of tables that were numbered once more.
	sent map[string]int
	// queued are the rows of the catalog that are on their way; late: the south has looked once.
	queued [][]byte
	late   bool
}

func newCatalogs(t *testing.T, b *both, name geo.Account) *catalogs {
	k := &catalogs{apart: newApartOf(t, b, name), t: t, sent: map[string]int{}, there: &failing{Stamp: b.stamps["north"], in: -2}}
	k.process()
	return k
}

// rowsAtOnce is how many rows fill a turn of a rewind with their payload.
const rowsAtOnce = 3

// process begins new processes at both ends.
func (k *catalogs) process() {
	k.north = directory.NewDirectory(k.there, "south")
	k.north.SetPace(k.clock, 0)
	k.restart()
	k.pair.south.SetImages(&images{
		next: func(s geo.Service, _ int) ranges.ImageStep {
			return ranges.ImageStep{Applied: s != geo.Catalog || k.applies()}
		},
		rewind: func(s geo.Service, rows [][]byte, bytesMax uint64) (int, uint64, error) {
			took := uint64(1)
			if len(rows) > rowsAtOnce { // Their payload fills the turn: the next one goes on in the middle of a page.
				require.NotZero(k.t, bytesMax)
				rows, took = rows[:rowsAtOnce], bytesMax
			}
			if s == geo.Catalog {
				k.queued = append(k.queued, rows...)
				return len(rows), took, nil
			}
			for _, key := range rows {
				k.copies(s, key)
			}
			return len(rows), took, nil
		},
	})
}

// applies has the rows of the catalog arrive, from the second time on.
func (k *catalogs) applies() bool {
	if k.late = !k.late && len(k.queued) > 0; k.late {
		return false
	}
	for _, key := range k.queued {
		k.copies(geo.Catalog, key)
	}
	k.queued = nil
	return true
}

// copies has the north have a row as the south has it.
func (k *catalogs) copies(s geo.Service, key []byte) {
	k.t.Helper()
	id := geo.FirstRange(s)
	p, row, err := keys.ParsePartition(key)
	require.NoError(k.t, err)
	require.NotEqual(k.t, catalog.AccountPartition(k.name), p, "the record of the account is the south's already")
	if s != geo.Catalog {
		k.sent[p.Container+"/"+p.Object]++
	}
	value, ok, err := k.stamps["south"].Leader(id).State().Get(key)
	require.NoError(k.t, err)
	require.NoError(k.t, k.stamps["north"].Submit(k.t.Context(), id, evaluated(func(tx *ranges.Tx) error {
		require.Equal(k.t, change.Gate{Epoch: k.at(k.t).GeoEpoch(), Role: change.RoleSecondary, Open: true}, tx.Gate(k.name), "it takes nothing before")
		op := change.Op{Row: row, Value: value, Delete: !ok}
		return tx.Local(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{op}})
	})))
}

// writes does a write of the catalog at a location.
func (k *catalogs) writes(at *stamp.Stamp, w services.Write) {
	k.t.Helper()
	require.NoError(k.t, primary.New(at).Write(k.t.Context(), w))
}

// both commits what the north has numbered of a partition of a service at the south too.
func (k *catalogs) arrives(p keys.Partition) {
	k.t.Helper()
	id := geo.FirstRange(p.Service)
	st := geo.Stream{Account: k.name, Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: id, Lane: p.Lane()}
	at := k.stamps["south"].Leader(id).Machine.Cursor(st).Applied.Seq
	records, err := k.stamps["north"].Leader(id).Machine.Outbox(st, at+1, 1<<20)
	require.NoError(k.t, err)
	for _, b := range records {
		rec, err := change.ParseRecord(b)
		require.NoError(k.t, err)
		require.NoError(k.t, k.stamps["south"].Submit(k.t.Context(), id, evaluated(func(tx *ranges.Tx) error { return tx.Received(b, &rec, true) })))
	}
}

// creates makes a table at a location, with rows, and returns its generation.
func (k *catalogs) creates(at *stamp.Stamp, name string, rows ...string) keys.Partition {
	k.t.Helper()
	made := &catalog.Create{Service: geo.Table, Account: k.name, Name: name}
	k.writes(at, made)
	p := keys.Partition{Service: geo.Table, Account: k.name, Container: name, Generation: made.Created.Generation()}
	for _, row := range rows {
		k.puts(at, p, row)
	}
	return p
}

func (k *catalogs) puts(at *stamp.Stamp, p keys.Partition, object string) {
	k.t.Helper()
	p.Object = object
	require.NoError(k.t, at.Submit(k.t.Context(), geo.FirstRange(geo.Table), evaluated(func(tx *ranges.Tx) error {
		op := change.Op{Row: []byte("r"), Value: []byte(at.Location())}
		return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{op}})
	})))
}

// ends deletes a table at a location; with sweeps its rows too.
func (k *catalogs) ends(at *stamp.Stamp, p keys.Partition, sweeps bool) {
	k.t.Helper()
	k.writes(at, &catalog.Delete{Service: geo.Table, Account: k.name, Name: p.Container})
	require.NoError(k.t, primary.New(at).CloseGeneration(k.t.Context(), geo.Table, k.name, p.Container, p.Generation))
	if !sweeps {
		return
	}
	require.NoError(k.t, at.Submit(k.t.Context(), geo.FirstRange(geo.Table), evaluated(func(tx *ranges.Tx) error {
		prefix := keys.AppendContainer(nil, geo.Table, k.name, p.Container, p.Generation)
		return tx.Wipe(state.Span{Lower: prefix, Upper: keys.PrefixEnd(prefix)})
	})))
}

// shared makes a table that both locations have, with rows.
func (k *catalogs) shared(name string, rows ...string) keys.Partition {
	k.t.Helper()
	p := k.creates(k.stamps["north"], name, rows...)
	k.arrives(catalog.ContainerPartition(geo.Table, k.name, name))
	for _, row := range rows {
		of := p
		of.Object = row
		k.arrives(of)
	}
	return p
}

// recorded has a location change the record of the account.
func (k *catalogs) recorded(at *stamp.Stamp) {
	k.t.Helper()
	require.NoError(k.t, at.Submit(k.t.Context(), geo.FirstRange(geo.Catalog), evaluated(func(tx *ranges.Tx) error {
		a, err := catalog.GetAccount(tx, k.name)
		if err != nil {
			return err
		}
		a.Key1 = []byte("lost")
		v, err := a.Encode()
		if err != nil {
			return err
		}
		p := catalog.AccountPartition(k.name)
		return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Value: v}}})
	})))
}

// rows are those of the account's tables and containers at a location, but for the record of the account.
func (k *catalogs) rows(at *stamp.Stamp) map[string]string {
	k.t.Helper()
	out := map[string]string{}
	for _, s := range []geo.Service{geo.Catalog, geo.Table} {
		snap, err := ranges.Snapshot(k.t.Context(), at, geo.FirstRange(s))
		require.NoError(k.t, err)
		require.NoError(k.t, keys.Each(snap, keys.AppendAccount(nil, s, k.name), func(key, value []byte) error {
			p, row, err := keys.ParsePartition(key)
			if p != catalog.AccountPartition(k.name) {
				out[fmt.Sprintf("%s/%s/%v/%s/%s", s, p.Container, p.Generation, p.Object, row)] = string(value)
			}
			return err
		}))
		require.NoError(k.t, snap.Close())
	}
	return out
}

// goesOn has the south go on, and its catalog's record arrive, until there is no operation.
func (k *catalogs) goesOn() {
	k.t.Helper()
	for i := 0; ; i++ {
		require.Less(k.t, i, 120)
		_, err := k.pair.south.Resume(k.t.Context())
		if errors.Is(err, kv.ErrUnknown) || errors.Is(err, kv.ErrBusy) {
			k.process()
		}
		k.clock.Advance(1e9)
		now := k.at(k.t)
		if now.Primary == "south" && now.Operation == nil {
			return
		}
		if now.Operation != nil && now.Operation.Rewinding && k.stamps["north"].Leader(geo.FirstRange(geo.Catalog)).Machine.Gate(k.name).Open {
			k.arrivesThere()
		}
	}
}

// arrivesThere has the record of the account arrive at the north, which has opened the gate of its catalog.
func (k *catalogs) arrivesThere() {
	k.t.Helper()
	v, err := k.at(k.t).Encode()
	require.NoError(k.t, err)
	p := catalog.AccountPartition(k.name)
	require.NoError(k.t, k.stamps["north"].Submit(k.t.Context(), geo.FirstRange(geo.Catalog), evaluated(func(tx *ranges.Tx) error {
		return tx.Local(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Value: v}}})
	})))
}

// R22: a former primary that has created, changed, deleted and created again tables is rewound, while the present primary
// has changed the same ones; at each of the commits of either end it goes on after one that failed, and after one whose
// outcome is not known, in new processes. Rows of tables that the south does not have are not sent; those of one that the
// north has swept are sent all, and no others that did not change.
func TestR22CatalogIsRewoundAfterACrashAnywhere(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow under the race detector")
	}
	b := newBoth(t)
	for _, at := range []string{"north", "south"} {
		for _, done := range []bool{false, true} {
			steps := 0
			for passed := false; !passed; steps++ {
				require.Less(t, steps, 120)
				k := newCatalogs(t, b, geo.Account(fmt.Sprintf("rw%d%s%t", steps, at, done)))
				north, south := b.stamps["north"], b.stamps["south"]
				kept, swept, open := k.shared("kept", "a", "b"), k.shared("swept", "a", "b", "c"), k.shared("open", "a", "b")
				again, both, over := k.shared("again", "a"), k.shared("both", "a"), k.shared("over", "a")
				k.creates(north, "made", "a", "b")
				k.creates(north, "same", "a")
				k.puts(north, kept, "b")
				k.ends(north, swept, true)
				k.ends(north, open, false)
				k.ends(north, again, false)
				k.creates(north, "again", "b")
				k.ends(north, both, false)
				k.ends(north, over, true)
				k.recorded(north)
				_, err := k.pair.south.Promoter().Promote(t.Context(), k.name)
				require.NoError(t, err)
				for k.at(t).Primary != "south" {
					_, err := k.pair.south.Resume(t.Context())
					require.NoError(t, err)
					k.clock.Advance(1e9)
				}
				k.ends(south, over, true)
				fails := map[string]*failing{"north": k.there, "south": k.south}[at]
				fails.in, fails.done = steps, done
				k.goesOn()
				passed = fails.in >= 0
				fails.in = -2

				late := rejoin.Taken{Account: *k.at(t), Opened: true, Forks: k.forks(t), Catalog: true}
				late.Account.Operation = &catalog.Operation{Kind: catalog.OperationTaken, Unplanned: true}
				require.ErrorContains(t, k.north.Adopt(t.Context(), late), "has kept them", "it has diverged still")
				late.Catalog = false
				require.ErrorIs(t, k.north.Adopt(t.Context(), late), rejoin.ErrDiverged, "for a former version")
				there := k.rows(north)
				for key, value := range k.rows(south) {
					require.Equal(t, value, there[key], "%s, step %d", key, steps)
					delete(there, key)
				}
				require.Empty(t, there, "step %d", steps)
				claim := k.lost(t).claim
				require.Equal(t, []change.LostContainer{{Name: "swept", Epoch: swept.Generation.Epoch, Created: swept.Generation.Created}}, claim.Swept)
				now, err := k.north.Account(t.Context(), k.name)
				require.NoError(t, err)
				require.NotEqual(t, "lost", string(now.Key1))
				for row, n := range k.sent {
					require.Contains(t, []string{"kept/b", "swept/a", "swept/b", "swept/c"}, row)
					require.Positive(t, n)
				}
				require.Len(t, k.sent, 4)
				for _, p := range []keys.Partition{swept, open, again} {
					id := geo.FirstRange(geo.Table)
					_, closed, err := north.Leader(id).State().Get(keys.ClosedGeneration(id, geo.Table, k.name, p.Container, p.Generation))
					require.NoError(t, err)
					require.False(t, closed, p.Container)
				}
			}
			require.Greater(t, steps, 8, at)
		}
	}
}

// R22: a former primary whose catalog has lost the account, or a range of which has opened its gate before the catalog is
// rewound, as a node of a former version does, is not rewound.
func TestR22CatalogIsNotRewoundWhereRowsMayBeMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		there evaluated
		in    geo.Service
		// complete: the catalog has kept all of its lost changes.
		complete bool
	}{
		"the account is lost": {evaluated(func(tx *ranges.Tx) error {
			p := catalog.AccountPartition("acct")
			return tx.Local(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Delete: true}}})
		}), geo.Catalog, false},
		"a gate is open": {evaluated(func(tx *ranges.Tx) error {
			g := tx.Gate("acct")
			g.Epoch, g.Role, g.Open, g.Numbered = geo.Epoch{Number: 2, Location: "south"}, change.RoleSecondary, true, false
			tx.SetGate("acct", g)
			return nil
		}), geo.Table, true},
	} {
		t.Run(name, func(t *testing.T) {
			k := newCatalogs(t, newBoth(t), "acct")
			k.creates(k.stamps["north"], "made")
			require.NoError(t, k.stamps["north"].Submit(t.Context(), geo.FirstRange(c.in), c.there))
			k.promoted(t, false)
			claim, err := catalog.LostClaim(k.stamps["north"].Leader(geo.FirstRange(geo.Catalog)).State(), geo.Catalog, "acct", k.at(t).GeoEpoch())
			require.NoError(t, err)
			require.Equal(t, !c.complete, claim.Incomplete)
		})
	}
}
