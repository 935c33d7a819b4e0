package primary

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services"
	"antipode/services/blobs"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// TestWrite runs testdata: the stamp north evaluates writes of an account under its gate and in a
// generation of table t. Gate and generation decide what a write sees, whether it changes
// anything and whether it is numbered.
func TestWrite(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := stamptest.New(t, "north", geo.Table)
		r := &rig{stamp: s, primary: New(s)}
		datadriven.RunTest(t, path, r.run)
	})
}

type rig struct {
	stamp   *stamp.Stamp
	primary *Primary
	// last is the commit time of the previous write.
	last geo.Timestamp
}

func (r *rig) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "gate":
		g := change.Gate{Role: change.RolePrimary, Open: d.HasArg("open"), Numbered: d.HasArg("numbered")}
		if d.HasArg("secondary") {
			g.Role = change.RoleSecondary
		}
		d.ScanArgs(t, "epoch", (*uint64)(&g.Epoch.Number))
		g.Epoch.Location = "north"
		stamptest.Submit(t, r.stamp, geo.FirstRange(geo.Table), stamptest.Gate{Account: "acct", Gate: g})
		return ""
	case "close-generation":
		err := r.primary.CloseGeneration(t.Context(), geo.Table, "acct", "T", generation(t, d))
		return fmt.Sprint(err)
	case "write":
		w := &write{generation: generation(t, d), fail: d.HasArg("fail"), chunk: d.HasArg("chunk")}
		d.MaybeScanArgs(t, "value", &w.value)
		if d.HasArg("future") { // The catalog's clock is ahead of this range's.
			w.generation.Created = geo.TimestampOf(clock.System{}.Now().Add(time.Hour))
		}
		if err := r.primary.Write(t.Context(), w); err != nil {
			return "error: " + err.Error()
		}
		return r.show(w)
	}
	t.Fatalf("unknown command %q", d.Cmd)
	return ""
}

func generation(t *testing.T, d *datadriven.TestData) keys.Generation {
	var created uint64
	d.MaybeScanArgs(t, "generation", &created)
	if created == 0 {
		return keys.Generation{}
	}
	return keys.Generation{Epoch: 1, Created: geo.Timestamp(created)}
}

// show reports what a write saw and what the range then holds.
func (r *rig) show(w *write) string {
	leader := r.stamp.Leader(geo.FirstRange(geo.Table))
	p := w.Partition()
	v, _, err := leader.State().Get(append(p.Append(nil), 'r'))
	if err != nil {
		return err.Error()
	}
	numbers := "no stream"
	heads, _ := leader.Machine.Heads()
	newest := geo.EpochNumber(0)
	for st, h := range heads {
		if st.Epoch.Number > newest {
			newest = st.Epoch.Number
			numbers = fmt.Sprintf("stream of epoch %d at #%d", st.Epoch.Number, h.Seq)
		}
	}
	later := w.at > r.last && w.at > p.Generation.Created
	r.last = w.at
	return fmt.Sprintf("saw %q, holds %q, %s; later than all before: %t", w.saw, v, numbers, later)
}

// write sets one row of partition p of table t.
type write struct {
	generation  keys.Generation
	value       string
	fail, chunk bool
	// saw and at are results: the row before, and the commit time.
	saw string
	at  geo.Timestamp
}

var (
	errFailed = errors.New("the condition is not met")
	errGone   = errors.New("the table is gone")
)

func (w *write) Partition() keys.Partition {
	return keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Generation: w.generation, Object: "p"}
}

func (w *write) Gone() error { return errGone }

func (w *write) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	v, _, err := get.Get(append(w.Partition().Append(nil), 'r'))
	w.saw, w.at = string(v), at
	if w.fail {
		return services.Effect{}, errFailed
	}
	effect := services.Effect{Ops: []change.Op{{Row: []byte("r"), Value: []byte(w.value)}}}
	if w.chunk {
		effect.Chunks = []extent.Ref{extent.NewRef(extent.ChunkID{1}, []byte("payload"))}
	}
	return effect, err
}

// The command that closes a generation is the same at the node that leads.
func TestCloseGenerationTravels(t *testing.T) {
	t.Parallel()
	sent := closeGeneration{key: []byte("key")}
	var got ranges.Portable
	got, err := Commands()[sent.Kind()](sent.Encode())
	if err != nil || string(got.(closeGeneration).key) != "key" || got.EncodeResult() != nil || sent.DecodeResult(nil) != nil {
		t.Fatal(got, err)
	}
}

// noRows is a state without rows.
type noRows struct{}

func (noRows) Get([]byte) ([]byte, bool, error) { return nil, false, nil }

// To name the payload of a copy costs each of its rows the same, however many there are: a change has thousands of them, and is
// evaluated on the scheduler. What is allocated is counted, since time is the machine's; so the test runs alone.
func TestNamesOfACopyAreLinear(t *testing.T) {
	of := func(blocks int) (allocated uint64) {
		w := &blobs.CopyBlob{Command: blobs.Command{Name: blobs.Name{Account: "acct", Container: "c", Blob: "b"}}}
		w.Begin([16]byte{1})
		for i := range blocks {
			ref := extent.NewRef(extent.ChunkID{byte(i), byte(i >> 8)}, make([]byte, 20<<10))
			w.Add([]blobs.CopyBlock{{ID: fmt.Sprintf("%05d", i), Block: blobs.Block{Length: 20 << 10, Chunks: []extent.Ref{ref}}}})
		}
		effect, err := w.Evaluate(noRows{}, 9)
		require.NoError(t, err)
		require.Len(t, effect.Chunks, blocks)
		p, rec := w.Partition(), change.Record{Ops: effect.Ops, Chunks: effect.Chunks}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.NoError(t, nameAll(nil, p, change.Gate{Numbered: true}, &rec))
		runtime.ReadMemStats(&after)
		require.Len(t, rec.Chunks, blocks)
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := of(400), of(4000)
	require.Less(t, many, 20*few, "ten times the rows")
}
