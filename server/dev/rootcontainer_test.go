package dev

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/stretchr/testify/require"

	"antipode/test/rest"
)

// short is a client of a blob of the root container by its path of one segment.
func (*blobTest) short(t *testing.T, c *azblob.Client, name string) *blockblob.Client {
	t.Helper()
	cred, err := azblob.NewSharedKeyCredential(blobTestAccount, blobTestKey)
	require.NoError(t, err)
	transport := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(transport.CloseIdleConnections)
	of, err := blockblob.NewClientWithSharedKeyCredential(strings.TrimSuffix(c.URL(), "/")+"/"+name, cred, &blockblob.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: transport, Retry: rest.RetryBusy()},
	})
	require.NoError(t, err)
	return of
}

// boxes are the names of the containers that a client lists.
func boxes(t *testing.T, c *azblob.Client) (names []string) {
	t.Helper()
	for pager := c.NewListContainersPager(&azblob.ListContainersOptions{MaxResults: to.Ptr[int32](1)}); pager.More(); {
		page, err := pager.NextPage(t.Context())
		require.NoError(t, err)
		for _, of := range page.ContainerItems {
			names = append(names, *of.Name)
		}
	}
	return names
}

func inBox(t *testing.T, c *azblob.Client, box string) (names []string) {
	t.Helper()
	for pager := c.NewListBlobsFlatPager(box, nil); pager.More(); {
		page, err := pager.NextPage(t.Context())
		if bloberror.HasCode(err, bloberror.ContainerNotFound) {
			return nil
		}
		require.NoError(t, err)
		for _, of := range page.Segment.BlobItems {
			names = append(names, *of.Name)
		}
	}
	return names
}

// readAt reads a blob by its client.
func readAt(t *testing.T, of *blob.Client) (string, error) {
	t.Helper()
	got, err := of.DownloadStream(t.Context(), nil)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return string(body), got.Body.Close()
}

// An official client makes $root and $web before the upgrade is finalized, writes by both paths of a blob, and reads it by
// both at both locations, by key and by signature, through a planned failover; $logs it neither makes nor finds.
func TestRootContainerWithSDK(t *testing.T) {
	t.Parallel()
	b := startBlobTest(t)
	ctx := t.Context()
	svc := b.first.ServiceClient()
	root := svc.NewContainerClient("$root")
	_, err := b.short(t, b.first, "b").UploadBuffer(ctx, []byte("x"), nil)
	requireBlobCode(t, err, 404, bloberror.ContainerNotFound)
	_, err = root.Create(ctx, &container.CreateOptions{Metadata: map[string]*string{"of": to.Ptr("root")}})
	require.NoError(t, err)
	_, err = b.first.CreateContainer(ctx, "$web", nil)
	require.NoError(t, err)
	for _, name := range []string{"$logs", "$blobchangefeed"} {
		_, err = b.first.CreateContainer(ctx, name, nil)
		requireBlobCode(t, err, 403, bloberror.InsufficientAccountPermissions)
		for _, c := range []*azblob.Client{b.first, b.second} {
			require.Nil(t, inBox(t, c, name))
		}
	}

	want := map[string]string{"inline": "short", "chunks": string(blobContent(50_000, 1))}
	_, err = b.short(t, b.first, "inline").UploadBuffer(ctx, []byte(want["inline"]), nil)
	require.NoError(t, err)
	_, err = b.first.UploadBuffer(ctx, "$root", "chunks", []byte(want["chunks"]), nil)
	require.NoError(t, err)
	_, err = b.first.UploadBuffer(ctx, "$root", "dir/b", []byte("x"), nil)
	requireBlobCode(t, err, 400, bloberror.InvalidURI)
	_, err = b.first.UploadBuffer(ctx, "$web", "css/a.css", []byte("a{}"), nil)
	require.NoError(t, err)

	check := func(c *azblob.Client) {
		t.Helper()
		require.Equal(t, []string{"$root", "$web"}, boxes(t, c))
		require.Equal(t, []string{"chunks", "inline"}, inBox(t, c, "$root"))
		require.Equal(t, []string{"css/a.css"}, inBox(t, c, "$web"))
		for name, body := range want {
			for _, of := range []*blob.Client{
				c.ServiceClient().NewContainerClient("$root").NewBlobClient(name), b.short(t, c, name).BlobClient(),
			} {
				got, err := readAt(t, of)
				require.NoError(t, err)
				require.Equal(t, body, got)
			}
		}
		p, err := c.ServiceClient().NewContainerClient("$root").GetProperties(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, "root", *p.Metadata["Of"])
	}
	check(b.first)
	eventually(t, "the containers at -secondary", func() bool {
		return len(inBox(t, b.second, "$root")) == 2 && len(inBox(t, b.second, "$web")) == 1
	})
	check(b.second)
	_, err = b.short(t, b.second, "inline").UploadBuffer(ctx, []byte("x"), nil)
	requireBlobCode(t, err, 403, bloberror.InsufficientAccountPermissions)

	end := time.Now().Add(time.Hour)
	ofBox, err := root.GetSASURL(sas.ContainerPermissions{Read: true}, end, nil)
	require.NoError(t, err)
	ofBlob, err := root.NewBlobClient("inline").GetSASURL(sas.BlobPermissions{Read: true}, end, nil)
	require.NoError(t, err)
	for signed, path := range map[string]string{ofBox: "$root", ofBlob: "$root/inline"} {
		_, query, _ := strings.Cut(signed, "?")
		require.Contains(t, signed, path+"?")
		for _, c := range []*azblob.Client{b.first, b.second} {
			for _, path := range []string{"/inline", "/$root/inline"} {
				guest, err := blob.NewClientWithNoCredential(strings.TrimSuffix(c.URL(), "/")+path+"?"+query, nil)
				require.NoError(t, err)
				got, err := readAt(t, guest)
				require.NoError(t, err, "%s by %s", path, query)
				require.Equal(t, want["inline"], got)
			}
		}
	}

	moveTo(t, b.Cluster, blobTestAccount, North, South)
	check(b.first)
	want["inline"] = "after"
	_, err = b.short(t, b.first, "inline").UploadBuffer(ctx, []byte(want["inline"]), nil)
	require.NoError(t, err)
	eventually(t, "the write at -secondary", func() bool {
		got, err := readAt(t, b.short(t, b.second, "inline").BlobClient())
		return err == nil && got == "after"
	})
	check(b.first)
	check(b.second)
	_, err = root.Delete(ctx, nil)
	require.NoError(t, err)
	eventually(t, "the deletion at -secondary", func() bool { return len(boxes(t, b.second)) == 1 })
	_, err = readAt(t, b.short(t, b.second, "inline").BlobClient())
	requireBlobCode(t, err, 404, bloberror.ContainerNotFound)
}

// R20: an unplanned failover keeps the root container and what of it had arrived, and its blobs take writes by both paths.
func TestR20RootContainerIsPromoted(t *testing.T) {
	t.Parallel()
	b := startBlobTest(t)
	ctx := t.Context()
	_, err := b.first.CreateContainer(ctx, "$root", nil)
	require.NoError(t, err)
	_, err = b.short(t, b.first, "kept").UploadBuffer(ctx, blobContent(50_000, 1), nil)
	require.NoError(t, err)
	eventually(t, "the blob at -secondary", func() bool { return len(inBox(t, b.second, "$root")) == 1 })
	b.link.Cut()
	_, err = b.first.UploadBuffer(ctx, "$root", "lost", []byte("x"), nil)
	require.NoError(t, err)
	require.NoError(t, b.stopLocation(ctx, North))
	b.link.Heal()
	promote(t, b.Cluster, blobTestAccount)
	eventually(t, "the new primary takes writes", func() bool {
		_, err := b.short(t, b.first, "new").UploadBuffer(ctx, []byte("new"), nil)
		return err == nil
	})
	require.Equal(t, []string{"$root"}, boxes(t, b.first))
	require.Equal(t, []string{"kept", "new"}, inBox(t, b.first, "$root"))
	got, err := readAt(t, b.short(t, b.first, "kept").BlobClient())
	require.NoError(t, err)
	require.Equal(t, string(blobContent(50_000, 1)), got)
	_, err = b.first.UploadBuffer(ctx, "$root", "kept", []byte("over"), nil)
	require.NoError(t, err)
	got, err = readAt(t, b.short(t, b.first, "kept").BlobClient())
	require.NoError(t, err)
	require.Equal(t, "over", got)
}
