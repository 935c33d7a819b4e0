package outbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

const testRange geo.RangeID = 4

// TestOutbox runs testdata/outbox: records are numbered, read, trimmed and counted, over a
// real state store that is closed and opened in between.
func TestOutbox(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		r := &rig{t: t, fs: vfs.NewMem()}
		r.open()
		t.Cleanup(func() { require.NoError(t, r.store.Close()) })
		datadriven.RunTest(t, path, r.run)
	})
}

type rig struct {
	t     *testing.T
	fs    vfs.FS
	store *state.Store
	o     *Outbox
	feed  Feed
}

func (r *rig) open() {
	var err error
	r.store, err = state.Open("state", state.Options{FS: r.fs})
	require.NoError(r.t, err)
	r.o, err = Open(testRange, r.store)
	require.NoError(r.t, err)
}

// apply commits what f writes and the moved heads in one batch.
func (r *rig) apply(f func(w Writer) error) error {
	b := r.store.NewBatch()
	defer func() { require.NoError(r.t, b.Close()) }()
	if err := f(b); err != nil {
		return err
	}
	require.NoError(r.t, r.o.Finish(b))
	return r.store.Commit(b)
}

// trim deletes up to record n, which is named as a leader names it.
func (r *rig) trim(s geo.Stream, n geo.Seq) error {
	trimmed, to := r.o.Ends(s)
	if n != to.Seq {
		at, ok, err := Before(r.store, testRange, s, n+1)
		require.NoError(r.t, err)
		require.Equal(r.t, n >= trimmed.Seq && n < to.Seq, ok)
		if to = at; !ok {
			to.Seq = n
		}
	}
	return r.apply(func(w Writer) error { return r.o.ApplyTrim(w, s, to) })
}

func stream(d *datadriven.TestData) geo.Stream {
	var lane int
	d.MaybeScanArgs(&testing.T{}, "lane", &lane)
	return geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: testRange, Lane: geo.Lane(lane)}
}

func (r *rig) run(t *testing.T, d *datadriven.TestData) string {
	s := stream(d)
	number := func(name string) (n uint64) {
		d.MaybeScanArgs(t, name, &n)
		return n
	}
	var err error
	switch d.Cmd {
	case "record":
		rec := change.Record{
			Epoch: s.Epoch, Range: s.Range, Lane: s.Lane, Service: geo.Table, Account: s.Account,
			Seq: geo.Seq(number("seq")), Prev: r.o.Head(s).Hash, CommitTime: geo.Timestamp(number("t")),
			Partition: []byte("p"), Ops: []change.Op{{Row: []byte("r"), Value: make([]byte, number("bytes"))}},
		}
		if d.HasArg("wrong-hash") {
			rec.Prev++
		}
		if d.HasArg("chunk") {
			rec.Chunks = []extent.Ref{{Length: 1}}
		}
		encoded, encodeErr := change.AppendRecord(nil, &rec)
		require.NoError(t, encodeErr)
		var out Record
		err = r.apply(func(Writer) error {
			out, err = r.o.ApplyRecord(&rec, encoded)
			return err
		})
		if err == nil {
			r.feed.Push(Added{Records: []Record{out}})
			return fmt.Sprintf("#%d of %d bytes, chunks %t", out.Seq, len(out.Bytes), out.Chunks)
		}
	case "trim":
		err = r.trim(s, geo.Seq(number("to")))
	case "forget":
		err = r.apply(func(w Writer) error { return r.o.ApplyTrim(w, s, change.OutboxHead{}) })
		requireIndexed(t, r.o)
	case "closed":
		err = r.apply(func(w Writer) error { return r.o.ApplyClosed(w, geo.Timestamp(number("t"))) })
	case "read":
		var found [][]byte
		found, err = Read(r.store, testRange, s, geo.Seq(number("from")), int(number("max")))
		if err == nil {
			return numbers(t, found)
		}
	case "reopen":
		require.NoError(t, r.store.Flush())
		require.NoError(t, r.store.Close())
		r.open()
		requireIndexed(t, r.o)
	case "push": // A group with one record of so many bytes, straight into the feed.
		r.feed.Push(Added{Records: []Record{{Bytes: make([]byte, number("bytes"))}}})
		return ""
	case "reset":
		r.feed.Reset()
		return ""
	case "take":
		added, lost := r.feed.Take()
		return fmt.Sprintf("%d groups, lost %t", len(added), lost)
	case "keys":
		return r.keys()
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	if err != nil {
		return "error: " + err.Error()
	}
	return r.state()
}

func numbers(t *testing.T, encoded [][]byte) string {
	out := make([]string, 0, len(encoded))
	for _, b := range encoded {
		h, err := change.ParseHeader(b)
		require.NoError(t, err)
		out = append(out, fmt.Sprintf("#%d", h.Seq))
	}
	return strings.Join(out, " ")
}

// state is what an observer sees: streams, backlog, closed time.
func (r *rig) state() string {
	var b strings.Builder
	heads := r.o.Heads()
	for _, s := range slices.SortedFunc(maps.Keys(heads), geo.Stream.Compare) {
		fmt.Fprintf(&b, "lane %d: head #%d, trimmed #%d\n", s.Lane, heads[s].Seq, r.o.Trimmed(s).Seq)
	}
	backlog, first := r.o.Backlog()
	oldest, err := Oldest(r.store, first)
	require.NoError(r.t, err)
	fmt.Fprintf(&b, "backlog: %d records, %d bytes, oldest t=%d; closed t=%d", backlog.Records, backlog.Bytes, oldest, r.o.closed)
	return b.String()
}

// keys lists the rows of the range by kind: the durable form.
func (r *rig) keys() string {
	var out []string
	require.NoError(r.t, keys.Each(r.store, keys.RangeLocal(testRange), func(key, value []byte) error {
		k, err := keys.ParseRangeKey(key)
		require.NoError(r.t, err)
		out = append(out, fmt.Sprintf("kind %v lane %d #%d: %d bytes", k.Kind, k.Stream.Lane, k.Seq, len(value)))
		return nil
	}))
	return strings.Join(out, "\n")
}

// The records that a trim deletes while Oldest reads are skipped, not reported missing.
func TestOldestSkipsTrimmed(t *testing.T) {
	r := &rig{t: t, fs: vfs.NewMem()}
	r.open()
	defer func() { require.NoError(t, r.store.Close()) }()
	oldest, err := Oldest(r.store, [][]byte{keys.Outbox(testRange, geo.Stream{Account: "a"}, 1)})
	require.NoError(t, err)
	require.Zero(t, oldest)
}
