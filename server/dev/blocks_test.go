package dev

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"antipode/geo"
	"antipode/server/location"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// An official client uploads in blocks, resumes, edits, describes and lists at the
// primary, and reads the same bytes, ETags, block lists and listings there and at
// -secondary.
//
// Capability: Clients: Official SDKs against both locations.
func TestBlocksWithSDK(t *testing.T) {
	t.Parallel()
	b := startBlobTest(t)
	_, err := b.first.CreateContainer(t.Context(), "cont", nil)
	require.NoError(t, err)
	t.Run("uploads", b.testBlockUploads)
	t.Run("resume", b.testResume)
	t.Run("describe", b.testDescribe)
	t.Run("list", b.testLists)
}

// both requires a blob at the primary and, once it arrived, at the secondary.
func (b *blobTest) both(t *testing.T, name string, want []byte, tag azcore.ETag) {
	t.Helper()
	b.requireBlob(t, b.first, "cont", name, want, tag)
	b.arrives(t, "cont", name, tag)
	b.requireBlob(t, b.second, "cont", name, want, tag)
}

func (b *blobTest) testBlockUploads(t *testing.T) {
	ctx := t.Context()
	body := blobContent(9<<20+7, 3)
	stream, err := b.first.UploadStream(ctx, "cont", "stream", bytes.NewReader(body), &azblob.UploadStreamOptions{
		BlockSize: 1 << 20, Concurrency: 4, Metadata: map[string]*string{"k": to.Ptr("v")},
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr("text/x")},
	})
	require.NoError(t, err)
	b.both(t, "stream", body, *stream.ETag)

	buffer, err := b.first.UploadBuffer(ctx, "cont", "buffer", body, &azblob.UploadBufferOptions{BlockSize: 300_000, Concurrency: 8})
	require.NoError(t, err)
	b.both(t, "buffer", body, *buffer.ETag)
	got := make([]byte, 5<<20)
	_, err = b.second.DownloadBuffer(ctx, "cont", "buffer", got, &azblob.DownloadBufferOptions{
		BlockSize: 700_001, Concurrency: 3, Range: blob.HTTPRange{Offset: 1234, Count: 5 << 20},
	})
	require.NoError(t, err)
	require.True(t, bytes.Equal(body[1234:1234+5<<20], got))

	// One put above the old limit.
	whole := blobContent(20<<20, 4)
	put, err := b.block("whole").Upload(ctx, streaming.NopCloser(bytes.NewReader(whole)), nil)
	require.NoError(t, err)
	b.both(t, "whole", whole, *put.ETag)

	none := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}}
	_, err = b.first.UploadStream(ctx, "cont", "stream", bytes.NewReader(body), &azblob.UploadStreamOptions{BlockSize: 1 << 20, AccessConditions: none})
	requireBlobCode(t, err, http.StatusConflict, bloberror.BlobAlreadyExists)
	b.both(t, "stream", body, *stream.ETag)
}

// block is the client of a block blob at the primary.
func (b *blobTest) block(name string) *blockblob.Client {
	return b.first.ServiceClient().NewContainerClient("cont").NewBlockBlobClient(name)
}

func blockID(i int) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "block-%05d", i))
}

func (b *blobTest) testResume(t *testing.T) {
	ctx := t.Context()
	c := b.block("resumed")
	body := blobContent(3<<20, 5)
	part := func(i int) []byte { return body[i<<20 : (i+1)<<20] }
	stage := func(i int) {
		_, err := c.StageBlock(ctx, blockID(i), streaming.NopCloser(bytes.NewReader(part(i))), nil)
		require.NoError(t, err)
	}
	stage(0)
	stage(2)
	_, err := c.GetProperties(ctx, nil)
	requireBlobCode(t, err, http.StatusNotFound, bloberror.BlobNotFound)
	list, err := c.GetBlockList(ctx, blockblob.BlockListTypeAll, nil)
	require.NoError(t, err)
	require.Empty(t, list.CommittedBlocks)
	require.Len(t, list.UncommittedBlocks, 2)
	require.Equal(t, blockID(2), *list.UncommittedBlocks[1].Name)
	require.Equal(t, int64(1<<20), *list.UncommittedBlocks[1].Size)
	ids := []string{blockID(0), blockID(1), blockID(2)}
	_, err = c.CommitBlockList(ctx, ids, nil)
	requireBlobCode(t, err, http.StatusBadRequest, bloberror.InvalidBlockList)
	stage(1)
	put, err := c.CommitBlockList(ctx, ids, nil)
	require.NoError(t, err)
	b.both(t, "resumed", body, *put.ETag)

	far := b.second.ServiceClient().NewContainerClient("cont").NewBlockBlobClient("resumed")
	list, err = far.GetBlockList(ctx, blockblob.BlockListTypeAll, nil)
	require.NoError(t, err)
	require.Len(t, list.CommittedBlocks, 3)
	require.Empty(t, list.UncommittedBlocks)

	// An edit: the middle block goes, the last is replaced.
	_, err = c.StageBlock(ctx, blockID(2), streaming.NopCloser(strings.NewReader("end")), nil)
	require.NoError(t, err)
	put, err = c.CommitBlockList(ctx, []string{blockID(0), blockID(2)}, nil)
	require.NoError(t, err)
	b.both(t, "resumed", append(part(0)[:1<<20:1<<20], "end"...), *put.ETag)
}

func (b *blobTest) testDescribe(t *testing.T) {
	ctx := t.Context()
	c := b.block("resumed")
	before, err := c.GetProperties(ctx, nil)
	require.NoError(t, err)
	_, err = c.SetMetadata(ctx, map[string]*string{"colour": to.Ptr("red")}, &blob.SetMetadataOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: before.ETag}},
	})
	require.NoError(t, err)
	set, err := c.SetHTTPHeaders(ctx, blob.HTTPHeaders{BlobContentType: to.Ptr("image/x"), BlobCacheControl: to.Ptr("no-store")}, nil)
	require.NoError(t, err)
	b.arrives(t, "cont", "resumed", *set.ETag)
	for _, at := range []*azblob.Client{b.first, b.second} {
		p, err := at.ServiceClient().NewContainerClient("cont").NewBlobClient("resumed").GetProperties(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, *set.ETag, *p.ETag)
		require.Equal(t, "red", *p.Metadata["Colour"])
		require.Equal(t, "image/x", *p.ContentType)
		require.Equal(t, *before.ContentLength, *p.ContentLength)
		require.Equal(t, *before.CreationTime, *p.CreationTime)
	}
	_, err = b.first.ServiceClient().NewContainerClient("cont").SetMetadata(ctx, &container.SetMetadataOptions{Metadata: map[string]*string{"k": to.Ptr("v")}})
	require.NoError(t, err)
	near, err := b.first.ServiceClient().NewContainerClient("cont").GetProperties(ctx, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		far, err := b.second.ServiceClient().NewContainerClient("cont").GetProperties(ctx, nil)
		return err == nil && *far.ETag == *near.ETag && *far.Metadata["K"] == "v"
	}, blobTestWait, 20*time.Millisecond)
}

func (b *blobTest) testLists(t *testing.T) {
	ctx := t.Context()
	var last azcore.ETag
	for _, name := range []string{"list/a", "list/b/1", "list/b/2", "list/b/3", "list/c & <d>", "list/\U0001f600"} {
		put, err := b.first.UploadBuffer(ctx, "cont", name, []byte(name), &azblob.UploadBufferOptions{Metadata: map[string]*string{"name": to.Ptr("x")}})
		require.NoError(t, err)
		last = *put.ETag
		b.arrives(t, "cont", name, last)
	}
	_, err := b.block("list/z").StageBlock(ctx, blockID(1), streaming.NopCloser(strings.NewReader("x")), nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := b.second.ServiceClient().NewContainerClient("cont").NewBlockBlobClient("list/z").GetBlockList(ctx, blockblob.BlockListTypeUncommitted, nil)
		return err == nil
	}, blobTestWait, 20*time.Millisecond)

	for _, at := range []*azblob.Client{b.first, b.second} {
		c := at.ServiceClient().NewContainerClient("cont")
		var flat []string
		pages := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
			Prefix: to.Ptr("list/"), MaxResults: to.Ptr(int32(2)), Include: container.ListBlobsInclude{Metadata: true, UncommittedBlobs: true},
		})
		for pages.More() {
			page, err := pages.NextPage(ctx)
			require.NoError(t, err)
			for _, i := range page.Segment.BlobItems {
				flat = append(flat, *i.Name)
				if *i.Name == "list/z" {
					require.Nil(t, i.Properties.ETag)
					continue
				}
				require.Equal(t, "x", *i.Metadata["name"])
				require.Equal(t, int64(len(*i.Name)), *i.Properties.ContentLength)
				if *i.Name == "list/\U0001f600" {
					require.Equal(t, strings.Trim(string(last), `"`), string(*i.Properties.ETag))
				}
			}
		}
		require.Equal(t, []string{"list/a", "list/b/1", "list/b/2", "list/b/3", "list/c & <d>", "list/z", "list/\U0001f600"}, flat)

		var levels []string
		tree := c.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: to.Ptr("list/"), MaxResults: to.Ptr(int32(1))})
		for tree.More() {
			page, err := tree.NextPage(ctx)
			require.NoError(t, err)
			for _, p := range page.Segment.BlobPrefixes {
				levels = append(levels, *p.Name)
			}
			for _, i := range page.Segment.BlobItems {
				levels = append(levels, *i.Name)
			}
		}
		require.Equal(t, []string{"list/a", "list/b/", "list/c & <d>", "list/\U0001f600"}, levels)

		var containers []string
		all := at.NewListContainersPager(&azblob.ListContainersOptions{Include: azblob.ListContainersInclude{Metadata: true}})
		for all.More() {
			page, err := all.NextPage(ctx)
			require.NoError(t, err)
			for _, i := range page.ContainerItems {
				containers = append(containers, *i.Name)
			}
		}
		require.Equal(t, []string{"cont"}, containers)
	}
}

// A list of 50,000 blocks is committed in one change and reaches the other location:
// the same bytes, ETag and block list there.
//
// Capability: Clients: Bounded work.
func TestLongBlockList(t *testing.T) {
	t.Parallel()
	b := startBlobTest(t)
	ctx := t.Context()
	_, err := b.first.CreateContainer(ctx, "cont", nil)
	require.NoError(t, err)
	north := b.locations[North]
	name := blobs.Name{Account: blobTestAccount, Container: "cont", Blob: "long"}
	require.NoError(t, north.Read(ctx, geo.FirstRange(geo.Catalog), func(s ranges.State) error {
		c, err := catalog.GetContainer(s, geo.Blob, name.Account, name.Container)
		if err == nil {
			name.Generation = c.Generation()
		}
		return err
	}))
	ids := make([]string, blobs.CommittedMax)
	if testing.Short() {
		ids = ids[:blobs.CommittedMax/10]
	}
	var want []byte
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(256)
	for i := range ids {
		body := fmt.Appendf(nil, "%d,", i)
		ids[i], want = blockID(i), append(want, body...)
		g.Go(func() error {
			// Past the front end, whose signatures and sockets would take most of the time.
			return stageBlock(gctx, north, name, fmt.Sprintf("block-%05d", i), body)
		})
	}
	require.NoError(t, g.Wait())
	put, err := b.block("long").CommitBlockList(ctx, ids, nil)
	require.NoError(t, err)
	b.both(t, "long", want, *put.ETag)
	far := b.second.ServiceClient().NewContainerClient("cont").NewBlockBlobClient("long")
	list, err := far.GetBlockList(ctx, blockblob.BlockListTypeAll, nil)
	require.NoError(t, err)
	require.Empty(t, list.UncommittedBlocks)
	require.Len(t, list.CommittedBlocks, len(ids))
	for i, block := range list.CommittedBlocks {
		require.Equal(t, ids[i], *block.Name)
	}
	part, err := b.second.DownloadStream(ctx, "cont", "long", &azblob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 20_000, Count: 10}})
	require.NoError(t, err)
	got, err := io.ReadAll(part.Body)
	require.NoError(t, errors.Join(err, part.Body.Close()))
	require.Equal(t, want[20_000:20_010], got)
}

// stageBlock puts one block, again where nobody knows whether it was put.
func stageBlock(ctx context.Context, l *location.Location, name blobs.Name, id string, body []byte) error {
	for {
		err := putBlock(ctx, l, name, id, body)
		if !errors.Is(err, kv.ErrUnknown) && !errors.Is(err, kv.ErrBusy) || ctx.Err() != nil {
			return err
		}
	}
}

func putBlock(ctx context.Context, l *location.Location, name blobs.Name, id string, body []byte) error {
	return l.Primary.Write(ctx, &blobs.PutBlock{Command: blobs.Command{Name: name}, ID: id, Block: blobs.Block{Length: uint32(len(body)), Inline: body}})
}
