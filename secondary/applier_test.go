package secondary

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// TestApply runs testdata: the stamp south applies batches of records of north. Gate, catalog and
// payload decide the outcome of each record, the cursors and the rows.
func TestApply(t *testing.T) {
	datadriven.Walk(t, "testdata/apply", func(t *testing.T, path string) {
		s := stamptest.New(t, "south", geo.Catalog, geo.Table)
		r := &rig{t: t, stamp: s, applier: NewApplier(s), hashes: map[string]geo.Hash{}}
		datadriven.RunTest(t, path, r.run)
	})
}

type rig struct {
	t       *testing.T
	stamp   *stamp.Stamp
	applier *Applier
	// hashes are the hashes of the records of north, by partition and number.
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
	case "apply":
		return r.apply(d)
	}
	t.Fatalf("unknown command %q", d.Cmd)
	return ""
}

// table puts the record of table t into south's catalog.
func (r *rig) table(d *datadriven.TestData) {
	var created uint64
	d.ScanArgs(r.t, "created", &created)
	c := &catalog.Create{Service: geo.Table, Account: "acct", Name: "t", Epoch: 1}
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
//	p #1 value=x [created=5] [epoch=1] [origin=north] [fork] [chunk]
//
// and a closed record, such as
//
//	closed t=20 [t0=10] [full] [head=3]
//
// whose head is that of partition p.
func (r *rig) apply(d *datadriven.TestData) string {
	b := &receive.Batch{Source: tableSource()}
	for line := range strings.SplitSeq(strings.TrimSpace(d.Input), "\n") {
		args := map[string]string{}
		words := strings.Fields(line)
		for _, w := range words[1:] {
			k, v, _ := strings.Cut(w, "=")
			args[k] = v
		}
		if words[0] == "closed" {
			b.Closed = r.closed(args)
			continue
		}
		b.Records = append(b.Records, r.record(words[0], words[1], args))
	}
	done := make(chan error)
	r.applier.Apply(b, func(err error) { done <- err })
	require.NoError(r.t, <-done)
	var out strings.Builder
	for _, rec := range b.Records {
		p, _, err := keys.ParsePartition(rec.Record.Partition)
		require.NoError(r.t, err)
		fmt.Fprintf(&out, "%s #%d: %s\n", p.Object, rec.Record.Seq, outcomes()[rec.Outcome])
	}
	if b.Closed != nil {
		fmt.Fprintf(&out, "closed record taken: %t\n", b.ClosedTaken)
	}
	progress, ok := r.applier.Progress(tableSource())
	require.True(r.t, ok)
	fmt.Fprintf(&out, "closed t=%d", progress.Closed)
	state := r.stamp.Leader(geo.FirstRange(geo.Table)).State()
	for _, p := range r.seen {
		v, found, err := state.Get(append(p.Append(nil), 'r'))
		require.NoError(r.t, err)
		if !found {
			v = []byte("nothing")
		}
		fmt.Fprintf(&out, "\n%s of %d: cursor #%d, holds %s", p.Object, p.Generation.Created, progress.Applied(streamOf(p, 1, "north")).Seq, v)
	}
	return out.String()
}

func outcomes() map[receive.Outcome]string {
	return map[receive.Outcome]string{
		receive.Applied: "applied", receive.Duplicate: "duplicate", receive.Gap: "gap", receive.Wait: "wait",
		receive.Fork: "fork", receive.Refused: "refused",
	}
}

func streamOf(p keys.Partition, epoch geo.EpochNumber, origin geo.Location) geo.Stream {
	return geo.Stream{Account: p.Account, Epoch: geo.Epoch{Number: epoch, Location: origin}, Range: geo.FirstRange(geo.Table), Lane: p.Lane()}
}

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
		Prev: r.hashes[fmt.Sprint(object, seq-1)], CommitTime: geo.Timestamp(10 * seq), Partition: p.Append(nil),
		Ops: []change.Op{{Row: []byte("r"), Value: []byte(args["value"])}},
	}
	if _, ok := args["fork"]; ok {
		rec.Prev++
	}
	if _, ok := args["chunk"]; ok {
		rec.Chunks = []extent.Ref{chunk()}
	}
	encoded, err := change.AppendRecord(nil, &rec)
	require.NoError(r.t, err)
	r.hashes[fmt.Sprint(object, seq)] = change.HashOf(encoded)
	return &receive.Record{Bytes: encoded, Record: rec}
}

func (r *rig) closed(args map[string]string) *change.Closed {
	src := tableSource()
	c := &change.Closed{Origin: src.Origin, Range: src.Range, T: geo.Timestamp(r.number(args, "t", 0)), T0: geo.Timestamp(r.number(args, "t0", 0))}
	_, c.Full = args["full"]
	if head := r.number(args, "head", 0); head > 0 {
		st := streamOf(r.seen[0], 1, "north")
		c.Heads = []change.StreamHead{{Account: st.Account, Epoch: st.Epoch, Lane: st.Lane, Seq: geo.Seq(head)}}
	}
	return c
}

// closed closes a generation.
type closed struct{ key []byte }

func (c closed) Evaluate(tx *ranges.Tx) error {
	tx.CloseGeneration(c.key)
	return nil
}
