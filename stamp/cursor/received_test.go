package cursor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

const testRange geo.RangeID = 4

// TestReceived runs testdata: records and closed records of the other location arrive, over
// a real state store that is closed and opened in between.
func TestReceived(t *testing.T) {
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
	r     *Received
}

func (r *rig) open() {
	var err error
	r.store, err = state.Open("state", state.Options{FS: r.fs})
	require.NoError(r.t, err)
	r.r, err = Open(testRange, r.store)
	require.NoError(r.t, err)
}

var source = geo.SourceRange{Origin: "north", Range: testRange}

func stream(account string, lane int) geo.Stream {
	return geo.Stream{Account: geo.Account(account), Epoch: geo.Epoch{Number: 1, Location: source.Origin}, Range: source.Range, Lane: geo.Lane(lane)}
}

// record is record number seq of a stream, behind the stream's cursor.
func record(s geo.Stream, seq geo.Seq, prev geo.Hash) (*change.Record, []byte) {
	rec := &change.Record{
		Epoch: s.Epoch, Range: s.Range, Lane: s.Lane, Service: geo.Table, Account: s.Account, Seq: seq, Prev: prev,
		CommitTime: geo.Timestamp(seq), Partition: []byte("p"), Ops: []change.Op{{Row: []byte("r")}},
	}
	encoded, err := change.AppendRecord(nil, rec)
	if err != nil {
		panic(err)
	}
	return rec, encoded
}

func (r *rig) run(t *testing.T, d *datadriven.TestData) string {
	account, origin, lane, seq, t0, at := "a", "", 0, uint64(0), uint64(0), uint64(0)
	d.MaybeScanArgs(t, "account", &account)
	d.MaybeScanArgs(t, "lane", &lane)
	d.MaybeScanArgs(t, "seq", &seq)
	d.MaybeScanArgs(t, "t0", &t0)
	d.MaybeScanArgs(t, "t", &at)
	if d.Cmd == "reopen" {
		require.NoError(t, r.store.Flush())
		require.NoError(t, r.store.Close())
		r.open()
		return show(r.r.Progress(source, EveryAccount))
	}
	b := r.store.NewBatch()
	defer func() { require.NoError(t, b.Close()) }()
	switch d.Cmd {
	case "record":
		s := stream(account, lane)
		prev := r.r.Applied(s).Hash
		if d.HasArg("wrong-hash") {
			prev++
		}
		rec, encoded := record(s, geo.Seq(seq), prev)
		if err := r.r.ApplyRecord(rec, encoded); err != nil {
			return "error: " + err.Error()
		}
	case "closed": // Each input line: lane and head.
		c := &change.Closed{Origin: source.Origin, Range: source.Range, Full: d.HasArg("full"), T0: geo.Timestamp(t0), T: geo.Timestamp(at)}
		if d.HasArg("origin") {
			d.ScanArgs(t, "origin", &origin)
			c.Origin = geo.Location(origin)
		}
		for line := range strings.SplitSeq(strings.TrimSpace(d.Input), "\n") {
			var lane geo.Lane
			var head geo.Seq
			if _, err := fmt.Sscanf(line, "lane %d #%d", &lane, &head); err == nil {
				c.Heads = append(c.Heads, change.StreamHead{Account: geo.Account(account), Epoch: geo.Epoch{Number: 1, Location: c.Origin}, Lane: lane, Seq: head})
			}
		}
		k := r.r.Known(geo.SourceRange{Origin: c.Origin, Range: c.Range})
		if !k.Stale(c) && !k.Joins(c, func() geo.Timestamp { return 0 }) {
			return "does not join"
		}
		require.NoError(t, r.r.ApplyClosed(b, c))
	case "recovered":
		require.NoError(t, r.r.Recovered(b))
	case "progress":
		return show(r.r.Progress(source, geo.Account(account)))
	case "keys":
		return r.keys()
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	require.NoError(t, r.r.Finish(b))
	require.NoError(t, r.store.Commit(b))
	return show(r.r.Progress(source, EveryAccount))
}

func show(p Progress) string {
	var b strings.Builder
	fmt.Fprintf(&b, "closed t=%d", p.Closed)
	slices.SortFunc(p.Streams, func(a, b StreamProgress) int { return a.Stream.Compare(b.Stream) })
	for _, s := range p.Streams {
		fmt.Fprintf(&b, "\n%s lane %d: #%d", s.Stream.Account, s.Stream.Lane, s.Applied.Seq)
		if s.Behind > 0 {
			fmt.Fprintf(&b, ", behind #%d, sync t=%d", s.Behind, s.Sync)
		}
	}
	return b.String()
}

// keys lists the rows of the range by kind: the durable form.
func (r *rig) keys() string {
	var out []string
	require.NoError(r.t, keys.Each(r.store, keys.RangeLocal(testRange), func(key, value []byte) error {
		k, err := keys.ParseRangeKey(key)
		require.NoError(r.t, err)
		out = append(out, fmt.Sprintf("kind %v lane %d: %d bytes", k.Kind, k.Stream.Lane, len(value)))
		return nil
	}))
	return strings.Join(out, "\n")
}

type sink struct{}

func (sink) Set([]byte, []byte) error { return nil }
func (sink) Delete([]byte) error      { return nil }

// The sync time of a stream is the greatest closed time whose head it has applied, as a
// twin finds it that remembers every closed time (R13). Above 64 remembered closed times it
// may be an older one of them, never a newer; at its head it is exact. A record that does
// not follow moves nothing.
func TestSyncIsGreatestReachedClosedTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &Received{
			id: testRange, cursors: map[geo.Account]map[geo.Stream]*change.Cursor{}, known: map[geo.SourceRange]Known{},
			behind: map[geo.Stream]struct{}{}, moved: map[geo.Stream]struct{}{},
		}
		s := stream("a", 3)
		var closed []change.Pair // Every closed time with the head as of it.
		var head, at geo.Seq
		var now geo.Timestamp
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				now += 10
				c := &change.Closed{Origin: source.Origin, Range: source.Range, T: now}
				if more := geo.Seq(rapid.IntRange(0, 3).Draw(t, "new records")); more > 0 || rapid.Bool().Draw(t, "full") {
					head += more
					c.Heads = []change.StreamHead{{Account: s.Account, Epoch: s.Epoch, Lane: s.Lane, Seq: head}}
				}
				require.NoError(t, r.ApplyClosed(sink{}, c))
				closed = append(closed, change.Pair{T: now, Head: geo.Head{Seq: head}})
			case 2:
				if at < head {
					rec, encoded := record(s, at+1, r.Applied(s).Hash)
					require.NoError(t, r.ApplyRecord(rec, encoded))
					at++
				}
			case 3:
				rec, encoded := record(s, at+2, r.Applied(s).Hash)
				require.ErrorIs(t, r.ApplyRecord(rec, encoded), ErrGap)
			}
			var want geo.Timestamp
			behind := false
			for _, p := range closed {
				if p.Head.Seq <= at {
					want = p.T
				} else {
					behind = true
				}
			}
			p := r.Progress(source, s.Account)
			got := p.Closed
			for _, sp := range p.Streams {
				require.Equal(t, at, sp.Applied.Seq)
				require.Equal(t, behind, sp.Behind > 0)
				if behind {
					require.Equal(t, head, sp.Behind)
					got = sp.Sync
				}
			}
			require.LessOrEqual(t, got, want)
			if !behind || len(closed) <= change.PairsMax {
				require.Equal(t, want, got)
			}
		}
	})
}

// Progress says the same after its way between nodes as JSON.
func TestProgressAsJSON(t *testing.T) {
	p := Progress{Source: source, Closed: 40, Streams: []StreamProgress{
		{Stream: stream("a", 1), Applied: geo.Head{Seq: 3, Hash: 1 << 63}},
		{Stream: stream("b", 31), Applied: geo.Head{Seq: 1}, Behind: 9, Sync: 30},
	}}
	b, err := json.Marshal(p)
	require.NoError(t, err)
	require.JSONEq(t, `{"Source":{"Origin":"north","Range":4},"Closed":40,"Streams":[
		{"Stream":{"Account":"a","Epoch":{"Number":1,"Location":"north"},"Range":4,"Lane":1},"Applied":{"Seq":3,"Hash":9223372036854775808}},
		{"Stream":{"Account":"b","Epoch":{"Number":1,"Location":"north"},"Range":4,"Lane":31},"Applied":{"Seq":1,"Hash":0},"Behind":9,"Sync":30}]}`, string(b))
	var got Progress
	require.NoError(t, json.Unmarshal(b, &got))
	require.Equal(t, p, got)
	require.Equal(t, map[geo.Stream]geo.Seq{stream("b", 31): 9}, got.Behind())
	require.Len(t, got.Cursors(), 2)
	require.Equal(t, geo.Seq(3), got.Cursors()[stream("a", 1)].Seq)
}
