package secondary

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

// R16: a small record may delete much: hundreds of rows of a megabyte that the receiver alone has. What it overwrites and
// deletes is kept over as many groups as that takes, since one of more than 16 MiB is never committed, and the
// range would stand for good. The record is applied by the group that keeps the last of it, and nothing before.
//
// Capability: Two locations: Forks and losses are durable at the receiver and at the source (R16).
// Capability: Two locations: Which range holds what is asked of one table (R14).
func TestR16FoundIsKeptInParts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine, slow under the race detector")
	}
	synctest.Test(t, func(t *testing.T) {
		foundInParts(t, 14, 1<<20, 5)
	})
}

// R16: what a row costs in the entry besides its bytes counts too: very many small ones are also too much for one.
//
// Capability: Two locations: Forks and losses are durable at the receiver and at the source (R16).
// Capability: Two locations: Which range holds what is asked of one table (R14).
func TestR16FoundOfSmallRowsIsKeptInParts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine, slow under the race detector")
	}
	synctest.Test(t, func(t *testing.T) {
		foundInParts(t, 12_000, 1, foundBytesMax/foundRowBytes+1)
	})
}

// foundInParts has rows deleted of so many bytes, of which one group keeps most at most.
func foundInParts(t *testing.T, rows, size, most int) {
	t.Helper()
	south := stamptest.New(t, "south", geo.Catalog)
	id := geo.FirstRange(geo.Catalog)
	applier := NewApplier(south, route.First())
	epoch := geo.Epoch{Number: 1, Location: "north"}
	p := keys.Partition{Service: geo.Catalog, Account: "acct", Object: "o"}
	st := geo.Stream{Account: "acct", Epoch: epoch, Range: id, Lane: p.Lane()}
	var ops, set []change.Op
	for n := range rows {
		op := change.Op{Row: fmt.Appendf(nil, "%05d", n), Value: bytes.Repeat([]byte{byte(n)}, size)}
		if set = append(set, op); size > 1 || n+1 == rows {
			stamptest.Submit(t, south, id, stamptest.Change{Partition: p, Record: change.Record{Partition: p.Append(nil), Ops: set}})
			set = nil
		}
		ops = append(ops, change.Op{Row: op.Row, Delete: true})
	}
	stamptest.Submit(t, south, id, stamptest.Gate{Account: "acct", Gate: change.Gate{Role: change.RoleSecondary, Open: true, Epoch: epoch}})
	stamptest.Submit(t, south, id, staged(func(tx *ranges.Tx) {
		tx.Stop(st, change.Stop{Reason: change.StopSettling, Here: geo.Head{Seq: 7}})
	}))
	var now geo.Timestamp
	stamptest.Submit(t, south, id, staged(func(tx *ranges.Tx) { now = tx.Timestamp(0) }))
	encoded, err := change.AppendRecord(nil, &change.Record{
		Account: "acct", Epoch: epoch, Range: id, Lane: st.Lane, Service: geo.Catalog, Seq: 1, CommitTime: now, Partition: p.Append(nil), Ops: ops,
	})
	require.NoError(t, err)
	count := func(prefix []byte) (n int) {
		snap, err := ranges.Snapshot(t.Context(), south, id)
		require.NoError(t, err)
		require.NoError(t, keys.Each(snap, prefix, func(_, _ []byte) error { n++; return nil }))
		require.NoError(t, snap.Close())
		return n
	}
	kept := keys.Found(geo.Catalog, st, 7).Append(nil)
	for before, groups := 0, 1; ; {
		rec, err := change.ParseRecord(encoded)
		require.NoError(t, err)
		r := &receive.Record{Bytes: encoded, Record: rec}
		b := &receive.Batch{Source: st.Source(), Records: []*receive.Record{r}}
		done := make(chan error, 1)
		applier.Apply(b, func(err error) { done <- err })
		if err = <-done; errors.Is(err, kv.ErrUnknown) || errors.Is(err, kv.ErrBusy) {
			groups++ // On a busy machine the leader was deposed: the group may have been committed.
			continue
		}
		require.NoError(t, err)
		now := count(kept)
		require.LessOrEqual(t, now-before, groups*most)
		if r.Outcome == receive.Applied {
			require.Equal(t, rows, now)
			break
		}
		require.Equal(t, receive.Wait, r.Outcome)
		require.Greater(t, now, before, "it goes on")
		require.Equal(t, rows, count(p.Append(nil)), "nothing is applied")
		before, groups = now, 1
	}
	require.Zero(t, count(p.Append(nil)))
}
