package directory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// lostRows are what a range of the north has kept: the numbers of lost changes by whether they were surely answered, what
// the rows of the lost-and-found held, and the claim.
type lostRows struct {
	seqs  []geo.Seq
	ops   int
	found map[string]string
	claim *change.LostClaim
}

// oneLane are partitions of a table that have the lane of the first one, and its stream.
const lostPartition = "k"

func (a *apart) stream(of *catalog.Account) geo.Stream {
	p := keys.Partition{Service: geo.Table, Account: a.name, Container: "t", Object: lostPartition}
	return geo.Stream{Account: a.name, Epoch: of.GeoEpoch(), Range: geo.FirstRange(geo.Table), Lane: p.Lane()}
}

// write has the north commit a change of some rows.
func (a *apart) write(t *testing.T, value string, rows ...string) {
	t.Helper()
	require.NoError(t, a.stamps["north"].Submit(t.Context(), geo.FirstRange(geo.Table), evaluated(func(tx *ranges.Tx) error {
		p := keys.Partition{Service: geo.Table, Account: a.name, Container: "t", Object: lostPartition}
		rec := change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil)}
		for _, r := range rows {
			rec.Ops = append(rec.Ops, change.Op{Row: []byte(r), Value: []byte(value), Delete: value == ""})
			if value == "" {
				rec.Ops[len(rec.Ops)-1].Value = nil
			}
		}
		return tx.Change(p, rec)
	})))
}

// ships has records [from, to] of the stream arrive at the south.
func (a *apart) ships(t *testing.T, s geo.Stream, from, to geo.Seq) {
	t.Helper()
	records, err := a.stamps["north"].Leader(s.Range).Machine.Outbox(s, from, 1<<20)
	require.NoError(t, err)
	for _, b := range records[:to-from+1] {
		rec, err := change.ParseRecord(b)
		require.NoError(t, err)
		require.NoError(t, a.stamps["south"].Submit(t.Context(), s.Range, evaluated(func(tx *ranges.Tx) error { return tx.Received(b, &rec, true) })))
	}
}

func (a *apart) lost(t *testing.T) lostRows {
	t.Helper()
	out := lostRows{found: map[string]string{}}
	snap, err := ranges.Snapshot(t.Context(), a.stamps["north"], geo.FirstRange(geo.Table))
	require.NoError(t, err)
	defer func() { require.NoError(t, snap.Close()) }()
	for _, name := range []geo.Account{keys.LostChanges, keys.LostAndFound} {
		prefix := keys.AppendContainer(nil, geo.Table, name, string(a.name), keys.Generation{})
		it, err := snap.Scan(prefix, keys.PrefixEnd(prefix))
		require.NoError(t, err)
		for it.Next() {
			p, row, err := keys.ParsePartition(it.Key())
			require.NoError(t, err)
			switch {
			case name == keys.LostAndFound:
				f, err := change.ParseFound(it.Value())
				require.NoError(t, err)
				_, inner, err := keys.ParsePartition(row)
				require.NoError(t, err)
				out.found[string(inner)] = string(f.Value)
			case p.Object == "":
				c, err := change.ParseLostClaim(it.Value())
				require.NoError(t, err)
				out.claim = &c
			default:
				n, _, err := keys.CutUint64(row)
				require.NoError(t, err)
				l, err := change.ParseLost(it.Value())
				require.NoError(t, err)
				out.seqs, out.ops = append(out.seqs, geo.Seq(n)), out.ops+len(l.Ops)
			}
		}
		require.NoError(t, it.Close())
	}
	return out
}

// promoted makes the south the primary, and has the north adopt that: it is rewound then, or has diverged.
func (a *apart) promoted(t *testing.T, rewinds bool) {
	t.Helper()
	_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	err = a.resumed(t, 6)
	op := a.at(t).Operation
	require.NotNil(t, op)
	require.Equal(t, rewinds, op.Rewinding)
	if require.Equal(t, !rewinds, op.Diverged); !rewinds {
		require.ErrorIs(t, err, rejoin.ErrDiverged)
	}
}

// R22: what the north had committed above the fork is kept, in order, with what the rows held last, in as many groups as it
// needs; then its outbox is given up. To adopt the account again changes nothing.
//
// Capability: Failover: A former primary is rewound (R22).
// Capability: Failover: What the other location cannot take does not cross the link (R22).
// Capability: Failover: The lost-change report (R22).
func TestR22LostChanges(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	s := a.stream(a.at(t))
	a.write(t, "before", "kept", "set", "gone")
	a.ships(t, s, 1, 1)
	a.write(t, "first", "set")
	var many []string
	for i := range 1500 {
		many = append(many, fmt.Sprintf("row%04d", i))
	}
	for i := range 3 { // More rows than one command looks at.
		a.write(t, fmt.Sprint(i), many...)
	}
	a.write(t, "", "gone")
	a.write(t, "last", "set")
	a.promoted(t, true)

	got := a.lost(t)
	require.Equal(t, []geo.Seq{2, 3, 4, 5, 6, 7}, got.seqs)
	require.Equal(t, 3*1500+3, got.ops)
	require.Len(t, got.found, 1501)
	require.Equal(t, "last", got.found["set"])
	require.Equal(t, "2", got.found["row1499"])
	require.False(t, got.claim.Incomplete, got.claim.Why)
	require.EqualValues(t, 6, got.claim.Changes)
	require.Equal(t, []change.LostStream{{Number: 1, Lane: s.Lane, After: 1, To: 7}}, got.claim.Streams)
	require.Equal(t, a.at(t).GeoEpoch(), got.claim.GeoEpoch())
	b, err := a.stamps["north"].Leader(s.Range).Machine.Backlog()
	require.NoError(t, err)
	require.Zero(t, b.Records, "the outbox is given up")

	of, forks := a.at(t), a.forks(t)
	require.Error(t, a.north.Adopt(t.Context(), rejoin.Taken{Account: *of, Opened: true, Forks: forks}))
	require.Equal(t, got, a.lost(t))

	// The gate opens once the record has arrived under which nobody reads the copy, and not before; the copy can be made
	// again instead.
	open := func() bool { return a.stamps["north"].Leader(s.Range).Machine.Gate(a.name).Open }
	require.ErrorIs(t, a.north.Rejoin(t.Context(), *of), kv.ErrBusy)
	require.False(t, open())
	a.follows(t)
	require.NoError(t, a.north.Rejoin(t.Context(), *of))
	require.True(t, open())
	require.Error(t, a.north.Adopt(t.Context(), rejoin.Taken{Account: *of, Opened: true, Forks: forks}), "it has diverged still")
	there, err := a.north.Account(t.Context(), a.name)
	require.NoError(t, err)
	require.True(t, there.Partial())
	require.False(t, there.Promotable())
	rows := map[string]int{}
	for next := (&rejoin.LostRow{}); next != nil; {
		page, err := a.north.LostRows(t.Context(), *of, s.Range, *next)
		require.NoError(t, err)
		for _, k := range page.Keys {
			_, row, err := keys.ParsePartition(k)
			require.NoError(t, err)
			rows[string(row)]++
		}
		next = page.Next
	}
	require.Len(t, rows, 1502)
	require.Equal(t, 2, rows["set"])
	require.Equal(t, 1, rows["gone"])
	require.Equal(t, 3, rows["row0000"])
	_, _, err = a.pair.south.Rebuild(t.Context(), a.name, nil)
	require.NoError(t, err)
}

// follows has what the south has numbered in its catalog arrive at the north.
func (a *apart) follows(t *testing.T) {
	t.Helper()
	id := geo.FirstRange(geo.Catalog)
	st := geo.Stream{Account: a.name, Epoch: a.at(t).GeoEpoch(), Range: id, Lane: catalog.AccountPartition(a.name).Lane()}
	records, err := a.stamps["south"].Leader(id).Machine.Outbox(st, 1, 1<<20)
	require.NoError(t, err)
	require.NotEmpty(t, records)
	for _, b := range records {
		rec, err := change.ParseRecord(b)
		require.NoError(t, err)
		require.NoError(t, a.stamps["north"].Submit(t.Context(), id, evaluated(func(tx *ranges.Tx) error { return tx.Received(b, &rec, true) })))
	}
}

func (a *apart) forks(t *testing.T) []catalog.Fork {
	t.Helper()
	out, err := a.pair.south.Promoter().Losses(t.Context(), a.name)
	require.NoError(t, err)
	return out
}

// R22: a range that cannot know all of its lost changes says so, and since when, and keeps those it knows.
//
// Capability: Failover: A former primary is rewound (R22).
// Capability: Failover: The lost-change report (R22).
func TestR22LostChangesAreIncomplete(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, a *apart, s geo.Stream)
		why     string
		seqs    []geo.Seq
	}{
		"trimmed": {func(t *testing.T, a *apart, s geo.Stream) {
			require.NoError(t, a.stamps["north"].Submit(t.Context(), s.Range, evaluated(func(tx *ranges.Tx) error { return tx.Trim(s, 2) })))
		}, "outbox has lost", []geo.Seq{3}},
		"set back": {func(t *testing.T, a *apart, s geo.Stream) {
			require.NoError(t, a.stamps["south"].Submit(t.Context(), s.Range, evaluated(func(tx *ranges.Tx) error {
				for n := geo.Seq(2); n <= 5; n++ {
					if err := a.forged(tx, s, n); err != nil {
						return err
					}
				}
				return nil
			})))
		}, "set back", []geo.Seq{1, 2, 3}},
		"other": {func(t *testing.T, a *apart, s geo.Stream) {
			require.NoError(t, a.stamps["south"].Submit(t.Context(), s.Range, evaluated(func(tx *ranges.Tx) error { return a.forged(tx, s, 2) })))
		}, "other records", []geo.Seq{1, 2, 3}},
		"stopped": {func(t *testing.T, a *apart, s geo.Stream) { a.stops(t, s, change.StopBudget) }, "was stopped", []geo.Seq{2, 3}},
		"stopped, all of it there": {func(t *testing.T, a *apart, s geo.Stream) {
			a.ships(t, s, 2, 3)
			a.stops(t, s, change.StopPoison)
		}, "was stopped", nil},
		"stopped at a record that is another here": {func(t *testing.T, a *apart, s geo.Stream) {
			require.NoError(t, a.stamps["south"].Submit(t.Context(), s.Range, evaluated(func(tx *ranges.Tx) error { return a.forged(tx, s, 2) })))
			a.stops(t, s, change.StopForked)
		}, "was stopped", []geo.Seq{1, 2, 3}},
		"stopped for a settlement":       {func(t *testing.T, a *apart, s geo.Stream) { a.stops(t, s, change.StopSettling) }, "was stopped", []geo.Seq{1, 2, 3}},
		"set back behind the known head": {func(t *testing.T, a *apart, s geo.Stream) { a.knows(t, s, 9) }, "set back", []geo.Seq{1, 2, 3}},
		"unnumbered": {func(t *testing.T, a *apart, s geo.Stream) {
			require.NoError(t, a.stamps["north"].Submit(t.Context(), s.Range, evaluated(func(tx *ranges.Tx) error {
				tx.SetGate(a.name, change.Gate{Epoch: s.Epoch, Role: change.RolePrimary, Open: true})
				return nil
			})))
			a.write(t, "2", "row")
		}, "without numbers", []geo.Seq{2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApart(t)
			s := a.stream(a.at(t))
			for i := range 3 {
				a.write(t, fmt.Sprint(i), "row")
			}
			a.ships(t, s, 1, 1)
			c.prepare(t, a, s)
			a.promoted(t, false)
			got := a.lost(t)
			require.Equal(t, c.seqs, got.seqs)
			require.True(t, got.claim.Incomplete)
			require.Contains(t, got.claim.Why, c.why)
			require.Equal(t, c.seqs != nil, got.found["row"] == "2")
		})
	}
}

// stops has the south stop a stream.
func (a *apart) stops(t *testing.T, s geo.Stream, why change.StopReason) {
	t.Helper()
	require.NoError(t, a.stamps["south"].Submit(t.Context(), s.Range, evaluated(func(tx *ranges.Tx) error {
		tx.Stop(s, change.Stop{Reason: why})
		return nil
	})))
}

// knows has a closed record arrive at the south that names the head of a stream.
func (a *apart) knows(t *testing.T, s geo.Stream, head geo.Seq) {
	t.Helper()
	require.NoError(t, a.stamps["south"].Submit(t.Context(), s.Range, evaluated(func(tx *ranges.Tx) error {
		tx.TakeClosed(&change.Closed{
			Origin: s.Epoch.Location, Range: s.Range, Full: true, T: tx.Timestamp(0),
			Heads: []change.StreamHead{{Account: s.Account, Epoch: s.Epoch, Lane: s.Lane, Seq: head, Hash: 1}},
		})
		return nil
	})))
}

// R22: a range that was set back to exactly what the copy had is found by a head that it had said to be committed.
func TestR22SetBackToTheCopy(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	s := a.stream(a.at(t))
	a.write(t, "v", "row")
	a.ships(t, s, 1, 1)
	a.knows(t, s, 4)
	a.promoted(t, false)
	got := a.lost(t)
	require.True(t, got.claim.Incomplete)
	require.Contains(t, got.claim.Why, "set back")
}

// R22: a promotion that began at a former primary before it was to be rewound does not make a copy the primary that has a
// part of the data; the copy is rewound all the same.
func TestR22RewoundCopyIsNotPromoted(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	s := a.stream(a.at(t))
	a.write(t, "lost", "row")
	a.promoted(t, true)
	of := a.at(t)
	north := directory.NewDirectory(a.stamps["north"], "south")
	north.SetPace(a.clock, 0)
	north.SetPeer(linked{a.pair, a.pair.south})
	// The promotion begins before the record arrives under which the copy is rewound.
	_, err := north.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	a.follows(t)
	require.NoError(t, a.north.Rejoin(t.Context(), *of))
	for range 8 {
		_, err = north.Resume(t.Context())
		a.clock.Advance(time.Second)
	}
	require.NoError(t, err)
	there, err := north.Account(t.Context(), a.name)
	require.NoError(t, err)
	require.Equal(t, of.GeoEpoch(), there.GeoEpoch())
	p, err := north.Promoter().Promotion(t.Context(), a.name)
	require.NoError(t, err)
	require.Nil(t, p)
	require.NoError(t, a.north.Rejoin(t.Context(), *of))
	g := a.stamps["north"].Leader(s.Range).Machine.Gate(a.name)
	require.True(t, g.Open && g.Turn == 2, "it was frozen, and thawed: %+v", g)
}

// forged has the south apply a record that the north never sent, as if that had been set back.
func (a *apart) forged(tx *ranges.Tx, s geo.Stream, n geo.Seq) error {
	p := keys.Partition{Service: geo.Table, Account: a.name, Container: "t", Object: lostPartition}
	rec := change.Record{
		Epoch: s.Epoch, Range: s.Range, Lane: s.Lane, Service: geo.Table, Account: a.name, Seq: n, Prev: tx.Cursor(s).Applied.Hash,
		CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("row"), Value: []byte("forged")}},
	}
	b, err := change.AppendRecord(nil, &rec)
	if err != nil {
		return err
	}
	return tx.Received(b, &rec, true)
}

// R22: a range that was set back to before the epoch of the fork claims nothing but that.
func TestR22SetBackBeforeTheEpoch(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	a.write(t, "v", "row")
	s := a.stream(a.at(t))
	a.ships(t, s, 1, 1)
	require.NoError(t, a.stamps["north"].Submit(t.Context(), s.Range, evaluated(func(tx *ranges.Tx) error {
		tx.SetGate(a.name, change.Gate{Epoch: geo.Epoch{Number: 0, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true})
		return nil
	})))
	a.promoted(t, false)
	got := a.lost(t)
	require.Empty(t, got.seqs)
	require.True(t, got.claim.Incomplete)
	require.Contains(t, got.claim.Why, "set back")
}
