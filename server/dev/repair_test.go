package dev

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/node"
	"antipode/stamp/state"
)

// Invariant 2: a thousand differences are planted at the secondary, in all replicas: flipped bits, dropped
// records, extra rows, deletes that came back, truncated payload. While clients write, verify finds all of
// them and nothing else, and --repair repairs each; the next verify is clean. What is damaged at
// the primary, too, is left as it is, and named.
//
// Capability: Two locations: What differs is repaired from the primary while clients write.
func TestPlantedDifferencesAreRepaired(t *testing.T) {
	t.Parallel()
	d := &damages{each: 200}
	if testing.Short() {
		d.each = 20
	}
	c := startFaulty(t)
	d.Cluster = c
	d.fill(t)
	require.Equal(t, wire.VerifyEqual, verifiedWhole(t, c, "northacct", wire.VerifyQuery{Payload: true}).Outcome)
	want := d.plant(t)
	require.Len(t, want, 5*d.each)
	stop := d.write(t)

	found := verifiedWhole(t, c, "northacct", wire.VerifyQuery{Payload: true})
	require.Equal(t, wire.VerifyDifferent, found.Outcome)
	require.EqualValues(t, len(want), found.DifferencesTotal)
	require.Nil(t, found.Repaired)
	require.ElementsMatch(t, want, plain(found.Differences))

	var repaired []wire.VerifyDifference
	eventually(t, "all is repaired", func() bool { // A lane that clients write may have to be compared again.
		v := verified(t, c, "northacct", wire.VerifyQuery{Payload: true, Repair: true})
		require.Zero(t, v.Repaired.NotRepaired, "%+v", v)
		require.Zero(t, v.Repaired.Remaining)
		require.EqualValues(t, len(v.Differences), v.Repaired.Set+v.Repaired.Deleted)
		for _, d := range v.Differences {
			require.Equal(t, d.Kind == "extra", d.Repair == "deleted", "%+v", d)
			require.Equal(t, d.Kind != "extra", d.Repair == "set", "%+v", d)
		}
		repaired = append(repaired, v.Differences...)
		return v.Outcome == wire.VerifyRepaired || v.Outcome == wire.VerifyEqual
	})
	require.ElementsMatch(t, want, plain(repaired), "each once")
	stop()
	clean := verifiedWhole(t, c, "northacct", wire.VerifyQuery{Payload: true})
	require.Equal(t, wire.VerifyEqual, clean.Outcome, "%+v", clean.Differences)
	for _, ref := range d.refs {
		for id := range geo.NodeID(nodesPerLocation) {
			eventually(t, "every replica is intact", func() bool {
				_, err := runningStamp(c.locations[South]).Node(id+1).Extents().Read(ref, 0, make([]byte, ref.Length))
				return err == nil
			})
		}
	}

	truncate(t, c, North, d.refs[:1])
	truncate(t, c, South, d.refs[:2])
	both := verifiedWhole(t, c, "northacct", wire.VerifyQuery{Payload: true, Repair: true, Service: "blob"})
	require.Equal(t, wire.VerifyDifferent, both.Outcome)
	require.EqualValues(t, 2, both.DifferencesTotal)
	require.Equal(t, []uint64{1, 1, 1}, []uint64{both.Repaired.Set, both.Repaired.NotRepaired, both.Repaired.Remaining})
	require.Contains(t, both.Differences[0].Repair, "not repaired: its payload is damaged at the primary, too")
	require.Equal(t, "set", both.Differences[1].Repair)
}

// plain are differences without what a repair and a read of a chunk add.
func plain(all []wire.VerifyDifference) (out []wire.VerifyDifference) {
	for _, d := range all {
		if d.Chunk != "" {
			d.Kind = "payload"
		}
		d.Chunk, d.Reason, d.Repair = "", "", ""
		out = append(out, d)
	}
	return out
}

// damages is a cluster whose account northacct has rows and blobs to be damaged, each of each kind.
type damages struct {
	*Cluster
	each int
	// refs are the chunks of the blobs, in order.
	refs []extent.Ref
}

// damagedPartitions is over how many partitions rows are spread.
const damagedPartitions = 20

// damagedRow is the place of a row.
func damagedRow(kind string, i int) (pk, rk string) {
	return fmt.Sprint("p", i%damagedPartitions), fmt.Sprintf("%s-%03d", kind, i)
}

// fill writes what will be damaged, and deletes at the primary what will come back.
func (d *damages) fill(t *testing.T) {
	createTable(t, d.Cluster, "northacct")
	table := sdkTable(t, d.Cluster, "")
	submit := func(kind aztables.TransactionType, props string, of ...string) {
		for p := range min(damagedPartitions, d.each) {
			for _, k := range of {
				var actions []aztables.TransactionAction
				for i := p; i < d.each; i += damagedPartitions {
					pk, rk := damagedRow(k, i)
					a := action(kind, pk, rk, props)
					if kind == aztables.TransactionTypeDelete {
						a.IfMatch = to.Ptr(azcore.ETagAny)
					}
					actions = append(actions, a)
				}
				_, err := table.SubmitTransaction(t.Context(), actions, nil)
				require.NoError(t, err)
			}
		}
	}
	submit(aztables.TransactionTypeAdd, `,"v":"kept"`, "flip", "drop", "back")
	submit(aztables.TransactionTypeDelete, "", "back")
	b := blobClient(t, d.Cluster, "northacct")
	_, err := b.CreateContainer(t.Context(), "photos", nil)
	require.NoError(t, err)
	var g errgroup.Group
	g.SetLimit(8)
	for i := range d.each {
		g.Go(func() error {
			_, err := b.UploadBuffer(t.Context(), "photos", fmt.Sprintf("b%03d", i), blobContent(20<<10, byte(i)), nil)
			return err
		})
	}
	require.NoError(t, g.Wait())
}

// write has a client write other rows of the same partitions until stop is called.
func (d *damages) write(t *testing.T) (stop func()) {
	var end atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; !end.Load(); i++ {
			pk, rk := damagedRow("busy", i%7)
			target := fmt.Sprintf("/northacct/tbl(PartitionKey='%s',RowKey='%s')", pk, rk)
			if a, err := try(d.gateway, "northacct", http.MethodPut, target, fmt.Sprintf(`{"v":"%d"}`, i)); err != nil || a.status >= 500 && !unanswered(a, err) {
				t.Errorf("write: %v %s", err, a.body)
				return
			}
		}
	})
	stop = sync.OnceFunc(func() { end.Store(true); wg.Wait() })
	t.Cleanup(stop)
	return stop
}

// plant damages the secondary: rows while its nodes are stopped, payload while they run.
func (d *damages) plant(t *testing.T) (want []wire.VerifyDifference) {
	require.NoError(t, d.servers[South].Stop())
	for id := range geo.NodeID(nodesPerLocation) {
		want, d.refs = d.plantNode(t, filepath.Join(d.o.Dir, string(South), node.Name(South, id+1)))
	}
	require.NoError(t, d.servers[South].Start(t.Context()))
	_, err := d.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	truncate(t, d.Cluster, South, d.refs)
	return want
}

func (d *damages) plantNode(t *testing.T, dir string) (want []wire.VerifyDifference, refs []extent.Ref) {
	s, err := state.Open(filepath.Join(dir, "state"), state.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	table, photos := generationOf(t, s, geo.Table, "tbl"), generationOf(t, s, geo.Blob, "photos")
	batch := s.NewBatch()
	row := func(kind string, i int) []byte {
		pk, rk := damagedRow(kind, i)
		p := keys.Partition{Service: geo.Table, Account: "northacct", Container: "tbl", Generation: table, Object: pk}
		return keys.AppendString(p.Append(nil), rk)
	}
	differ := func(what, kind string, i int) {
		pk, rk := damagedRow(kind, i)
		want = append(want, wire.VerifyDifference{Kind: what, Service: "table", Container: "tbl", Object: pk, Row: rk})
	}
	for i := range d.each {
		value, ok, err := s.Get(row("flip", i))
		require.NoError(t, err)
		require.True(t, ok)
		value[i%len(value)] ^= 1 << (i % 8)
		require.NoError(t, batch.Set(row("flip", i), value))
		differ("different", "flip", i)
		require.NoError(t, batch.Delete(row("drop", i)))
		differ("missing", "drop", i)
		require.NoError(t, batch.Set(row("back", i), value))
		differ("extra", "back", i)
		require.NoError(t, batch.Set(row("more", i), value))
		differ("extra", "more", i)

		n := blobs.Name{Account: "northacct", Container: "photos", Generation: photos, Blob: fmt.Sprintf("b%03d", i)}
		key := append(n.Partition().Append(nil), 1)
		value, ok, err = s.Get(key)
		require.NoError(t, err)
		require.True(t, ok)
		named, err := blobs.RowChunks(key, value)
		require.NoError(t, err)
		require.Len(t, named, 1)
		refs = append(refs, named...)
		want = append(want, wire.VerifyDifference{Kind: "payload", Service: "blob", Container: "photos", Object: n.Blob, Row: "blob"})
	}
	require.NoError(t, s.Commit(batch))
	require.NoError(t, batch.Close())
	require.NoError(t, s.Flush())
	return want, refs
}

// generationOf is the generation of a container of northacct.
func generationOf(t *testing.T, s kv.Getter, service geo.Service, container string) keys.Generation {
	row, err := catalog.Lookup(s, service, "northacct", container)
	require.NoError(t, err)
	require.NotNil(t, row)
	return row.Generation()
}

// truncate overwrites the second half of chunks with zeros, at every node of a location.
func truncate(t *testing.T, c *Cluster, l geo.Location, refs []extent.Ref) {
	for id := range geo.NodeID(nodesPerLocation) {
		store := runningStamp(c.locations[l]).Node(id + 1).Extents()
		at := map[extent.ChunkID]extent.Place{}
		paths := map[uint64]string{}
		for _, f := range store.Files() {
			paths[f.Number] = f.Path
			for _, p := range store.Places(f.Number) {
				at[p.Ref.ID] = p
			}
		}
		for _, ref := range refs {
			p, ok := at[ref.ID]
			require.True(t, ok)
			f, err := os.OpenFile(paths[p.File], os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteAt(make([]byte, ref.Length/2), p.Offset+int64(ref.Length)/2)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
	}
}
