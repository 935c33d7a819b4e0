package dev

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/node"
	"antipode/stamp/state"
)

// verified compares an account to the end.
func verified(t *testing.T, c *Cluster, name geo.Account, q wire.VerifyQuery) wire.Verify {
	t.Helper()
	client := adminClient(t, c)
	var v wire.Verify
	var err error
	eventually(t, "a former primary follows", func() bool {
		v, err = client.StartVerify(t.Context(), name, q)
		var said *wire.Error
		return !errors.As(err, &said) || said.Code != wire.CodeBusy
	})
	require.NoError(t, err)
	eventually(t, "the comparison ends", func() bool {
		v, err = client.Verify(t.Context(), name)
		return err == nil && v.State == wire.VerifyDone
	})
	return v
}

// verifiedWhole is verified again until all lanes were compared: a busy machine may not let one stand still.
func verifiedWhole(t *testing.T, c *Cluster, name geo.Account, q wire.VerifyQuery) (v wire.Verify) {
	t.Helper()
	eventually(t, "all lanes are compared", func() bool {
		v = verified(t, c, name, q)
		for _, r := range v.Ranges {
			if len(r.NotCompared) > 0 {
				return false
			}
		}
		return true
	})
	return v
}

// blobClient is a client of the account's blobs at the gateway.
func blobClient(t *testing.T, c *Cluster, account string) *azblob.Client {
	t.Helper()
	cred, err := azblob.NewSharedKeyCredential(account, base64.StdEncoding.EncodeToString(key64))
	require.NoError(t, err)
	transport := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(transport.CloseIdleConnections)
	b, err := azblob.NewClientWithSharedKeyCredential("http://"+c.gateway.Of(geo.Blob)+"/"+account, cred, &azblob.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: transport},
	})
	require.NoError(t, err)
	return b
}

// Two locations under traffic: nothing is reported. Then rows of the secondary are damaged, on every
// replica: each difference is found and named, and nothing else is.
//
// Capability: Two locations: Both copies of an account are compared while clients write, at one record of each
// stream.
func TestVerify(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	for i := range 40 {
		put(t, c, "northacct", fmt.Sprintf("k%d", i), "v")
	}
	b := blobClient(t, c, "northacct")
	_, err := b.CreateContainer(t.Context(), "photos", nil)
	require.NoError(t, err)
	for i := range 6 {
		_, err := b.UploadBuffer(t.Context(), "photos", fmt.Sprintf("b%d", i), blobContent(300<<10, byte(i)), nil)
		require.NoError(t, err)
	}
	gone := call(t, c.gateway, "northacct", http.MethodDelete, entityPath("northacct", "", "k7"), "", "If-Match", "*")
	require.Equal(t, http.StatusNoContent, gone.status)

	var writes atomic.Int64
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if a, err := try(c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", fmt.Sprint("w", i%30)), fmt.Sprintf(`{"v":"%d"}`, i)); err == nil && a.status == http.StatusNoContent {
				writes.Add(1)
			}
		}
	})
	for writes.Load() < 200 {
		busy := verified(t, c, "northacct", wire.VerifyQuery{})
		require.Empty(t, busy.Differences)
		require.Zero(t, busy.DifferencesTotal)
		require.Len(t, busy.Ranges, 4)
		for _, r := range busy.Ranges {
			require.Positive(t, r.Compared, "%s: %v", r.Service, r.NotCompared)
		}
	}
	close(stop)
	writer.Wait()

	still := verifiedWhole(t, c, "northacct", wire.VerifyQuery{Payload: true})
	require.Equal(t, wire.VerifyEqual, still.Outcome, "%+v", still)
	for _, r := range still.Ranges {
		switch r.Service {
		case "table":
			require.EqualValues(t, 39+30, r.Rows)
		case "blob":
			require.EqualValues(t, []uint64{6, 6, 6 * 300 << 10}, []uint64{r.Rows, r.Chunks, r.ChunkBytes})
		case "catalog":
			require.EqualValues(t, 2, r.Rows, "the two containers; the account's own row is each location's own")
		}
	}
	want := c.damage(t)
	seen := verifiedWhole(t, c, "northacct", wire.VerifyQuery{})
	require.Equal(t, wire.VerifyDifferent, seen.Outcome)
	require.EqualValues(t, len(want), seen.DifferencesTotal)
	for i := range seen.Differences {
		seen.Differences[i].Chunk = ""
	}
	require.ElementsMatch(t, want, seen.Differences)
	require.Empty(t, verifiedWhole(t, c, "southacct", wire.VerifyQuery{}).Differences, "the other account")
}

// damage changes rows and drops a chunk of northacct at every node of the south, and returns what differs
// then.
func (c *Cluster) damage(t *testing.T) []wire.VerifyDifference {
	t.Helper()
	account, err := c.locations[North].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.NotNil(t, account)
	require.NoError(t, c.servers[South].Stop())
	var dropped extent.Ref
	for id := range geo.NodeID(nodesPerLocation) {
		dropped = damageNode(t, filepath.Join(c.o.Dir, string(South), node.Name(South, id+1)))
	}
	require.NoError(t, c.servers[South].Start(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = c.WaitLive(ctx, "northacct")
	require.NoError(t, err)
	for id := range geo.NodeID(nodesPerLocation) {
		require.NoError(t, runningStamp(c.locations[South]).Node(id+1).Extents().Delete(dropped.ID))
	}
	table := func(kind, key string) wire.VerifyDifference {
		return wire.VerifyDifference{Kind: kind, Service: "table", Container: "tbl", Object: key, Row: "r"}
	}
	return []wire.VerifyDifference{
		table("different", "k1"), table("missing", "k2"), table("extra", "added"), table("extra", "k7"),
		{Kind: "different", Service: "catalog", Object: "table/tbl"},
		{Kind: "missing", Service: "blob", Container: "photos", Object: "b1", Row: "blob"},
		{Kind: "payload missing", Service: "blob", Container: "photos", Object: "b2", Row: "blob", Reason: "missing"},
	}
}

// damageNode changes the state of a stopped node, and returns a chunk of the blob b2.
func damageNode(t *testing.T, dir string) (dropped extent.Ref) {
	t.Helper()
	s, err := state.Open(filepath.Join(dir, "state"), state.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	entity := func(key string) []byte {
		p := keys.Partition{Service: geo.Table, Account: "northacct", Container: "tbl", Generation: generationOf(t, s, geo.Table, "tbl"), Object: key}
		return keys.AppendString(p.Append(nil), "r")
	}
	blob := func(name string) []byte {
		n := blobs.Name{Account: "northacct", Container: "photos", Generation: generationOf(t, s, geo.Blob, "photos"), Blob: name}
		return append(n.Partition().Append(nil), 1)
	}
	value := func(key []byte) []byte {
		v, ok, err := s.Get(key)
		require.NoError(t, err)
		require.True(t, ok, "%q", key)
		return v
	}
	refs, err := blobs.RowChunks(blob("b2"), value(blob("b2")))
	require.NoError(t, err)
	require.Len(t, refs, 1)
	flipped := value(entity("k1"))
	flipped[len(flipped)-1] ^= 1
	table := catalog.ContainerPartition(geo.Table, "northacct", "tbl").Append(nil)
	batch := s.NewBatch()
	require.NoError(t, batch.Set(entity("k1"), flipped))
	require.NoError(t, batch.Delete(entity("k2")))
	require.NoError(t, batch.Set(entity("added"), value(entity("k3"))))
	require.NoError(t, batch.Set(entity("k7"), value(entity("k3"))))
	require.NoError(t, batch.Set(table, append(value(table), ' ')))
	require.NoError(t, batch.Delete(blob("b1")))
	require.NoError(t, s.Commit(batch))
	require.NoError(t, batch.Close())
	require.NoError(t, s.Flush())
	return refs[0]
}

// Who may compare what: an account with one copy is refused, and so is one that nobody knows; a port of
// the secondary's location has the primary's compare.
//
// Capability: Two locations: Both copies of an account are compared while clients write, at one record of each
// stream.
func TestVerifyIsRefused(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createAs(t, c, "local", North, "LRS")
	for name, code := range map[geo.Account]string{"local": wire.CodeNoSecondary, "nobody": "ResourceNotFound"} {
		_, err := adminClient(t, c).StartVerify(t.Context(), name, wire.VerifyQuery{})
		var said *wire.Error
		require.ErrorAs(t, err, &said)
		if code != "ResourceNotFound" {
			require.Equal(t, code, said.Code)
		} else {
			require.Equal(t, http.StatusNotFound, said.Status)
		}
	}
	_, err := adminClient(t, c).Verify(t.Context(), "northacct")
	var said *wire.Error
	require.ErrorAs(t, err, &said)
	require.Equal(t, wire.CodeNoVerify, said.Code)
	south, err := wire.New("http://"+c.ports[South].Admin(), nil)
	require.NoError(t, err)
	v, err := south.StartVerify(t.Context(), "northacct", wire.VerifyQuery{Service: "table"})
	require.NoError(t, err)
	require.Equal(t, North, v.Primary)
	require.Len(t, v.Ranges, 2)

	eventually(t, "it ends", func() bool {
		v, err = south.Verify(t.Context(), "northacct")
		return err == nil && v.State == wire.VerifyDone
	})
	c.link.Cut()
	cut := verified(t, c, "northacct", wire.VerifyQuery{Service: "table"})
	require.Equal(t, wire.VerifyIncomplete, cut.Outcome)
	require.Empty(t, cut.Differences)
	require.Len(t, cut.Ranges[0].NotCompared, geo.LaneCount)
	require.Contains(t, cut.Ranges[0].NotCompared[0].Reason, "cut")
}
