package secondary

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

// staged is a command of a test.
type staged func(tx *ranges.Tx)

// Evaluate implements ranges.Command.
func (f staged) Evaluate(tx *ranges.Tx) error {
	f(tx)
	return nil
}

// R16: a base is taken for the cursor that it was offered to alone, and only by the secondary of its epoch, from a record
// that sets nothing, of a time and an incarnation that may be taken. Stops that no settlement ends stay.
func TestR16BaseIsForOneCursor(t *testing.T) {
	t.Parallel()
	south := stamptest.New(t, "south", geo.Catalog)
	id := geo.FirstRange(geo.Catalog)
	m := func() *ranges.Machine { return south.Leader(id).Machine }
	applier := NewApplier(south, route.First())
	north := geo.Epoch{Number: 1, Location: "north"}
	var now geo.Timestamp
	stamptest.Submit(t, south, id, staged(func(tx *ranges.Tx) { now = tx.Timestamp(0) }))
	offer := func(rec change.Record, from geo.Head) (geo.Stream, error) {
		rec.Epoch, rec.Range, rec.Lane, rec.Service = north, id, 3, geo.Catalog
		rec.Partition = (keys.Partition{Service: geo.Catalog, Account: rec.Account}).Append(nil)
		b, err := change.AppendRecord(nil, &rec)
		require.NoError(t, err)
		done := make(chan error, 1)
		applier.Rebase(receive.Rebase{Stream: rec.Stream(), From: from, Record: b}, func(err error) { done <- err })
		return rec.Stream(), <-done
	}
	gate := change.Gate{Role: change.RoleSecondary, Open: true, Epoch: north}
	for name, c := range map[string]struct {
		gate   func(*change.Gate)
		record func(*change.Record)
		from   geo.Head
		why    change.StopReason
		taken  bool
	}{
		"forked":            {why: change.StopForked, taken: true},
		"lost":              {why: change.StopLost, taken: true},
		"settling":          {why: change.StopSettling, taken: true},
		"its stop was lost": {why: change.NotStopped, taken: true},
		"poison":            {why: change.StopPoison},
		"version":           {why: change.StopVersion},
		"behind-outbox":     {why: change.StopBudget},
		"another cursor":    {why: change.StopForked, from: geo.Head{Seq: 4, Hash: 4}},
		"a closed gate":     {why: change.StopForked, gate: func(g *change.Gate) { g.Open = false }},
		"a later epoch":     {why: change.StopForked, gate: func(g *change.Gate) { g.Epoch.Number++ }},
		"a primary":         {why: change.StopForked, gate: func(g *change.Gate) { g.Role = change.RolePrimary }},
		"not above":         {why: change.StopForked, record: func(r *change.Record) { r.Seq = 0 }},
		"a time ahead":      {why: change.StopForked, record: func(r *change.Record) { r.CommitTime += geo.Timestamp(time.Hour / 100) }},
	} {
		t.Run(name, func(t *testing.T) {
			g := gate
			rec := change.Record{Account: geo.Account("a" + name), Seq: 9, CommitTime: now}
			if c.gate != nil {
				c.gate(&g)
			}
			if c.record != nil {
				c.record(&rec)
			}
			stamptest.Submit(t, south, id, stamptest.Gate{Account: rec.Account, Gate: g})
			st := geo.Stream{Account: rec.Account, Epoch: north, Range: id, Lane: 3}
			before := change.Stop{Reason: c.why}
			if c.why != change.NotStopped {
				stamptest.Submit(t, south, id, staged(func(tx *ranges.Tx) { tx.Stop(st, before) }))
				before, _ = m().Stopped(st)
			}
			of, err := offer(rec, c.from)
			require.NoError(t, err)
			require.Equal(t, st, of)
			why, _ := m().Stopped(st)
			if !c.taken {
				require.Zero(t, m().Cursor(st))
				require.Equal(t, before, why)
				return
			}
			at := m().Cursor(st).Applied
			require.Equal(t, rec.Seq, at.Seq)
			require.Equal(t, change.Stop{Reason: change.StopSettling, Here: at, There: at, At: why.At}, why)
		})
	}
	_, err := offer(change.Record{Account: "rows", Seq: 9, CommitTime: now, Ops: []change.Op{{Row: []byte("r")}}}, geo.Head{})
	require.ErrorIs(t, err, errApply)
}
