package dev

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/stretchr/testify/require"

	"antipode/server/location"
)

func ifTags(condition string) *blob.AccessConditions {
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfTags: to.Ptr(condition)}}
}

// tagsOf are the tags of a blob that a client reads, nil if it is not there.
func tagsOf(t *testing.T, c *container.Client, name string) map[string]string {
	t.Helper()
	got, err := c.NewBlobClient(name).GetTags(t.Context(), nil)
	if err != nil {
		return nil
	}
	return tagMap(got.BlobTagSet)
}

func tagMap(set []*blob.Tags) map[string]string {
	out := map[string]string{}
	for _, tag := range set {
		out[*tag.Key] = *tag.Value
	}
	return out
}

// requireTags requires the tags of a blob that nobody writes, read and listed.
func requireTags(t *testing.T, c *container.Client, name string, want map[string]string) {
	t.Helper()
	require.Equal(t, want, tagsOf(t, c, name))
	page, err := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Include: container.ListBlobsInclude{Tags: true}, Prefix: to.Ptr(name),
	}).NextPage(t.Context())
	require.NoError(t, err)
	listed := map[string]string{}
	if of := page.Segment.BlobItems[0].BlobTags; of != nil {
		listed = tagMap(of.BlobTagSet)
	}
	require.Equal(t, want, listed)
}

// An official client writes and reads tags in every way, at both locations and through a planned failover, and writes under a
// condition on them.
//
// Capability: Blobs: Tags and tiers.
func TestTagsWithSDK(t *testing.T) {
	t.Parallel()
	b := startFinalized(t)
	ctx := t.Context()
	near, far := b.first.ServiceClient().NewContainerClient("cont"), b.second.ServiceClient().NewContainerClient("cont")
	want := map[string]string{"a b": "+/=", "k": "1", "empty": ""}
	for _, length := range []int{10, 20 << 10} { // Inline and in chunks.
		_, err := b.first.UploadBuffer(ctx, "cont", "b", blobContent(length, 1), &azblob.UploadBufferOptions{Tags: want})
		require.NoError(t, err)
		requireTags(t, near, "b", want)
	}
	_, err := b.first.UploadBuffer(ctx, "cont", "b", blobContent(9<<20, 1), &azblob.UploadBufferOptions{Tags: want, BlockSize: 4 << 20})
	require.NoError(t, err)
	eventually(t, "the tags at -secondary", func() bool { return len(tagsOf(t, far, "b")) == 3 })
	requireTags(t, far, "b", want)
	_, err = far.NewBlobClient("b").SetTags(ctx, nil, nil)
	requireBlobCode(t, err, 403, bloberror.InsufficientAccountPermissions)
	for _, c := range []*container.Client{near, far} {
		at := c.NewBlobClient("b")
		_, err = at.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: ifTags("k <> '1'")})
		requireBlobCode(t, err, 412, bloberror.ConditionNotMet)
		got, err := at.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: ifTags("k = '1'")})
		require.NoError(t, err)
		require.EqualValues(t, 3, *got.TagCount)
	}

	moveTo(t, b.Cluster, blobTestAccount, North, South)
	requireTags(t, near, "b", want)
	_, err = near.NewBlobClient("b").SetTags(ctx, map[string]string{"k": "2"}, &blob.SetTagsOptions{AccessConditions: ifTags("k = '2'")})
	requireBlobCode(t, err, 412, bloberror.ConditionNotMet)
	_, err = near.NewBlobClient("b").SetTags(ctx, map[string]string{"k": "2"}, &blob.SetTagsOptions{AccessConditions: ifTags("k = '1'")})
	require.NoError(t, err)
	requireTags(t, near, "b", map[string]string{"k": "2"})
	eventually(t, "the new tags at -secondary", func() bool { return len(tagsOf(t, far, "b")) == 1 })
	requireTags(t, far, "b", map[string]string{"k": "2"})
	_, err = b.first.DeleteBlob(ctx, "cont", "b", &azblob.DeleteBlobOptions{AccessConditions: ifTags("k = '1'")})
	requireBlobCode(t, err, 412, bloberror.ConditionNotMet)
	_, err = b.first.UploadBuffer(ctx, "cont", "b", nil, nil)
	require.NoError(t, err)
	requireTags(t, near, "b", map[string]string{})
}

// rehydrates is how long a rehydration takes in a test: longer than a failover.
const rehydrates = 10 * time.Second

// An official client moves a blob through its tiers at both locations. An archived blob is archived at -secondary too, and a
// rehydration is over there, and at the next primary, at the time that was promised.
//
// Capability: Blobs: Tags and tiers.
func TestTiersWithSDK(t *testing.T) {
	t.Parallel()
	b := startBlobTestWith(t, func(o *location.Options) { o.Rehydration = rehydrates })
	ctx := t.Context()
	require.NoError(t, b.FinalizeNew(ctx))
	_, err := b.first.CreateContainer(ctx, "cont", nil)
	require.NoError(t, err)
	near := b.first.ServiceClient().NewContainerClient("cont").NewBlobClient("b")
	far := b.second.ServiceClient().NewContainerClient("cont").NewBlobClient("b")
	tier := func(c *blob.Client) (tier, status string) {
		p, err := c.GetProperties(ctx, nil)
		if err != nil {
			return "", ""
		}
		if p.ArchiveStatus != nil {
			status = *p.ArchiveStatus
		}
		return *p.AccessTier, status
	}
	shows := func(c *blob.Client, want, status string) func() bool {
		return func() bool {
			tier, got := tier(c)
			return tier == want && got == status
		}
	}
	put, err := b.first.UploadBuffer(ctx, "cont", "b", blobContent(20<<10, 1), &azblob.UploadBufferOptions{AccessTier: to.Ptr(blob.AccessTierCold)})
	require.NoError(t, err)
	require.True(t, shows(near, "Cold", "")())
	before := time.Now()
	_, err = near.SetTier(ctx, blob.AccessTierArchive, nil)
	require.NoError(t, err)
	p, err := near.GetProperties(ctx, nil)
	require.NoError(t, err)
	require.WithinDuration(t, before, *p.AccessTierChangeTime, time.Minute)
	require.Equal(t, *put.ETag, *p.ETag)
	eventually(t, "the tier at -secondary", shows(far, "Archive", ""))
	for _, c := range []*azblob.Client{b.first, b.second} {
		_, err = c.DownloadStream(ctx, "cont", "b", nil)
		requireBlobCode(t, err, 409, bloberror.BlobArchived)
	}
	_, err = far.SetTier(ctx, blob.AccessTierHot, nil)
	requireBlobCode(t, err, 403, bloberror.InsufficientAccountPermissions)
	_, err = b.first.UploadBuffer(ctx, "cont", "b", nil, nil)
	requireBlobCode(t, err, 409, bloberror.BlobArchived)

	begins := time.Now()
	_, err = near.SetTier(ctx, blob.AccessTierHot, &blob.SetTierOptions{RehydratePriority: to.Ptr(blob.RehydratePriorityHigh)})
	require.NoError(t, err)
	_, err = b.first.DownloadStream(ctx, "cont", "b", nil)
	requireBlobCode(t, err, 409, bloberror.BlobBeingRehydrated)
	eventually(t, "the rehydration at -secondary", shows(far, "Archive", "rehydrate-pending-to-hot"))
	moveTo(t, b.Cluster, blobTestAccount, North, South)
	for _, c := range []*blob.Client{near, far} {
		eventually(t, "the end of the rehydration", shows(c, "Hot", ""))
		require.GreaterOrEqual(t, time.Since(begins), rehydrates)
	}
	for _, c := range []*azblob.Client{b.first, b.second} {
		b.requireBlob(t, c, "cont", "b", blobContent(20<<10, 1), *put.ETag)
	}
}
