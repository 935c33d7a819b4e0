package dev

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/stretchr/testify/require"
)

func blockOf(c *azblob.Client, name string) *blockblob.Client {
	return c.ServiceClient().NewContainerClient("cont").NewBlockBlobClient(name)
}

// signedFor is the URL of a blob with a signature that reads it.
func signedFor(t *testing.T, c *blockblob.Client) string {
	t.Helper()
	url, err := c.GetSASURL(sas.BlobPermissions{Read: true, Tag: true}, time.Now().Add(time.Hour), nil)
	require.NoError(t, err)
	return url
}

// uploadBlocks makes a blob of three blocks.
func uploadBlocks(ctx context.Context, t *testing.T, c *azblob.Client, name string, whole []byte) azcore.ETag {
	t.Helper()
	ids := []string{"QUFB", "QUFC", "QUFD"}
	for i, id := range ids {
		part := whole[i*len(whole)/3 : (i+1)*len(whole)/3]
		_, err := blockOf(c, name).StageBlock(ctx, id, streaming.NopCloser(bytes.NewReader(part)), nil)
		require.NoError(t, err)
	}
	put, err := blockOf(c, name).CommitBlockList(ctx, ids, nil)
	require.NoError(t, err)
	return *put.ETag
}

// copies makes a copy of a blob by each operation, and returns their ETags by name. The content of them all is that of from.
func copies(ctx context.Context, t *testing.T, c *azblob.Client, prefix, from string, whole []byte) map[string]azcore.ETag {
	t.Helper()
	tags := map[string]azcore.ETag{}
	sum := md5.Sum(whole)
	started, err := blockOf(c, prefix+"start").StartCopyFromURL(ctx, from, &blob.StartCopyFromURLOptions{
		Metadata: map[string]*string{"By": to.Ptr("start")}, Tier: to.Ptr(blob.AccessTierCool),
	})
	require.NoError(t, err)
	require.Equal(t, blob.CopyStatusTypeSuccess, *started.CopyStatus)
	require.NotEmpty(t, *started.CopyID)
	tags[prefix+"start"] = *started.ETag
	synced, err := blockOf(c, prefix+"sync").CopyFromURL(ctx, from, &blob.CopyFromURLOptions{SourceContentMD5: sum[:]})
	require.NoError(t, err)
	require.Equal(t, "success", *synced.CopyStatus)
	require.Equal(t, sum[:], synced.ContentMD5)
	tags[prefix+"sync"] = *synced.ETag
	uploaded, err := blockOf(c, prefix+"upload").UploadBlobFromURL(ctx, from, &blockblob.UploadBlobFromURLOptions{
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr("text/upload")},
	})
	require.NoError(t, err)
	tags[prefix+"upload"] = *uploaded.ETag
	half, ids := int64(len(whole)/2), []string{"AAAA", "AAAB"}
	for i, part := range []blob.HTTPRange{{Offset: 0, Count: half}, {Offset: half, Count: int64(len(whole)) - half}} {
		_, err := blockOf(c, prefix+"blocks").StageBlockFromURL(ctx, ids[i], from, &blockblob.StageBlockFromURLOptions{Range: part})
		require.NoError(t, err)
	}
	listed, err := blockOf(c, prefix+"blocks").CommitBlockList(ctx, ids, nil)
	require.NoError(t, err)
	tags[prefix+"blocks"] = *listed.ETag
	_, err = logOf(c, prefix+"log").Create(ctx, nil)
	require.NoError(t, err)
	appended, err := logOf(c, prefix+"log").AppendBlockFromURL(ctx, from, &appendblob.AppendBlockFromURLOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 1, *appended.BlobCommittedBlockCount)
	tags[prefix+"log"] = *appended.ETag
	return tags
}

// An official client copies blobs in each way from the primary, by its key and by signatures, and from -secondary; every copy is
// read at both locations, also after a planned failover, and when the source is gone.
//
// Capability: Blobs: Copies.
func TestCopiesWithSDK(t *testing.T) {
	t.Parallel()
	b := startFinalized(t)
	ctx := t.Context()
	whole := map[string][]byte{"inline": blobContent(99, 1), "chunks": blobContent(3<<20+1, 2), "listed": blobContent(9<<20, 3)}
	tags, of := map[string]azcore.ETag{}, map[string][]byte{}
	for name, body := range whole {
		if name == "listed" {
			uploadBlocks(ctx, t, b.first, name, body)
		} else {
			_, err := b.first.UploadBuffer(ctx, "cont", name, body, nil)
			require.NoError(t, err)
		}
		source := blockOf(b.first, name)
		for prefix, url := range map[string]string{name + "-key-": source.URL(), name + "-sas-": signedFor(t, source)} {
			for to, tag := range copies(ctx, t, b.first, prefix, url, body) {
				tags[to], of[to] = tag, body
			}
		}
	}
	kept, err := blockOf(b.first, "listed").GetBlockList(ctx, blockblob.BlockListTypeCommitted, nil)
	require.NoError(t, err)
	require.Len(t, kept.CommittedBlocks, 3)
	for _, way := range []string{"start", "sync"} {
		list, err := blockOf(b.first, "listed-key-"+way).GetBlockList(ctx, blockblob.BlockListTypeCommitted, nil)
		require.NoError(t, err)
		require.Equal(t, kept.CommittedBlocks, list.CommittedBlocks)
	}
	for to, body := range of {
		b.arrives(t, "cont", to, tags[to])
		b.requireBlob(t, b.first, "cont", to, body, tags[to])
		b.requireBlob(t, b.second, "cont", to, body, tags[to])
	}
	far := blockOf(b.second, "listed")
	for to, tag := range copies(ctx, t, b.first, "listed-far-", far.URL(), whole["listed"]) {
		tags[to], of[to] = tag, whole["listed"]
	}
	_, err = blockOf(b.second, "new").StartCopyFromURL(ctx, far.URL(), nil)
	requireBlobCode(t, err, 403, bloberror.InsufficientAccountPermissions)
	_, err = blockOf(b.first, "new").StartCopyFromURL(ctx, blockOf(b.first, "none").URL(), nil)
	requireBlobCode(t, err, 404, bloberror.CannotVerifyCopySource)
	_, err = blockOf(b.first, "inline-key-start").AbortCopyFromURL(ctx, "c0ffee00-0000-4000-8000-000000000001", nil)
	requireBlobCode(t, err, 409, bloberror.NoPendingCopyOperation)

	props, err := blockOf(b.first, "chunks-sas-start").GetProperties(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, blob.CopyStatusTypeSuccess, *props.CopyStatus)
	require.Equal(t, blockOf(b.first, "chunks").URL(), *props.CopySource, "without the signature")
	require.Equal(t, fmt.Sprintf("%d/%d", len(whole["chunks"]), len(whole["chunks"])), *props.CopyProgress)
	require.WithinDuration(t, time.Now(), *props.CopyCompletionTime, time.Hour)
	require.Equal(t, "start", *props.Metadata["By"])
	require.Equal(t, "Cool", *props.AccessTier)

	moveTo(t, b.Cluster, blobTestAccount, North, South)
	for name := range whole {
		_, err := b.first.DeleteBlob(ctx, "cont", name, nil)
		require.NoError(t, err)
	}
	for to, body := range of {
		b.requireBlob(t, b.first, "cont", to, body, tags[to])
	}
	shown := 0
	pager := b.first.NewListBlobsFlatPager("cont", &container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Copy: true}})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		require.NoError(t, err)
		for _, item := range page.Segment.BlobItems {
			if item.Properties.CopyID != nil {
				shown++
				require.Equal(t, blob.CopyStatusTypeSuccess, *item.Properties.CopyStatus)
				require.NotNil(t, item.Properties.CopyCompletionTime)
			}
		}
	}
	require.Equal(t, 14, shown, "two of each seven sources are copies, the others are content")
	again := copies(ctx, t, b.first, "again-", blockOf(b.first, "listed-key-start").URL(), whole["listed"])
	for to, tag := range again {
		b.arrives(t, "cont", to, tag)
		b.requireBlob(t, b.second, "cont", to, whole["listed"], tag)
	}
}

// R20: an unplanned failover keeps the copies that arrived, with what they share with sources that are gone, and the new primary
// copies them on.
//
// Capability: Blobs: Copies.
// Capability: Failover: An unplanned failover of an account (R20).
func TestR20CopiesArePromoted(t *testing.T) {
	t.Parallel()
	b := startFinalized(t)
	ctx := t.Context()
	body := blobContent(9<<20, 1)
	uploadBlocks(ctx, t, b.first, "from", body)
	kept, err := blockOf(b.first, "kept").StartCopyFromURL(ctx, blockOf(b.first, "from").URL(), nil)
	require.NoError(t, err)
	_, err = b.first.DeleteBlob(ctx, "cont", "from", nil)
	require.NoError(t, err)
	b.arrives(t, "cont", "kept", *kept.ETag)
	b.link.Cut()
	_, err = blockOf(b.first, "lost").StartCopyFromURL(ctx, blockOf(b.first, "kept").URL(), nil)
	require.NoError(t, err)
	require.NoError(t, b.stopLocation(ctx, North))
	b.link.Heal()
	promote(t, b.Cluster, blobTestAccount)
	var again blob.StartCopyFromURLResponse
	eventually(t, "the new primary copies", func() bool {
		again, err = blockOf(b.first, "again").StartCopyFromURL(ctx, blockOf(b.first, "kept").URL(), nil)
		return err == nil
	})
	b.requireBlob(t, b.first, "cont", "kept", body, *kept.ETag)
	b.requireBlob(t, b.first, "cont", "again", body, *again.ETag)
	props, err := blockOf(b.first, "kept").GetProperties(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, *kept.CopyID, *props.CopyID)
	_, err = blockOf(b.first, "lost").GetProperties(ctx, nil)
	require.True(t, bloberror.HasCode(err, bloberror.BlobNotFound), "%v", err)
}

// Copies between accounts, with a signature for the source: from one whose primary is the other location the bytes are read
// there, and from its -secondary, which is here, the chunks are shared.
func TestCopiesBetweenAccounts(t *testing.T) {
	t.Parallel()
	b := startFinalized(t)
	ctx := t.Context()
	key, err := base64.StdEncoding.DecodeString(blobTestKey)
	require.NoError(t, err)
	require.NoError(t, b.EnsureAccount(ctx, South, "faraway", key, key))
	cred, err := azblob.NewSharedKeyCredential("faraway", blobTestKey)
	require.NoError(t, err)
	of := func(account string) *azblob.Client {
		url := strings.TrimSuffix(b.first.URL(), "/")
		c, err := azblob.NewClientWithSharedKeyCredential(url[:strings.LastIndexByte(url, '/')+1]+account, cred, nil)
		require.NoError(t, err)
		return c
	}
	far, near := of("faraway"), of("faraway-secondary")
	_, err = far.CreateContainer(ctx, "cont", nil)
	require.NoError(t, err)
	body := blobContent(9<<20, 1)
	tag := uploadBlocks(ctx, t, far, "from", body)
	eventually(t, "the source at -secondary", func() bool {
		got, err := blockOf(near, "from").GetProperties(ctx, nil)
		return err == nil && *got.ETag == tag
	})
	for prefix, c := range map[string]struct {
		from   *azblob.Client
		blocks int
	}{"far-": {far, 0}, "near-": {near, 3}} {
		_, err := blockOf(b.first, "none").StartCopyFromURL(ctx, blockOf(c.from, "from").URL(), nil)
		requireBlobCode(t, err, 401, bloberror.CannotVerifyCopySource)
		_, err = blockOf(b.first, "none").StartCopyFromURL(ctx, signedFor(t, blockOf(c.from, "none")), nil)
		requireBlobCode(t, err, 404, bloberror.CannotVerifyCopySource)
		for name, tag := range copies(ctx, t, b.first, prefix, signedFor(t, blockOf(c.from, "from")), body) {
			b.requireBlob(t, b.first, "cont", name, body, tag)
			b.arrives(t, "cont", name, tag)
			b.requireBlob(t, b.second, "cont", name, body, tag)
		}
		list, err := blockOf(b.first, prefix+"start").GetBlockList(ctx, blockblob.BlockListTypeCommitted, nil)
		require.NoError(t, err)
		require.Len(t, list.CommittedBlocks, c.blocks)
	}
}
