package dev

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/location"
)

// hour is how long clones of these tests live.
var hour = wire.OpenClone{ForSeconds: 3600}

const northDrill geo.Account = "northacct" + geo.CloneSuffix

// cloneFiles lists the files of clones below a data folder.
func cloneFiles(t *testing.T, dir string) (out []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // Of a live store.
		}
		if err == nil && filepath.Base(filepath.Dir(path)) == "clones" {
			out = append(out, path)
		}
		return err
	}))
	return out
}

// A clone has everything that was committed at or before the Last Sync Time that it states, takes writes, and shows the
// account nothing of them, nor the account's to it. Meanwhile the account's Last Sync Time moves on. Dropped, it is
// gone with its files, and another one can be opened.
//
// Capability: Failover: A drill on a clone.
func TestCloneIsApart(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	for i := range 20 {
		put(t, c, "northacct", fmt.Sprint(i), "before")
	}
	drained(t, c)
	written := time.Now()
	eventually(t, "Last Sync Time is behind the writes", func() bool {
		r := tableStats(c, South, "northacct")
		return r.Known() && r.LastSync.Time().After(written)
	})

	clone, err := c.admin.OpenClone(t.Context(), "northacct", hour)
	require.NoError(t, err)
	require.Equal(t, South, clone.Location)
	require.Len(t, clone.Cut, 3)
	for _, cut := range clone.Cut {
		require.False(t, cut.LastSyncTime.Before(written), "%+v", cut)
	}
	for i := range 20 {
		require.Equal(t, "before", read(t, c, northDrill, "", fmt.Sprint(i)))
	}
	_, err = c.admin.OpenClone(t.Context(), "northacct", hour)
	require.ErrorContains(t, err, "has a clone already")

	put(t, c, "northacct", "1", "account")
	put(t, c, "northacct", "new", "account")
	put(t, c, northDrill, "2", "clone")
	a := call(t, c.gateway, northDrill, http.MethodPost, "/"+string(northDrill)+"/Tables", `{"TableName":"rehearsed"}`)
	require.Equal(t, http.StatusCreated, a.status, a.body)
	was := tableStats(c, South, "northacct").LastSync
	eventually(t, "Last Sync Time moves on", func() bool { return tableStats(c, South, "northacct").LastSync > was })
	eventually(t, "the account's change arrives", func() bool { return read(t, c, "northacct", "-secondary", "new") == "account" })
	require.Equal(t, "before", read(t, c, northDrill, "", "1"))
	require.Empty(t, read(t, c, northDrill, "", "new"))
	require.Equal(t, "clone", read(t, c, northDrill, "", "2"))
	require.Equal(t, "before", read(t, c, "northacct", "", "2"))
	require.Equal(t, "before", read(t, c, "northacct", "-secondary", "2"))
	a = call(t, c.gateway, "northacct", http.MethodGet, "/northacct/Tables('rehearsed')", "")
	require.Equal(t, http.StatusNotFound, a.status, a.body)

	shown, err := c.admin.Clone(t.Context(), "northacct")
	require.NoError(t, err)
	require.Equal(t, clone, shown)
	status, err := c.admin.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, northDrill, geo.Account(status.Locations[1].Clones[0].Name))
	require.NotEmpty(t, cloneFiles(t, c.o.Dir))
	got := gather(t, c)
	require.InDelta(t, 1, got[`antipode_requests_total{location="southcentralus",operation="Clone",service="table",status="201"}`], 0)
	require.InDelta(t, 1, got[`antipode_requests_total{location="southcentralus",operation="Clone",service="table",status="204"}`], 0)

	_, err = c.admin.DropClone(t.Context(), "northacct")
	require.NoError(t, err)
	requireNoClone(t, c)
	_, err = c.admin.OpenClone(t.Context(), "northacct", hour)
	require.NoError(t, err)
	require.Equal(t, "account", read(t, c, northDrill, "", "1"))
}

// requireNoClone requires that nothing is left of the clone.
func requireNoClone(t *testing.T, c *Cluster) {
	t.Helper()
	_, err := c.admin.Clone(t.Context(), "northacct")
	var said *wire.Error
	require.ErrorAs(t, err, &said)
	require.Equal(t, wire.CodeNoClone, said.Code)
	a := call(t, c.gateway, northDrill, http.MethodGet, entityPath(northDrill, "", "1"), "")
	require.Equal(t, http.StatusForbidden, a.status, a.body) // As for an account that does not exist.
	require.Equal(t, "AuthenticationFailed", a.header.Get("x-ms-error-code"))
	require.Empty(t, cloneFiles(t, c.o.Dir))
}

// A clone ends by itself after its time.
func TestCloneExpires(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	_, err := c.admin.OpenClone(t.Context(), "northacct", wire.OpenClone{ForSeconds: 1})
	require.NoError(t, err)
	eventually(t, "the clone ends", func() bool {
		_, err := c.admin.Clone(t.Context(), "northacct")
		return err != nil
	})
	eventually(t, "its files are deleted", func() bool { return len(cloneFiles(t, c.o.Dir)) == 0 })
	requireNoClone(t, c)
}

// A clone ends with its node, and what a killed process has left of one is deleted at the next start, once the node is open.
// Neither changes the live node.
func TestCloneDoesNotOutliveItsNode(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "1", "value")
	clone, err := c.admin.OpenClone(t.Context(), "northacct", hour)
	require.NoError(t, err)
	_, host, err := wire.ParseNodeName(clone.Node)
	require.NoError(t, err)
	require.NoError(t, c.locations[South].StopNode(host))
	requireNoClone(t, c)
	require.NoError(t, c.locations[South].StartNode(host))

	clone, err = c.admin.OpenClone(t.Context(), "northacct", hour)
	require.NoError(t, err)
	left := filepath.Join(c.o.Dir, string(South), clone.Node, "clones", "leftacct", "state")
	require.NoError(t, c.servers[South].Stop())
	require.Empty(t, cloneFiles(t, c.o.Dir))
	require.NoError(t, os.MkdirAll(left, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(left, "000001.sst"), []byte("what a kill leaves"), 0o644))
	lock, err := vfs.Default.Lock(filepath.Join(c.o.Dir, string(South), clone.Node, "state", "LOCK"))
	require.NoError(t, err)
	require.Error(t, c.servers[South].Start(t.Context()), "the node is another process's, and so are its clones")
	require.NotEmpty(t, cloneFiles(t, c.o.Dir))
	require.NoError(t, lock.Close())
	require.NoError(t, c.servers[South].Start(t.Context()))
	require.Empty(t, cloneFiles(t, c.o.Dir))
	eventually(t, "the secondary serves again", func() bool { return read(t, c, "northacct", "-secondary", "1") == "value" })
}

// Refused before anything is made: an account without a secondary, one of another location, one that is not there.
func TestCloneRefused(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	for _, l := range []geo.Location{North, South} {
		_, err := c.locations[l].OpenClone(t.Context(), "nobody", hour)
		require.Error(t, err)
	}
	_, err := c.locations[North].OpenClone(t.Context(), "northacct", hour)
	require.ErrorContains(t, err, string(South))
	_, err = c.admin.CreateAccount(t.Context(), wire.NewAccount{Name: "alone", Location: North, Redundancy: "LRS"})
	require.NoError(t, err)
	_, err = c.admin.OpenClone(t.Context(), "alone", hour)
	require.ErrorContains(t, err, "no secondary")
	require.Empty(t, cloneFiles(t, c.o.Dir))
	_, err = c.admin.DropClone(t.Context(), "northacct")
	require.ErrorContains(t, err, "has no clone")
}

// cloneClients returns official clients of the clone of northacct at the gateway. They know it as an account.
func cloneClients(t *testing.T, c *Cluster, account geo.Account) (*azblob.Client, *aztables.ServiceClient) {
	t.Helper()
	transport := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(transport.CloseIdleConnections)
	o := azcore.ClientOptions{Transport: transport}
	key := base64.StdEncoding.EncodeToString(key64)
	cred, err := azblob.NewSharedKeyCredential(string(account), key)
	require.NoError(t, err)
	b, err := azblob.NewClientWithSharedKeyCredential(fmt.Sprintf("http://%s/%s", c.gateway.Of(geo.Blob), account), cred, &azblob.ClientOptions{ClientOptions: o})
	require.NoError(t, err)
	tableCred, err := aztables.NewSharedKeyCredential(string(account), key)
	require.NoError(t, err)
	tables, err := aztables.NewServiceClientWithSharedKey(fmt.Sprintf("http://%s/%s", c.gateway.Of(geo.Table), account), tableCred, &aztables.ClientOptions{ClientOptions: o})
	require.NoError(t, err)
	return b, tables
}

func requireBlobIs(t *testing.T, c *azblob.Client, name string, want []byte) {
	t.Helper()
	got, err := c.DownloadStream(t.Context(), "cont", name, nil)
	require.NoError(t, err)
	body, err := io.ReadAll(got.Body)
	require.NoError(t, errors.Join(err, got.Body.Close()))
	require.True(t, bytes.Equal(want, body), "%d bytes differ from the %d written", len(body), len(want))
}

// A clone reads payload of before its cut from its host, as long as it is open, whatever becomes of it at the account
// (R9). What is written in it, blocks of before the cut included, is its own. Once it is dropped, the collection of the
// host goes on.
func TestR9CloneKeepsPayload(t *testing.T) {
	t.Parallel()
	c := startAdjusted(t, func(o *location.Options) { o.CollectGrace = 2 * time.Second })
	ctx := t.Context()
	account, _ := cloneClients(t, c, "northacct")
	_, err := account.CreateContainer(ctx, "cont", nil)
	require.NoError(t, err)
	large, block := blobContent(300<<10, 1), blobContent(100<<10, 2)
	_, err = account.UploadBuffer(ctx, "cont", "large", large, nil)
	require.NoError(t, err)
	blocks := account.ServiceClient().NewContainerClient("cont").NewBlockBlobClient("blocks")
	_, err = blocks.StageBlock(ctx, blockID(1), streaming.NopCloser(bytes.NewReader(block)), nil)
	require.NoError(t, err)
	drainedRange(t, c, geo.Blob)
	clone, err := c.admin.OpenClone(ctx, "northacct", hour)
	require.NoError(t, err)
	_, host, err := wire.ParseNodeName(clone.Node)
	require.NoError(t, err)

	drill, tables := cloneClients(t, c, northDrill)
	requireBlobIs(t, drill, "large", large)
	own := blobContent(200<<10, 3)
	_, err = drill.UploadBuffer(ctx, "cont", "own", own, nil)
	require.NoError(t, err)
	requireBlobIs(t, drill, "own", own)
	_, err = drill.ServiceClient().NewContainerClient("cont").NewBlockBlobClient("blocks").CommitBlockList(ctx, []string{blockID(1)}, nil)
	require.NoError(t, err)
	requireBlobIs(t, drill, "blocks", block)
	_, err = tables.CreateTable(ctx, "rehearsed", nil)
	require.NoError(t, err)
	_, err = tables.NewClient("rehearsed").AddEntity(ctx, []byte(`{"PartitionKey":"p","RowKey":"r","V":1}`), nil)
	require.NoError(t, err)
	_, err = tables.NewClient("rehearsed").GetEntity(ctx, "p", "r", nil)
	require.NoError(t, err)
	_, err = tables.NewClient("rehearsed").SubmitTransaction(ctx, []aztables.TransactionAction{
		action(aztables.TransactionTypeAdd, "p", "a", ""), action(aztables.TransactionTypeUpdateMerge, "p", "r", `,"V":2`),
	}, nil)
	require.NoError(t, err)
	_, err = tables.NewClient("rehearsed").GetEntity(ctx, "p", "a", nil)
	require.NoError(t, err)

	_, err = account.DeleteBlob(ctx, "cont", "large", nil)
	require.NoError(t, err)
	for i := range 160 { // So that the logs, whose entries name the payload, are trimmed.
		_, err = account.UploadBuffer(ctx, "cont", fmt.Sprint("inline", i), blobContent(15<<10, 4), nil)
		require.NoError(t, err)
	}
	holds := func(id geo.NodeID) bool {
		for _, ref := range runningStamp(c.locations[South]).Node(id).Extents().Refs() {
			if int(ref.Length) == len(large) {
				return true
			}
		}
		return false
	}
	flush := func() { // A log is trimmed below what is durable on every node.
		for _, id := range runningStamp(c.locations[South]).Nodes() {
			require.NoError(t, runningStamp(c.locations[South]).Node(id).State().Flush())
		}
	}
	drainedRange(t, c, geo.Blob)
	eventually(t, "the other nodes drop the payload", func() bool {
		flush() // Again: a node may apply the last of it later than the others.
		for _, id := range runningStamp(c.locations[South]).Nodes() {
			if id != host && holds(id) {
				return false
			}
		}
		return true
	})
	time.Sleep(6 * time.Second) // Three rounds of the host's collection.
	require.True(t, holds(host))
	requireBlobIs(t, drill, "large", large)
	_, err = c.admin.DropClone(ctx, "northacct")
	require.NoError(t, err)
	eventually(t, "the host drops the payload", func() bool { return !holds(host) })
}

// drainedRange waits until the other location has all changes of a service of the north, and has confirmed it.
func drainedRange(t *testing.T, c *Cluster, s geo.Service) {
	t.Helper()
	eventually(t, "the backlog drains", func() bool {
		r := c.locations[North].Leader(geo.FirstRange(s))
		if r == nil {
			return false
		}
		b, err := r.Machine.Backlog()
		return err == nil && b.Records == 0
	})
}
