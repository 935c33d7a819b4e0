package test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/devproc"
	"antipode/test/rest"
)

func blobClient(t *testing.T, p *devproc.Process, st style, secondary bool) *azblob.Client {
	t.Helper()
	cred, err := azblob.NewSharedKeyCredential(string(rest.DevAccount), rest.DevKey)
	require.NoError(t, err)
	c, err := azblob.NewClientWithSharedKeyCredential(
		endpoint(p, st, geo.Blob, secondary), cred, &azblob.ClientOptions{ClientOptions: clientOptions(p)})
	require.NoError(t, err)
	return c
}

// content returns n bytes that depend on n alone.
func content(n int) []byte {
	b := make([]byte, n)
	source := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)})
	_, _ = source.Read(b)
	return b
}

// testRehydration requires that a node without a configured time lets a client wait for an archived blob (server/config).
func testRehydration(t *testing.T, p *devproc.Process) {
	ctx, cancel := contextFor(t, time.Minute)
	defer cancel()
	c := blobClient(t, p, pathStyle, false)
	_, err := c.CreateContainer(ctx, "archive", nil)
	require.NoError(t, err)
	_, err = c.UploadBuffer(ctx, "archive", "b", content(11), &azblob.UploadBufferOptions{AccessTier: to.Ptr(blob.AccessTierArchive)})
	require.NoError(t, err)
	of := c.ServiceClient().NewContainerClient("archive").NewBlobClient("b")
	_, err = of.SetTier(ctx, blob.AccessTierCool, nil)
	require.NoError(t, err)
	got, err := of.GetProperties(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, "Archive", *got.AccessTier)
	require.Equal(t, "rehydrate-pending-to-cool", *got.ArchiveStatus)
	_, err = c.DownloadStream(ctx, "archive", "b", nil)
	requireCode(t, err, http.StatusConflict, "BlobBeingRehydrated")
}

func testBlobs(t *testing.T, p *devproc.Process, st style) {
	ctx, cancel := contextFor(t, 2*time.Minute)
	defer cancel()
	first, second := blobClient(t, p, st, false), blobClient(t, p, st, true)
	container := "sdk-" + string(st)
	_, err := first.CreateContainer(ctx, container, nil)
	require.NoError(t, err)
	_, err = first.CreateContainer(ctx, container, nil)
	requireCode(t, err, http.StatusConflict, "ContainerAlreadyExists")

	for _, size := range []int{0, 11, 20 << 10, 4 << 20} {
		name := fmt.Sprintf("dir/size %d+%%.bin", size)
		put, err := first.UploadBuffer(ctx, container, name, content(size), nil)
		require.NoError(t, err)
		requireBlob(ctx, t, first, container, name, content(size), *put.ETag)
		eventually(t, arriveWait, "blob at -secondary", func(ctx context.Context) error {
			_, err := second.ServiceClient().NewContainerClient(container).NewBlobClient(name).GetProperties(ctx, nil)
			return err
		})
		requireBlob(ctx, t, second, container, name, content(size), *put.ETag)
	}
	testBlobChange(ctx, t, first, second, container)
	testBlobList(ctx, t, first, second, container)

	for _, c := range []*azblob.Client{first, second} {
		svc := c.ServiceClient()
		of, err := svc.GetAccountInfo(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, service.SKUNameStandardRAGRS, *of.SKUName)
		require.Equal(t, service.AccountKind("StorageV2"), *of.AccountKind)
		require.False(t, *of.IsHierarchicalNamespaceEnabled)
		by, err := svc.NewContainerClient(container).GetAccountInfo(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, of.SKUName, by.SKUName)
		through, err := svc.NewContainerClient("none").NewBlobClient("none").GetAccountInfo(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, of.SKUName, through.SKUName)
	}
	stats, err := second.ServiceClient().GetStatistics(ctx, nil)
	require.NoError(t, err)
	require.NotNil(t, stats.GeoReplication)
	requirePlausible(t, string(*stats.GeoReplication.Status), stats.GeoReplication.LastSyncTime)
}

// requireBlob requires the bytes, the tag and the properties of a blob.
func requireBlob(ctx context.Context, t *testing.T, c *azblob.Client, container, name string, want []byte, etag azcore.ETag) {
	t.Helper()
	got, err := c.DownloadStream(ctx, container, name, nil)
	require.NoError(t, err)
	body, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	require.True(t, string(want) == string(body), "%d bytes differ from the %d written", len(body), len(want))
	require.Equal(t, etag, *got.ETag)

	props, err := c.ServiceClient().NewContainerClient(container).NewBlobClient(name).GetProperties(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, int64(len(want)), *props.ContentLength)
	require.Equal(t, etag, *props.ETag)
	require.Equal(t, blob.BlobTypeBlockBlob, *props.BlobType)
	require.Equal(t, *got.LastModified, *props.LastModified)
	require.WithinDuration(t, time.Now(), *props.LastModified, time.Minute)
}

// testBlobChange overwrites and deletes, at both locations.
func testBlobChange(ctx context.Context, t *testing.T, first, second *azblob.Client, container string) {
	const name = "changing"
	put, err := first.UploadBuffer(ctx, container, name, content(10), nil)
	require.NoError(t, err)
	_, err = first.UploadBuffer(ctx, container, name, content(12), &azblob.UploadBufferOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}},
	})
	requireCode(t, err, http.StatusConflict, "BlobAlreadyExists")
	over, err := first.UploadBuffer(ctx, container, name, content(13), nil)
	require.NoError(t, err)
	require.NotEqual(t, *put.ETag, *over.ETag)
	_, err = first.UploadBuffer(ctx, container, name, content(14), &azblob.UploadBufferOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: put.ETag}},
	})
	requireCode(t, err, http.StatusPreconditionFailed, "ConditionNotMet")
	requireBlob(ctx, t, first, container, name, content(13), *over.ETag)
	eventually(t, arriveWait, "overwritten blob at -secondary", func(ctx context.Context) error {
		props, err := second.ServiceClient().NewContainerClient(container).NewBlobClient(name).GetProperties(ctx, nil)
		if err != nil {
			return err
		}
		return sameOrWait(nil, *props.ETag, *over.ETag)
	})
	requireBlob(ctx, t, second, container, name, content(13), *over.ETag)

	_, err = first.DeleteBlob(ctx, container, name, nil)
	require.NoError(t, err)
	_, err = first.DownloadStream(ctx, container, name, nil)
	requireCode(t, err, http.StatusNotFound, "BlobNotFound")
	_, err = first.DeleteBlob(ctx, container, name, nil)
	requireCode(t, err, http.StatusNotFound, "BlobNotFound")
	_, err = first.UploadBuffer(ctx, "no-such-container", name, content(1), &blockblob.UploadBufferOptions{})
	requireCode(t, err, http.StatusNotFound, "ContainerNotFound")
	eventually(t, arriveWait, "delete at -secondary", func(ctx context.Context) error {
		a, err := second.DownloadStream(ctx, container, name, nil)
		if err == nil {
			_ = a.Body.Close()
			return fmt.Errorf("still there")
		}
		return nil
	})
}

// testBlobList takes the first page of a listing, and goes on from its marker with
// other clients, as one does that was stopped in between: at both locations.
func testBlobList(ctx context.Context, t *testing.T, first, second *azblob.Client, container string) {
	names := []string{"list/a", "list/b/1", "list/b/2", "list/c", "list/d"}
	var last azcore.ETag
	for _, name := range names {
		put, err := first.UploadBuffer(ctx, container, name, content(9), nil)
		require.NoError(t, err)
		last = *put.ETag
	}
	eventually(t, arriveWait, "listed blobs at -secondary", func(ctx context.Context) error {
		props, err := second.ServiceClient().NewContainerClient(container).NewBlobClient(names[4]).GetProperties(ctx, nil)
		if err != nil {
			return err
		}
		return sameOrWait(nil, *props.ETag, last)
	})
	options := azblob.ListBlobsFlatOptions{Prefix: to.Ptr("list/"), MaxResults: to.Ptr(int32(2))}
	page, err := first.NewListBlobsFlatPager(container, &options).NextPage(ctx)
	require.NoError(t, err)
	require.Len(t, page.Segment.BlobItems, 2)
	options.Marker = page.NextMarker
	for _, c := range []*azblob.Client{first, second} {
		var rest []string
		pager := c.NewListBlobsFlatPager(container, &options)
		for pager.More() {
			page, err := pager.NextPage(ctx)
			require.NoError(t, err)
			for _, item := range page.Segment.BlobItems {
				rest = append(rest, *item.Name)
			}
		}
		require.Equal(t, names[2:], rest)
	}
}
