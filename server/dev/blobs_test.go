package dev

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/server/location"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/stamp/ranges"
	"antipode/test/rest"
)

const (
	blobTestAccount = "devstoreaccount1"
	// blobTestKey is the well-known development key.
	blobTestKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	// blobTestWait is how long a change may take to arrive, on a busy machine.
	blobTestWait = 30 * time.Second
)

// blobTest is a cluster with an account, and clients of its two endpoints at the gateway
// .
type blobTest struct {
	*Cluster
	first, second *azblob.Client
}

func startBlobTest(t *testing.T) *blobTest {
	t.Helper()
	return startBlobTestWith(t, nil)
}

// startFinalized is startBlobTest with container cont, at the feature level of this program.
func startFinalized(t *testing.T) *blobTest {
	t.Helper()
	b := startBlobTest(t)
	require.NoError(t, b.FinalizeNew(t.Context()))
	_, err := b.first.CreateContainer(t.Context(), "cont", nil)
	require.NoError(t, err)
	return b
}

// startBlobTestWith is startBlobTest with other options of the locations.
func startBlobTestWith(t *testing.T, adjust func(*location.Options)) *blobTest {
	t.Helper()
	base := freeBase(t)
	c, err := Open(ClusterOptions{
		Dir: t.TempDir(), Host: "127.0.0.1", PortBase: base, Tick: testTick,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), adjust: adjust,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, c.Start(t.Context()))
	key, err := base64.StdEncoding.DecodeString(blobTestKey)
	require.NoError(t, err)
	require.NoError(t, c.EnsureAccount(t.Context(), North, blobTestAccount, key, key))
	cred, err := azblob.NewSharedKeyCredential(blobTestAccount, blobTestKey)
	require.NoError(t, err)
	transport := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(transport.CloseIdleConnections)
	client := func(account string) *azblob.Client {
		// What a client would hide by trying again is to be seen.
		b, err := azblob.NewClientWithSharedKeyCredential(fmt.Sprintf("http://127.0.0.1:%d/%s", base, account), cred, &azblob.ClientOptions{
			ClientOptions: azcore.ClientOptions{Transport: transport, Retry: rest.RetryBusy()},
		})
		require.NoError(t, err)
		return b
	}
	return &blobTest{Cluster: c, first: client(blobTestAccount), second: client(blobTestAccount + geo.SecondarySuffix)}
}

func blobContent(n int, seed byte) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed, byte(n), byte(n >> 8), byte(n >> 16)}).Read(b)
	return b
}

func requireBlobCode(t *testing.T, err error, status int, code bloberror.Code) {
	t.Helper()
	var re *azcore.ResponseError
	require.ErrorAs(t, err, &re)
	require.Equal(t, status, re.StatusCode)
	require.Equal(t, string(code), re.ErrorCode)
}

// read reads a whole blob and its tag.
func (*blobTest) read(ctx context.Context, c *azblob.Client, container, name string) ([]byte, azcore.ETag, error) {
	got, err := c.DownloadStream(ctx, container, name, nil)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(got.Body)
	return body, *got.ETag, errors.Join(err, got.Body.Close())
}

func (b *blobTest) requireBlob(t *testing.T, c *azblob.Client, container, name string, want []byte, tag azcore.ETag) {
	t.Helper()
	body, got, err := b.read(t.Context(), c, container, name)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, body), "%d bytes differ from the %d written", len(body), len(want))
	require.Equal(t, tag, got)
}

// arrives waits until the secondary holds a blob with a tag; an empty tag waits for its
// deletion.
func (b *blobTest) arrives(t *testing.T, container, name string, tag azcore.ETag) {
	t.Helper()
	props := b.second.ServiceClient().NewContainerClient(container).NewBlobClient(name)
	require.Eventually(t, func() bool {
		p, err := props.GetProperties(t.Context(), nil)
		if err != nil {
			return tag == "" && bloberror.HasCode(err, bloberror.BlobNotFound)
		}
		return *p.ETag == tag
	}, blobTestWait, 20*time.Millisecond, "%s/%s at the secondary", container, name)
}

func blobCondition(m blob.ModifiedAccessConditions) *azblob.UploadBufferOptions {
	return &azblob.UploadBufferOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &m}}
}

// An official client stores blobs inline and in chunks at the primary and reads the
// same bytes, ranges and ETag there and at -secondary; conditions hold; overwrites and
// deletions arrive; and nothing is written through -secondary.
//
// Capability: Clients: Official SDKs against both locations.
func TestBlobsWithSDK(t *testing.T) {
	t.Parallel()
	b := startBlobTest(t)
	ctx := t.Context()
	_, err := b.first.CreateContainer(ctx, "cont", nil)
	require.NoError(t, err)
	_, err = b.first.CreateContainer(ctx, "cont", nil)
	requireBlobCode(t, err, http.StatusConflict, bloberror.ContainerAlreadyExists)
	_, err = b.first.ServiceClient().NewContainerClient("cont").GetProperties(ctx, nil)
	require.NoError(t, err)

	for _, n := range []int{0, 1 << 10, 16 << 10, 16<<10 + 1, 4 << 20, 8 << 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { b.testSize(t, n) })
	}
	b.testChange(t)
	b.testSecondaryRefusesWrites(t)
	for range 2 { // A name does not rest here.
		_, err = b.first.DeleteContainer(ctx, "cont", nil)
		require.NoError(t, err)
		_, err = b.first.CreateContainer(ctx, "cont", nil)
		require.NoError(t, err)
	}
}

func (b *blobTest) testSize(t *testing.T, n int) {
	name, body := fmt.Sprintf("dir/size %d+%%.bin", n), blobContent(n, 1)
	put, err := b.first.UploadBuffer(t.Context(), "cont", name, body, &azblob.UploadBufferOptions{
		BlockSize: 8 << 20, Metadata: map[string]*string{"size": to.Ptr(fmt.Sprint(n))},
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr("text/x")},
	})
	require.NoError(t, err)
	b.requireBlob(t, b.first, "cont", name, body, *put.ETag)
	b.arrives(t, "cont", name, *put.ETag)
	b.requireBlob(t, b.second, "cont", name, body, *put.ETag)
	for _, c := range []*azblob.Client{b.first, b.second} {
		p, err := c.ServiceClient().NewContainerClient("cont").NewBlobClient(name).GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, int64(n), *p.ContentLength)
		require.Equal(t, *put.LastModified, *p.LastModified)
		require.Equal(t, put.ContentMD5, p.ContentMD5)
		require.Equal(t, "text/x", *p.ContentType)
		require.Equal(t, fmt.Sprint(n), *p.Metadata["Size"])
		if n == 0 {
			continue
		}
		off, count := int64(n/3), int64(n/2)
		part, err := c.DownloadStream(t.Context(), "cont", name, &azblob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: off, Count: count}})
		require.NoError(t, err)
		got, err := io.ReadAll(part.Body)
		require.NoError(t, errors.Join(err, part.Body.Close()))
		require.True(t, bytes.Equal(body[off:off+count], got))
		buf := make([]byte, n)
		_, err = c.DownloadBuffer(t.Context(), "cont", name, buf, &azblob.DownloadBufferOptions{BlockSize: 1 << 20})
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, buf))
	}
}

func (b *blobTest) testChange(t *testing.T) {
	ctx := t.Context()
	const name = "changing"
	one, err := b.first.UploadBuffer(ctx, "cont", name, blobContent(30_000, 1), blobCondition(blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}))
	require.NoError(t, err)
	_, err = b.first.UploadBuffer(ctx, "cont", name, []byte("x"), blobCondition(blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}))
	requireBlobCode(t, err, http.StatusConflict, bloberror.BlobAlreadyExists)
	two, err := b.first.UploadBuffer(ctx, "cont", name, blobContent(40_000, 2), blobCondition(blob.ModifiedAccessConditions{IfMatch: one.ETag}))
	require.NoError(t, err)
	require.NotEqual(t, *one.ETag, *two.ETag)
	_, err = b.first.UploadBuffer(ctx, "cont", name, []byte("x"), blobCondition(blob.ModifiedAccessConditions{IfMatch: one.ETag}))
	requireBlobCode(t, err, http.StatusPreconditionFailed, bloberror.ConditionNotMet)
	b.requireBlob(t, b.first, "cont", name, blobContent(40_000, 2), *two.ETag)
	b.arrives(t, "cont", name, *two.ETag)
	b.requireBlob(t, b.second, "cont", name, blobContent(40_000, 2), *two.ETag)

	_, err = b.first.DeleteBlob(ctx, "cont", name, nil)
	require.NoError(t, err)
	_, _, err = b.read(ctx, b.first, "cont", name)
	requireBlobCode(t, err, http.StatusNotFound, bloberror.BlobNotFound)
	_, err = b.first.DeleteBlob(ctx, "cont", name, nil)
	requireBlobCode(t, err, http.StatusNotFound, bloberror.BlobNotFound)
	_, err = b.first.UploadBuffer(ctx, "no-such", name, []byte("x"), nil)
	requireBlobCode(t, err, http.StatusNotFound, bloberror.ContainerNotFound)
	b.arrives(t, "cont", name, "")
}

func (b *blobTest) testSecondaryRefusesWrites(t *testing.T) {
	ctx := t.Context()
	put, err := b.first.UploadBuffer(ctx, "cont", "kept", []byte("kept"), nil)
	require.NoError(t, err)
	b.arrives(t, "cont", "kept", *put.ETag)
	_, err = b.second.UploadBuffer(ctx, "cont", "kept", blobContent(20_000, 1), nil)
	requireBlobCode(t, err, http.StatusForbidden, bloberror.InsufficientAccountPermissions)
	_, err = b.second.DeleteBlob(ctx, "cont", "kept", nil)
	requireBlobCode(t, err, http.StatusForbidden, bloberror.InsufficientAccountPermissions)
	_, err = b.second.CreateContainer(ctx, "another", nil)
	requireBlobCode(t, err, http.StatusForbidden, bloberror.InsufficientAccountPermissions)
	b.requireBlob(t, b.first, "cont", "kept", []byte("kept"), *put.ETag)
	b.requireBlob(t, b.second, "cont", "kept", []byte("kept"), *put.ETag)
}

// Every chunk that an acknowledged blob names is durable on all three nodes of the
// primary, and, once the blob is readable at the secondary, on all three there.
// It holds invariant 1.
func TestBlobChunksOnEveryNode(t *testing.T) {
	t.Parallel()
	b := startBlobTest(t)
	_, err := b.first.CreateContainer(t.Context(), "cont", nil)
	require.NoError(t, err)
	body := blobContent(3<<20+5, 1)
	put, err := b.first.UploadBuffer(t.Context(), "cont", "b", body, nil)
	require.NoError(t, err)
	inSync(t, b.Cluster, North, geo.Blob)
	b.requireOnEveryNode(t, North, body)
	b.arrives(t, "cont", "b", *put.ETag)
	inSync(t, b.Cluster, South, geo.Blob)
	b.requireOnEveryNode(t, South, body)
}

func (b *blobTest) requireOnEveryNode(t *testing.T, where geo.Location, body []byte) {
	t.Helper()
	l := b.locations[where]
	name := blobs.Name{Account: blobTestAccount, Container: "cont", Blob: "b"}
	require.NoError(t, l.Read(t.Context(), geo.FirstRange(geo.Catalog), func(s ranges.State) error {
		c, err := catalog.GetContainer(s, geo.Blob, name.Account, name.Container)
		if err == nil {
			name.Generation = c.Generation()
		}
		return err
	}))
	var stored blobs.Blob
	require.NoError(t, l.Read(t.Context(), geo.FirstRange(geo.Blob), func(s ranges.State) (err error) {
		stored, err = blobs.GetBlob(s, name)
		return err
	}))
	require.Len(t, stored.Chunks, 4)
	for _, id := range runningStamp(l).Nodes() {
		rest := body
		for _, ref := range stored.Chunks {
			n := runningStamp(l).Node(id)
			require.True(t, n.Extents().Durable(ref.ID), "%s node %d", where, id)
			p := make([]byte, ref.Length)
			_, err := n.ReadChunk(ref, 0, p)
			require.NoError(t, err)
			require.True(t, bytes.Equal(rest[:len(p)], p))
			rest = rest[len(p):]
		}
	}
}
