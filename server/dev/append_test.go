package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/stretchr/testify/require"
)

func logOf(c *azblob.Client, name string) *appendblob.Client {
	return c.ServiceClient().NewContainerClient("cont").NewAppendBlobClient(name)
}

func appendTo(ctx context.Context, c *appendblob.Client, body []byte, position *int64) (appendblob.AppendBlockResponse, error) {
	o := &appendblob.AppendBlockOptions{}
	if position != nil {
		o.AppendPositionAccessConditions = &appendblob.AppendPositionAccessConditions{AppendPosition: position}
	}
	return c.AppendBlock(ctx, streaming.NopCloser(bytes.NewReader(body)), o)
}

// An official client appends, from several at once, through a planned failover: -secondary shows what was appended, takes no
// append, and at the end each block is there once and in the order of its client. A sealed blob takes no more at either primary.
//
// Capability: Blobs: Append blobs.
func TestAppendBlobsWithSDK(t *testing.T) {
	t.Parallel()
	b := startFinalized(t)
	ctx := t.Context()
	log, far := logOf(b.first, "log"), logOf(b.second, "log")
	_, err := log.Create(ctx, &appendblob.CreateOptions{HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr("text/plain")}})
	require.NoError(t, err)
	_, err = log.Create(ctx, &appendblob.CreateOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)},
	}})
	requireBlobCode(t, err, 409, bloberror.BlobAlreadyExists)

	// Each client gives the position, so that one that is not answered appends once.
	const clients, each = 4, 15
	half := make(chan struct{}, clients)
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := range each {
				if i == each/2 {
					half <- struct{}{}
				}
				body := fmt.Sprintf("<%d.%d>", c, i)
				if i%7 == 3 {
					body += strings.Repeat("x", 20<<10)
				}
				if err := appendOnce(ctx, log, body); err != nil {
					t.Errorf("append %s: %v", body[:4], err)
					return
				}
			}
		})
	}
	for range clients {
		<-half
	}
	moveTo(t, b.Cluster, blobTestAccount, North, South)
	wg.Wait()
	whole, tag, err := b.read(ctx, b.first, "cont", "log")
	require.NoError(t, err)
	requireOrder(t, whole, clients, each)
	props, err := log.GetProperties(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, blob.BlobTypeAppendBlob, *props.BlobType)
	require.EqualValues(t, clients*each, *props.BlobCommittedBlockCount)
	require.Nil(t, props.AccessTier)
	require.Equal(t, "text/plain", *props.ContentType)
	b.arrives(t, "cont", "log", tag)
	b.requireBlob(t, b.second, "cont", "log", whole, tag)
	part, err := far.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 5, Count: 30 << 10}})
	require.NoError(t, err)
	body, err := io.ReadAll(part.Body)
	require.NoError(t, errors.Join(err, part.Body.Close()))
	require.Equal(t, whole[5:5+30<<10], body)
	_, err = appendTo(ctx, far, []byte("x"), nil)
	requireBlobCode(t, err, 403, bloberror.InsufficientAccountPermissions)
	_, err = far.Seal(ctx, nil)
	requireBlobCode(t, err, 403, bloberror.InsufficientAccountPermissions)

	sealed, err := log.Seal(ctx, &appendblob.SealOptions{
		AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{AppendPosition: to.Ptr(int64(len(whole)))},
	})
	require.NoError(t, err)
	require.True(t, *sealed.IsSealed)
	require.Equal(t, tag, *sealed.ETag)
	_, err = appendTo(ctx, log, []byte("x"), nil)
	requireBlobCode(t, err, 409, "BlobIsSealed")
	eventually(t, "the seal at -secondary", func() bool {
		at, err := far.GetProperties(ctx, nil)
		return err == nil && at.IsSealed != nil && *at.IsSealed
	})
	moveTo(t, b.Cluster, blobTestAccount, South, North)
	_, err = appendTo(ctx, log, []byte("x"), nil)
	requireBlobCode(t, err, 409, "BlobIsSealed")
	listed, err := b.first.ServiceClient().NewContainerClient("cont").NewListBlobsFlatPager(nil).NextPage(ctx)
	require.NoError(t, err)
	item := listed.Segment.BlobItems[0].Properties
	require.Equal(t, blob.BlobTypeAppendBlob, *item.BlobType)
	require.True(t, *item.IsSealed)
	b.requireBlob(t, b.first, "cont", "log", whole, tag)
	_, err = b.first.UploadBuffer(ctx, "cont", "log", []byte("new"), nil)
	require.NoError(t, err, "the other type replaces it")
	_, err = appendTo(ctx, log, []byte("x"), nil)
	requireBlobCode(t, err, 409, bloberror.InvalidBlobType)
}

// appendOnce appends, and tries again until it knows that it did: where the end of the blob is not where it was, it looks for
// its block there.
func appendOnce(ctx context.Context, c *appendblob.Client, body string) error {
	for {
		at, err := c.GetProperties(ctx, nil)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			continue
		}
		for {
			_, err = appendTo(ctx, c, []byte(body), at.ContentLength)
			if err == nil || bloberror.HasCode(err, bloberror.AppendPositionConditionNotMet) {
				break
			}
			if ctx.Err() != nil {
				return err
			}
		}
		if err == nil {
			return nil
		}
		found, err := c.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: *at.ContentLength, Count: int64(len(body))}})
		if err != nil {
			continue
		}
		there, err := io.ReadAll(found.Body)
		if err = errors.Join(err, found.Body.Close()); err == nil && string(there) == body {
			return nil
		}
	}
}

// requireOrder requires each block once, those of a client in its order.
func requireOrder(t *testing.T, whole []byte, clients, each int) {
	t.Helper()
	next := make([]int, clients)
	for _, block := range strings.Split(strings.ReplaceAll(string(whole), "x", ""), "<")[1:] {
		var c, i int
		_, err := fmt.Sscanf(block, "%d.%d>", &c, &i)
		require.NoError(t, err, "%q", block)
		require.Equal(t, next[c], i, "client %d", c)
		next[c]++
	}
	for c := range next {
		require.Equal(t, each, next[c], "client %d", c)
	}
}

// R20: an unplanned failover keeps a beginning of what was appended, and the new primary appends behind it.
//
// Capability: Blobs: Append blobs.
// Capability: Failover: An unplanned failover of an account (R20).
func TestR20AppendedIsPromoted(t *testing.T) {
	t.Parallel()
	b := startFinalized(t)
	ctx := t.Context()
	log := logOf(b.first, "log")
	_, err := log.Create(ctx, nil)
	require.NoError(t, err)
	var kept appendblob.AppendBlockResponse
	for i := range 10 {
		kept, err = appendTo(ctx, log, fmt.Appendf(nil, "kept %d.", i), nil)
		require.NoError(t, err)
	}
	b.arrives(t, "cont", "log", *kept.ETag)
	want, _, err := b.read(ctx, b.second, "cont", "log")
	require.NoError(t, err)
	require.Len(t, want, 70)
	b.link.Cut()
	_, err = appendTo(ctx, log, []byte("lost"), nil)
	require.NoError(t, err)
	require.NoError(t, b.stopLocation(ctx, North))
	b.link.Heal()
	promote(t, b.Cluster, blobTestAccount)
	var got appendblob.AppendBlockResponse
	eventually(t, "the new primary takes appends", func() bool {
		got, err = appendTo(ctx, log, []byte("new"), to.Ptr(int64(70)))
		return err == nil
	})
	require.Equal(t, "70", *got.BlobAppendOffset)
	require.EqualValues(t, 11, *got.BlobCommittedBlockCount)
	b.requireBlob(t, b.first, "cont", "log", append(want, "new"...), *got.ETag)
}
