package stats

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/route"
)

// Every input has its say, in one order: how far the copy is, what the streams have, the last failover, the clock, and what
// the receiver holds back.
func TestCompute(t *testing.T) {
	now := time.Unix(2_000_000_000, 0)
	at := func(d time.Duration) geo.Timestamp { return geo.TimestampOf(now.Add(d)) }
	least, most := at(-600*time.Millisecond), at(-100*time.Millisecond)
	for name, c := range map[string]struct {
		change func(in *Inputs)
		want   Replication
	}{
		"a whole copy":                       {func(*Inputs) {}, live(least, 0)},
		"one that is made":                   {func(in *Inputs) { in.Copy, in.Held = CopyPartial, true }, Replication{Status: Bootstrap}},
		"one that will be":                   {func(in *Inputs) { in.Copy, in.Held = CopyAwaited, true }, UnavailableFor(Bootstrapping)},
		"a range that does not answer":       {func(in *Inputs) { in.Known = in.Known[:1] }, UnavailableFor(NotHeard)},
		"it was the primary since":           {func(in *Inputs) { in.LastFailover = most }, live(most, 0)},
		"a failover that was before":         {func(in *Inputs) { in.LastFailover = at(-time.Hour) }, live(least, 0)},
		"no time from a failover alone":      {func(in *Inputs) { in.Known, in.LastFailover = nil, most }, UnavailableFor(NotHeard)},
		"times ahead of the clock":           {func(in *Inputs) { in.Now = now.Add(-time.Hour) }, UnavailableFor(Clock)},
		"times that no clock is compared to": {func(in *Inputs) { in.Now = time.Time{} }, live(least, 0)},
		"the receiver holds something back":  {func(in *Inputs) { in.Held = true }, UnavailableFor(Clock)},
		"a worse reason than that":           {func(in *Inputs) { in.Held, in.Known[0] = true, stopped(in.Known[0], "acct", change.StopForked) }, UnavailableFor(Forked)},
		"a better reason than that":          {func(in *Inputs) { in.Held, in.Known = true, nil }, UnavailableFor(Clock)},
	} {
		t.Run(name, func(t *testing.T) {
			in := Inputs{
				Account: "acct", Service: geo.Table, Primary: "north", From: route.First(), Now: now,
				Known: []cursor.Progress{from(table, most), from(catalog, least)},
			}
			c.change(&in)
			require.Equal(t, c.want, Compute(in))
		})
	}
}

// R4, R17: a copy of which a range was recovered with a loss, to before it was whole, has no Last Sync Time before all has
// arrived again that it was made of. One of which no range was keeps its time, and so does one that a failover has made.
//
// Capability: Proofs: A copy of which a recovery with loss left a part (R4, R17).
func TestR4CopyIsRegained(t *testing.T) {
	now := time.Unix(2_000_000_000, 0)
	at := func(d time.Duration) geo.Timestamp { return geo.TimestampOf(now.Add(d)) }
	least, most := at(-600*time.Millisecond), at(-100*time.Millisecond)
	recovered := from(catalog, least)
	recovered.Recovered = true
	lost := []cursor.Progress{from(table, most), recovered}
	for name, c := range map[string]struct {
		change func(in *Inputs)
		want   Replication
	}{
		"a recovered copy, not yet whole":     {func(in *Inputs) { in.Known, in.Copied = lost, least+1 }, UnavailableFor(Bootstrapping)},
		"a recovered copy that is whole":      {func(in *Inputs) { in.Known, in.Copied = lost, least }, live(least, 0)},
		"a copy that was not recovered":       {func(in *Inputs) { in.Copied = least + 1 }, live(least, 0)},
		"recovered, and no copy was made":     {func(in *Inputs) { in.Known = lost }, live(least, 0)},
		"recovered, and the primary since":    {func(in *Inputs) { in.Known, in.Copied, in.LastFailover = lost, least+1, most }, live(most, 0)},
		"recovered, and stopped all the same": {func(in *Inputs) { in.Known, in.Copied = []cursor.Progress{recovered}, most }, UnavailableFor(NotHeard)},
	} {
		t.Run(name, func(t *testing.T) {
			in := Inputs{
				Account: "acct", Service: geo.Table, Primary: "north", From: route.First(), Now: now,
				Known: []cursor.Progress{from(table, most), from(catalog, least)},
			}
			c.change(&in)
			require.Equal(t, c.want, Compute(in))
		})
	}
}
