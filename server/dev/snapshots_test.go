package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/stretchr/testify/require"
)

// snapshotOf makes a snapshot of a blob of cont, with the content that it has to keep.
func (b *blobTest) snapshotOf(t *testing.T, name string) string {
	t.Helper()
	made, err := b.first.ServiceClient().NewContainerClient("cont").NewBlobClient(name).CreateSnapshot(t.Context(), nil)
	require.NoError(t, err)
	return *made.Snapshot
}

// at reads a snapshot of a blob of cont.
func (*blobTest) at(ctx context.Context, c *azblob.Client, name, snapshot string) ([]byte, error) {
	of, err := c.ServiceClient().NewContainerClient("cont").NewBlobClient(name).WithSnapshot(snapshot)
	if err != nil {
		return nil, err
	}
	got, err := of.DownloadStream(ctx, nil)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(got.Body)
	return body, errors.Join(err, got.Body.Close())
}

// named are the entries of a listing with snapshots, none of a container that has not arrived.
func (*blobTest) named(t *testing.T, c *azblob.Client) (out []string) {
	t.Helper()
	pager := c.NewListBlobsFlatPager("cont", &container.ListBlobsFlatOptions{MaxResults: to.Ptr(int32(2)), Include: container.ListBlobsInclude{Snapshots: true}})
	for pager.More() {
		page, err := pager.NextPage(t.Context())
		if bloberror.HasCode(err, bloberror.ContainerNotFound, bloberror.ResourceNotFound) {
			return nil
		}
		require.NoError(t, err)
		for _, i := range page.Segment.BlobItems {
			at := ""
			if i.Snapshot != nil {
				at = *i.Snapshot
			}
			out = append(out, *i.Name+"@"+at)
		}
	}
	return out
}

// An official client makes snapshots of blobs inline, in chunks and in blocks, reads them at both locations while the blobs
// are overwritten, lists and deletes them, through a planned failover. A signature for one reaches no other.
//
// Capability: Blobs: Snapshots.
func TestSnapshotsWithSDK(t *testing.T) {
	t.Parallel()
	b := startFinalized(t)
	ctx := t.Context()
	lengths := map[string]int{"inline": 9, "chunks": 3<<20 + 1, "blocks": 9 << 20}
	upload := func(name string, seed byte) []byte {
		body := blobContent(lengths[name], seed)
		var options *azblob.UploadBufferOptions
		if name == "blocks" {
			options = &azblob.UploadBufferOptions{BlockSize: 4 << 20}
		}
		_, err := b.first.UploadBuffer(ctx, "cont", name, body, options)
		require.NoError(t, err)
		return body
	}
	want, bodies := []string(nil), map[string][]byte{}
	for _, name := range []string{"blocks", "chunks", "inline"} {
		for seed := range byte(3) {
			body := upload(name, seed)
			at := b.snapshotOf(t, name)
			want, bodies[name+"@"+at] = append(want, name+"@"+at), body
		}
		upload(name, 9)
		want = append(want, name+"@")
	}
	check := func(c *azblob.Client) {
		t.Helper()
		require.Equal(t, want, b.named(t, c))
		for entry, body := range bodies {
			name, at, _ := strings.Cut(entry, "@")
			got, err := b.at(ctx, c, name, at)
			require.NoError(t, err, entry)
			require.Equal(t, body, got, entry)
		}
	}
	check(b.first)
	eventually(t, "all at -secondary", func() bool { return len(b.named(t, b.second)) == len(want) })
	check(b.second)
	_, err := b.second.ServiceClient().NewContainerClient("cont").NewBlobClient("inline").CreateSnapshot(ctx, nil)
	requireBlobCode(t, err, 403, bloberror.InsufficientAccountPermissions)

	one, other, _ := strings.Cut(want[0], "@")
	of, err := b.first.ServiceClient().NewContainerClient("cont").NewBlobClient(one).WithSnapshot(other)
	require.NoError(t, err)
	url, err := of.GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(time.Hour), nil)
	require.NoError(t, err)
	url = strings.Replace(url, "Z?", "Z&", 1) // This client writes a second question mark.
	require.Contains(t, url, "sr=bs")
	guest, err := blob.NewClientWithNoCredential(url, nil)
	require.NoError(t, err)
	_, err = guest.GetProperties(ctx, nil)
	require.NoError(t, err)
	for _, moved := range []string{strings.ReplaceAll(url, "snapshot=", "other="), strings.ReplaceAll(url, "sr=bs", "sr=b")} {
		guest, err = blob.NewClientWithNoCredential(moved, nil)
		require.NoError(t, err)
		_, err = guest.GetProperties(ctx, nil)
		requireBlobCode(t, err, 403, bloberror.AuthenticationFailed)
	}

	moveTo(t, b.Cluster, blobTestAccount, North, South)
	check(b.first)
	_, err = b.first.DeleteBlob(ctx, "cont", "inline", nil)
	requireBlobCode(t, err, 409, bloberror.SnapshotsPresent)
	_, err = of.Delete(ctx, nil)
	require.NoError(t, err)
	_, err = b.first.DeleteBlob(ctx, "cont", "chunks", &azblob.DeleteBlobOptions{DeleteSnapshots: to.Ptr(blob.DeleteSnapshotsOptionTypeInclude)})
	require.NoError(t, err)
	_, err = b.first.DeleteBlob(ctx, "cont", "inline", &azblob.DeleteBlobOptions{DeleteSnapshots: to.Ptr(blob.DeleteSnapshotsOptionTypeOnly)})
	require.NoError(t, err)
	for entry := range bodies {
		if name, _, _ := strings.Cut(entry, "@"); name != "blocks" || entry == want[0] {
			delete(bodies, entry)
		}
	}
	want = append(want[1:4], "inline@")
	check(b.first)
	eventually(t, "the deletions at -secondary", func() bool { return fmt.Sprint(b.named(t, b.second)) == fmt.Sprint(want) })
	check(b.second)
}

// R20: an unplanned failover keeps the snapshots that had arrived, whole, and no other.
//
// Capability: Blobs: Snapshots.
func TestR20SnapshotsArePromoted(t *testing.T) {
	t.Parallel()
	b := startFinalized(t)
	ctx := t.Context()
	body := blobContent(2<<20, 1)
	_, err := b.first.UploadBuffer(ctx, "cont", "b", body, nil)
	require.NoError(t, err)
	kept := b.snapshotOf(t, "b")
	eventually(t, "one snapshot at -secondary", func() bool { return len(b.named(t, b.second)) == 2 })
	b.link.Cut()
	lost := b.snapshotOf(t, "b")
	_, err = b.first.UploadBuffer(ctx, "cont", "b", blobContent(9, 2), nil)
	require.NoError(t, err)
	require.NoError(t, b.stopLocation(ctx, North))
	b.link.Heal()
	promote(t, b.Cluster, blobTestAccount)
	eventually(t, "the new primary answers", func() bool {
		got, err := b.at(ctx, b.first, "b", kept)
		return err == nil && string(got) == string(body)
	})
	_, err = b.at(ctx, b.first, "b", lost)
	requireBlobCode(t, err, 404, bloberror.BlobNotFound)
	require.Equal(t, []string{"b@" + kept, "b@"}, b.named(t, b.first))
	eventually(t, "the new primary takes snapshots", func() bool {
		_, err := b.first.ServiceClient().NewContainerClient("cont").NewBlobClient("b").CreateSnapshot(ctx, nil)
		return err == nil
	})
}
