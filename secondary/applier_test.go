package secondary

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/receive"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

// TestApply runs testdata: the stamp south applies batches of records of north. Gate, catalog and
// payload decide the outcome of each record, the cursors and the rows.
// It holds R16.
//
// Capability: Two locations: Forks and losses are durable at the receiver and at the source (R16).
func TestApply(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/apply", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			r := &rig{t: t, clock: &clock.Shifted{}, began: time.Now(), hashes: map[string]geo.Hash{}}
			r.stamp = stamptest.NewAt(t, r.clock, "south", geo.Catalog, geo.Table)
			r.applier = NewApplier(r.stamp, route.First())
			datadriven.RunTest(t, path, r.run)
		})
	})
}

type rig struct {
	t       *testing.T
	clock   *clock.Shifted
	began   time.Time
	stamp   *stamp.Stamp
	applier *Applier
	// hashes are the hashes of the records of north, by partition, number and incarnation.
	hashes map[string]geo.Hash
	// seen are the partitions named so far, in order.
	seen []keys.Partition
}

func tableSource() geo.SourceRange {
	return geo.SourceRange{Origin: "north", Range: geo.FirstRange(geo.Table)}
}

func (r *rig) run(t *testing.T, d *datadriven.TestData) string {
	table := geo.FirstRange(geo.Table)
	switch d.Cmd {
	case "gate":
		g := change.Gate{Role: change.RoleSecondary, Open: d.HasArg("open")}
		if d.HasArg("primary") {
			g.Role = change.RolePrimary
		}
		d.ScanArgs(t, "epoch", (*uint64)(&g.Epoch.Number))
		origin := "north"
		d.MaybeScanArgs(t, "origin", &origin)
		g.Epoch.Location = geo.Location(origin)
		stamptest.Submit(t, r.stamp, table, stamptest.Gate{Account: "acct", Gate: g})
		if g.Open = g.Open && !d.HasArg("catalog-closed"); !d.HasArg("catalog-behind") {
			stamptest.Submit(t, r.stamp, geo.FirstRange(geo.Catalog), stamptest.Gate{Account: "acct", Gate: g})
		}
		return ""
	case "table":
		r.table(d)
		return ""
	case "close-generation":
		var created uint64
		d.ScanArgs(t, "created", &created)
		key := keys.ClosedGeneration(table, geo.Table, "acct", "t", keys.Generation{Epoch: 1, Created: geo.Timestamp(created)})
		stamptest.Submit(t, r.stamp, table, closed{key})
		return ""
	case "chunk":
		require.NoError(t, r.stamp.PutChunk(t.Context(), chunk(), []byte("payload")))
		return ""
	case "clock":
		var ahead string
		d.ScanArgs(t, "ahead", &ahead)
		by, err := time.ParseDuration(ahead)
		require.NoError(t, err)
		r.clock.Shift(by)
		return ""
	case "promotion": // The account fails over to here from an epoch; not any more without one.
		var p *catalog.Promotion
		if d.HasArg("epoch") {
			p = &catalog.Promotion{Location: "north", Phase: catalog.PromotionApplying}
			d.ScanArgs(t, "epoch", (*uint64)(&p.Number))
		}
		op, err := catalog.PromotionOp(p)
		require.NoError(t, err)
		stamptest.Submit(t, r.stamp, geo.FirstRange(geo.Catalog), stamptest.Change{Partition: catalog.AccountPartition("acct"), Record: change.Record{Ops: []change.Op{op}}})
		return ""
	case "north": // Records that north has, and that have not arrived here.
		for line := range strings.SplitSeq(strings.TrimSpace(d.Input), "\n") {
			words, args := parse(line)
			r.record(words[0], words[1], args)
		}
		return ""
	case "stop":
		var there uint64
		_, err := fmt.Sscanf(d.CmdArgs[2].Vals[0], "#%d", &there)
		require.NoError(t, err)
		why := map[string]change.StopReason{
			"lost": change.StopLost, "forked": change.StopForked, "poison": change.StopPoison, "version": change.StopVersion,
			"behind-outbox": change.StopBudget,
		}[d.CmdArgs[1].Key]
		named := slices.IndexFunc(r.seen, func(p keys.Partition) bool { return p.Object == d.CmdArgs[0].Key })
		r.submit(func(done func(error)) {
			r.applier.Stop(streamOf(r.seen[named], 1, "north"), change.Stop{Reason: why, There: geo.Head{Seq: geo.Seq(there)}}, done)
		})
		return r.state()
	case "restart":
		for _, n := range r.stamp.Nodes() {
			require.NoError(t, r.stamp.Stop(n, true))
			require.NoError(t, r.stamp.Start(n))
		}
		return r.state()
	case "apply":
		return r.apply(d)
	case "streams":
		return r.streams()
	}
	t.Fatalf("unknown command %q", d.Cmd)
	return ""
}

// table puts the record of table t into south's catalog.
func (r *rig) table(d *datadriven.TestData) {
	var created uint64
	d.ScanArgs(r.t, "created", &created)
	c := &catalog.Create{Service: geo.Table, Account: "acct", Name: "t"}
	c.InEpoch(1)
	effect, err := c.Evaluate(noRows{}, geo.Timestamp(created))
	require.NoError(r.t, err)
	if d.HasArg("deleted") {
		del := &catalog.Delete{Service: geo.Table, Account: "acct", Name: "t"}
		effect, err = del.Evaluate(oneRow{effect.Ops[0].Value}, geo.Timestamp(created+1))
		require.NoError(r.t, err)
	}
	stamptest.Submit(r.t, r.stamp, geo.FirstRange(geo.Catalog), stamptest.Change{Partition: c.Partition(), Record: change.Record{Ops: effect.Ops}})
}

type noRows struct{}

func (noRows) Get([]byte) ([]byte, bool, error) { return nil, false, nil }

type oneRow struct{ value []byte }

func (o oneRow) Get([]byte) ([]byte, bool, error) { return o.value, true, nil }

func chunk() extent.Ref { return extent.NewRef(extent.ChunkID{1}, []byte("payload")) }

// apply commits one batch. Its lines are records, such as
//
//	p #1 value=x [created=5] [epoch=1] [origin=north] [incarnation=1] [t=10] [fork] [broken] [undecodable] [chunk] [in=10m]
//
// and a closed record, such as
//
//	closed t=20 [t0=10] [full] [incarnation=1] [p=3] [in=10m]
//
// with the heads of partitions. A record follows the last one of its number less one that is of no later
// incarnation. in replaces a time by one so long after the start.
func (r *rig) apply(d *datadriven.TestData) string {
	b := &receive.Batch{Source: tableSource()}
	var objects []string
	for line := range strings.SplitSeq(strings.TrimSpace(d.Input), "\n") {
		words, args := parse(line)
		if words[0] == "closed" {
			b.Closed = r.closed(args)
			continue
		}
		b.Records, objects = append(b.Records, r.record(words[0], words[1], args)), append(objects, words[0])
	}
	r.submit(func(done func(error)) { r.applier.Apply(b, done) })
	var out strings.Builder
	for i, rec := range b.Records {
		outcome := outcomes()[rec.Outcome]
		if rec.Outcome == receive.Wait {
			outcome += " for " + rec.For.String()
		}
		fmt.Fprintf(&out, "%s #%d: %s%s\n", objects[i], rec.Record.Seq, outcome, ahead(rec.Ahead))
	}
	if b.Closed != nil {
		fmt.Fprintf(&out, "closed record taken: %t%s\n", b.ClosedTaken, ahead(b.ClosedAhead))
	}
	return out.String() + r.state()
}

func parse(line string) (words []string, args map[string]string) {
	words, args = strings.Fields(line), map[string]string{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		args[k] = v
	}
	return words, args
}

// submit repeats a command until it is committed, as receivers do: there may be no leader.
func (r *rig) submit(try func(done func(error))) {
	require.Eventually(r.t, func() bool {
		done := make(chan error, 1)
		try(func(err error) { done <- err })
		return <-done == nil
	}, time.Minute, time.Millisecond)
}

// state describes what is committed.
func (r *rig) state() string {
	stamptest.Submit(r.t, r.stamp, geo.FirstRange(geo.Table), nothing{}) // A new leader has applied all.
	var out strings.Builder
	progress := r.progress()
	fmt.Fprintf(&out, "closed %s", r.shown(progress.Closed))
	state := r.stamp.Leader(geo.FirstRange(geo.Table)).State()
	for _, p := range r.seen {
		v, found, err := state.Get(append(p.Append(nil), 'r'))
		require.NoError(r.t, err)
		if !found {
			v = []byte("nothing")
		}
		fmt.Fprintf(&out, "\n%s of %d: cursor #%d, holds %s", p.Object, p.Generation.Created, progress.Cursors()[streamOf(p, 1, "north")].Seq, v)
		for _, s := range progress.Stops {
			if s.Stream == streamOf(p, 1, "north") {
				fmt.Fprintf(&out, ", %s: #%d here, #%d there", s.Reason, s.Here.Seq, s.There.Seq)
			}
		}
	}
	return out.String()
}

func (r *rig) progress() (progress cursor.Progress) {
	read := make(chan error, 1)
	r.applier.Progress(tableSource(), func(p cursor.Progress, err error) {
		progress = p
		read <- err
	})
	require.NoError(r.t, <-read)
	return progress
}

// streams lists the streams that hold up a sync time or may, with the head that those behind have not reached.
func (r *rig) streams() string {
	var out strings.Builder
	for _, s := range r.progress().Streams {
		fmt.Fprintf(&out, "epoch %d: cursor #%d", s.Stream.Epoch.Number, s.Applied.Seq)
		if s.Behind > 0 {
			fmt.Fprintf(&out, ", behind #%d", s.Behind)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// shown is a time as the scenarios write it.
func (r *rig) shown(t geo.Timestamp) string {
	if t.Time().Before(r.began) {
		return fmt.Sprintf("t=%d", t)
	}
	return "in=" + t.Time().Sub(geo.TimestampOf(r.began).Time()).String()
}

func ahead(by time.Duration) string {
	if by == 0 {
		return ""
	}
	return " (ahead of the clock)"
}

func outcomes() map[receive.Outcome]string {
	return map[receive.Outcome]string{
		receive.Applied: "applied", receive.Duplicate: "duplicate", receive.Gap: "gap", receive.Wait: "wait",
		receive.Fork: "fork", receive.Refused: "refused", receive.Stopped: "stopped",
		receive.Void: "void", receive.Undecodable: "undecodable", receive.UnknownVersion: "unknown version",
	}
}

func streamOf(p keys.Partition, epoch geo.EpochNumber, origin geo.Location) geo.Stream {
	return geo.Stream{Account: p.Account, Epoch: geo.Epoch{Number: epoch, Location: origin}, Range: geo.FirstRange(geo.Table), Lane: p.Lane()}
}

// in replaces t by the time that args names from the start on.
func (r *rig) in(args map[string]string, t geo.Timestamp) geo.Timestamp {
	if args["in"] == "" {
		return t
	}
	after, err := time.ParseDuration(args["in"])
	require.NoError(r.t, err)
	return geo.TimestampOf(r.began.Add(after))
}

// nothing is a command without effect.
type nothing struct{}

func (nothing) Evaluate(*ranges.Tx) error { return nil }

func (r *rig) number(args map[string]string, name string, otherwise uint64) uint64 {
	v, ok := args[name]
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseUint(v, 10, 64)
	require.NoError(r.t, err)
	return n
}

func (r *rig) record(object, number string, args map[string]string) *receive.Record {
	seq, err := strconv.Atoi(strings.TrimPrefix(number, "#"))
	require.NoError(r.t, err)
	p := keys.Partition{
		Service: geo.Table, Account: "acct", Container: "t", Object: object,
		Generation: keys.Generation{Epoch: 1, Created: geo.Timestamp(r.number(args, "created", 5))},
	}
	known := false
	for _, s := range r.seen {
		known = known || s == p
	}
	if !known {
		r.seen = append(r.seen, p)
	}
	origin := geo.Location("north")
	if o, ok := args["origin"]; ok {
		origin = geo.Location(o)
	}
	st := streamOf(p, geo.EpochNumber(r.number(args, "epoch", 1)), origin)
	rec := change.Record{
		Epoch: st.Epoch, Range: st.Range, Lane: st.Lane, Service: p.Service, Account: p.Account, Seq: geo.Seq(seq),
		Incarnation: geo.Incarnation(r.number(args, "incarnation", 0)),
		CommitTime:  r.in(args, geo.Timestamp(r.number(args, "t", uint64(10*seq)))), Partition: p.Append(nil),
		Ops: []change.Op{{Row: []byte("r"), Value: []byte(args["value"])}},
	}
	rec.Prev = r.hash(object, seq-1, rec.Incarnation)
	if _, ok := args["fork"]; ok {
		rec.Prev++
	}
	if _, ok := args["broken"]; ok {
		rec.Partition = append(rec.Partition, 'x')
	}
	if _, ok := args["chunk"]; ok {
		rec.Chunks = []extent.Ref{chunk()}
	}
	encoded, err := change.AppendRecord(nil, &rec)
	require.NoError(r.t, err)
	r.hashes[fmt.Sprint(object, seq, rec.Incarnation)] = change.HashOf(encoded)
	if _, ok := args["undecodable"]; ok {
		return &receive.Record{Bytes: encoded, Bad: change.StopPoison}
	}
	return &receive.Record{Bytes: encoded, Record: rec}
}

// hash returns the hash of a record as of an incarnation.
func (r *rig) hash(object string, seq int, as geo.Incarnation) geo.Hash {
	for ; as > 0; as-- {
		if h, ok := r.hashes[fmt.Sprint(object, seq, as)]; ok {
			return h
		}
	}
	return r.hashes[fmt.Sprint(object, seq, as)]
}

func (r *rig) closed(args map[string]string) *change.Closed {
	src := tableSource()
	c := &change.Closed{Origin: src.Origin, Range: src.Range, T: r.in(args, geo.Timestamp(r.number(args, "t", 0))), T0: geo.Timestamp(r.number(args, "t0", 0))}
	_, c.Full = args["full"]
	c.Incarnation = geo.Incarnation(r.number(args, "incarnation", 0))
	for _, p := range r.seen {
		if head := r.number(args, p.Object, 0); head > 0 {
			st := streamOf(p, 1, "north")
			c.Heads = append(c.Heads, change.StreamHead{
				Account: st.Account, Epoch: st.Epoch, Lane: st.Lane, Seq: geo.Seq(head), Hash: r.hash(p.Object, int(head), c.Incarnation),
			})
		}
	}
	return c
}

// closed closes a generation.
type closed struct{ key []byte }

func (c closed) Evaluate(tx *ranges.Tx) error {
	tx.CloseGeneration(c.key)
	return nil
}
