package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/api/apitest"
	"antipode/geo"
	"antipode/services"
	"antipode/services/blobs"
	"antipode/services/tables"
	"antipode/services/tables/entity"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const account geo.Account = "acct"

// put is a command that does a write of a service, as the write role would.
type put struct {
	w      services.Write
	chunks []extent.Ref
}

func (c put) Evaluate(tx *ranges.Tx) error {
	at := tx.Timestamp(0)
	e, err := c.w.Evaluate(tx, at)
	if err != nil {
		return err
	}
	p := c.w.Partition()
	return tx.Change(p, change.Record{CommitTime: at, Partition: p.Append(nil), Ops: e.Ops, Chunks: c.chunks})
}

// receiveClosed is a command by which a range receives the closed time of another one.
type receiveClosed struct{ c change.Closed }

func (r receiveClosed) Evaluate(tx *ranges.Tx) error {
	tx.TakeClosed(&r.c)
	return nil
}

// stopped returns the folders of a stamp that wrote n entities and n chunks and stopped,
// its state flushed or not.
func stopped(t *testing.T, n int) *vfs.MemFS {
	fs := vfs.NewMem()
	s := apitest.NewStamp(t, fs, account, geo.Table, geo.Blob)
	g := keys.Generation{Epoch: 1, Created: 16}
	for i := range n {
		props := entity.Build(nil)
		require.NoError(t, props.AddString("Name", strings.Repeat("v", 300)))
		require.NoError(t, s.Submit(t.Context(), geo.FirstRange(geo.Table), put{w: &tables.Write{
			Account: account, Table: "Orders", Generation: g, PK: fmt.Sprintf("p%03d", i), RK: "row", Op: tables.Insert, Props: props.Bytes(),
		}}))
		data := []byte(strings.Repeat(fmt.Sprintf("payload %d ", i), 5000))
		ref := extent.NewRef(extent.ChunkID{byte(i + 1)}, data)
		require.NoError(t, s.PutChunk(t.Context(), ref, data))
		name := blobs.Name{Account: account, Container: "box", Generation: g, Blob: fmt.Sprintf("b%03d", i)}
		require.NoError(t, s.Submit(t.Context(), geo.FirstRange(geo.Blob), put{
			w: &blobs.PutBlob{Command: blobs.Command{Name: name}, Blob: blobs.Blob{Length: uint64(len(data)), Chunks: []extent.Ref{ref}}}, chunks: []extent.Ref{ref},
		}))
	}
	require.NoError(t, s.Submit(t.Context(), geo.FirstRange(geo.Table), receiveClosed{change.Closed{
		Origin: "south", Range: 4, Full: true, T: 1 << 50,
		Heads: []change.StreamHead{{Account: "other", Epoch: geo.Epoch{Number: 1, Location: "south"}, Lane: 3, Seq: 7}},
	}}))
	for _, r := range []geo.RangeID{geo.FirstRange(geo.Table), geo.FirstRange(geo.Blob)} {
		at := s.Leader(r).Machine.AppliedState().Index
		for _, id := range s.Nodes() { // Followers apply after the answer.
			m := s.Node(id).Range(r).Machine
			require.Eventually(t, func() bool { return m.AppliedState().Index >= at }, 20*time.Second, time.Millisecond)
		}
	}
	require.NoError(t, s.Close())
	return fs
}

func first(t *testing.T, fs vfs.FS) Node {
	nodes, err := Nodes(fs, "data")
	require.NoError(t, err)
	require.Len(t, nodes, 3)
	require.Equal(t, node.Name("north", 1), nodes[0].Name)
	return nodes[0]
}

// tree is every file below dir with its bytes.
func tree(t *testing.T, fs vfs.FS, dir string) map[string]string {
	out := map[string]string{}
	names, err := fs.List(dir)
	require.NoError(t, err)
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		require.NoError(t, err)
		if info.IsDir() {
			for k, v := range tree(t, fs, path) {
				out[k] = v
			}
			continue
		}
		f, err := fs.Open(path)
		require.NoError(t, err)
		b, err := io.ReadAll(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		out[path] = string(b)
	}
	return out
}

// all is every report of a node.
func all(t *testing.T, n Node, o Options) (rows []Row, damaged int) {
	emit := func(r Row) error {
		b, err := json.Marshal(r)
		require.NoError(t, err)
		require.Contains(t, string(b), `"type":"`)
		require.NotEmpty(t, r.Text())
		rows = append(rows, r)
		return nil
	}
	for _, report := range []func() (int, error){
		func() (int, error) { return Log(n, o, emit) },
		func() (int, error) { return State(n, o, emit) },
		func() (int, error) { return Lanes(n, o, emit) },
		func() (int, error) { return Extents(t.Context(), n, o, emit) },
	} {
		d, err := report()
		require.NoError(t, err)
		damaged += d
	}
	return rows, damaged
}

// What a node wrote is all in the reports, decoded; nothing is damaged; and not a byte of
// the folder changes.
//
// Capability: Operation: `antipode inspect log`, `state`, `extents`, `lanes`.
func TestReportsOfAWholeFolder(t *testing.T) {
	fs := stopped(t, 12)
	before := tree(t, fs, "data")
	rows, damaged := all(t, first(t, fs), Options{Chunks: true, Verify: true})
	require.Zero(t, damaged)
	require.Equal(t, before, tree(t, fs, "data"))
	kinds := map[string]int{}
	for _, r := range rows {
		switch r := r.(type) {
		case LogRecord:
			for _, p := range append([]Part{}, partsOf(r)...) {
				kinds["log "+p.Part]++
			}
			kinds["log "+r.Record]++
		case StateRow:
			kinds["state "+r.Kind]++
		case StateRange:
			require.Equal(t, "member", r.Phase)
			require.EqualValues(t, 1, r.Replica)
			require.Positive(t, r.Applied)
			require.LessOrEqual(t, r.Applied, r.LogLast)
		case Lane:
			kinds["lane "+r.Side]++
			if r.Side == "source" {
				require.Equal(t, r.Head, r.OutboxRecords)
				require.Equal(t, r.Head, r.OutboxTo)
			} else {
				require.EqualValues(t, 7, r.Missing)
			}
		case Extent:
			kinds["extent"]++
		case Chunk:
			require.Equal(t, "sound", r.State)
			kinds["chunk"]++
		}
	}
	require.Equal(t, 12, kinds["state entity"])
	require.Equal(t, 12, kinds["state blob"])
	require.Equal(t, 24, kinds["state outbox"])
	require.Equal(t, 12, kinds["chunk"])
	require.Equal(t, 24, kinds["log change"])
	require.Equal(t, 1, kinds["lane receiver"])
	for _, kind := range []string{"log gate", "log received-closed", "log hard-state", "state gate", "state head", "state applied", "state cursor", "extent"} {
		require.Positive(t, kinds[kind], kind)
	}
}

func partsOf(r LogRecord) []Part {
	if r.Group == nil {
		return nil
	}
	return r.Group.Parts
}

// The lines for people, with what differs from run to run replaced.
func TestText(t *testing.T) {
	n := first(t, stopped(t, 1))
	var out []string
	emit := func(r Row) error {
		text := r.Text()
		for re, to := range map[string]string{
			`\d{4}-\d\d-\d\dT[0-9:.]+Z`: "TIME", `[0-9a-f]{16}`: "HASH", `group \d+\.\d+`: "group G",
		} {
			text = regexp.MustCompile(re).ReplaceAllString(text, to)
		}
		out = append(out, text)
		return nil
	}
	_, err := State(n, Options{Range: 4, Kind: "entity"}, emit)
	require.NoError(t, err)
	_, err = Lanes(n, Options{Range: 4}, emit)
	require.NoError(t, err)
	require.Contains(t, out, `r4  entity      table acct/orders@1.TIME/"p000"/"row"  TIME, 1 properties`)
	require.True(t, slices.ContainsFunc(out, func(s string) bool {
		return regexp.MustCompile(`^r4  acct/1@north/r4/l\d+ +source    head 1 HASH, acknowledged 0, outbox 1 to 1 \(1 records, \d+ bytes\)$`).MatchString(s)
	}), out)
	require.Contains(t, out, "r4  other/1@south/r4/l3                       receiver  cursor 0 HASH, sync time -, misses up to 7")
}

// Whatever byte of whatever file is damaged, the reports neither panic nor fail, and name
// the store it is in where anything they show changed.
//
// Capability: Operation: `antipode inspect log`, `state`, `extents`, `lanes`.
func TestReportsOfADamagedFolder(t *testing.T) {
	fs := stopped(t, 6)
	n := first(t, fs)
	whole, _ := all(t, n, Options{Verify: true})
	files := tree(t, fs, n.Dir)
	paths := []string{}
	for path, b := range files {
		if len(b) > 0 {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	rng := rand.New(rand.NewPCG(5, 6))
	named := map[string]int{}
	rounds := 150
	if testing.Short() {
		rounds = 30
	}
	for range rounds {
		path := paths[rng.IntN(len(paths))]
		b := []byte(files[path])
		used := max(1, len(strings.TrimRight(files[path], "\x00")))
		b[rng.IntN(used)] ^= 1 << rng.IntN(8)
		write(t, fs, path, b)
		rows, damaged := all(t, n, Options{Verify: true})
		for _, r := range rows {
			if d, ok := r.(Damage); ok {
				named[d.Store]++
			}
		}
		// The store takes a damaged end of its manifest, as of a log, for a torn one: the
		// state is then that of an older flush, and not wrong.
		if damaged == 0 && !strings.Contains(path, "MANIFEST") {
			require.Equal(t, len(whole), len(rows), path)
		}
		write(t, fs, path, []byte(files[path]))
	}
	for _, store := range []string{"log", "state", "extents"} {
		require.Positive(t, named[store], store)
	}
}

func write(t *testing.T, fs vfs.FS, path string, b []byte) {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(slices.Clone(b))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// A folder that holds no node is refused in one line, and a folder that is looked at
// refuses every change.
func TestFolders(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll("empty", 0o755))
	_, err := Nodes(fs, "empty")
	require.ErrorContains(t, err, "holds no node")
	_, err = Nodes(fs, "none")
	require.ErrorContains(t, err, "cannot read none")
	_, err = readOnly{fs}.Create("x", vfs.WriteCategoryUnspecified)
	require.ErrorIs(t, err, ErrReadOnly)
}
