package dev

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"antipode/test/rest"
)

// putMany makes blobs of one byte in a container, and returns their names.
func (b *blobTest) putMany(t *testing.T, box string, n int) (names []string) {
	t.Helper()
	var g errgroup.Group
	g.SetLimit(16)
	for i := range n {
		name := fmt.Sprintf("dir/%03d+ %%", i)
		names = append(names, name)
		g.Go(func() error {
			_, err := b.first.UploadBuffer(t.Context(), box, name, []byte("x"), nil)
			return err
		})
	}
	require.NoError(t, g.Wait())
	return names
}

// codeOf is the status and the code of an error of a part; empty for none.
func codeOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var of *azcore.ResponseError
	require.ErrorAs(t, err, &of)
	return fmt.Sprint(of.StatusCode, " ", of.ErrorCode)
}

// An official client deletes 256 blobs of two containers at once, under leases and conditions too, and gets the outcome of each;
// deletions arrive at -secondary, which takes no batch. So it goes on after a planned failover.
//
// Capability: Blobs: Batches.
func TestBlobBatchesWithSDK(t *testing.T) {
	t.Parallel()
	b := startBlobTest(t)
	ctx := t.Context()
	require.NoError(t, b.FinalizeNew(ctx))
	svc := b.first.ServiceClient()
	for _, box := range []string{"cont", "other"} {
		_, err := b.first.CreateContainer(ctx, box, nil)
		require.NoError(t, err)
	}
	for round := range 2 {
		names := map[string][]string{"cont": b.putMany(t, "cont", 200), "other": b.putMany(t, "other", 60)}
		held := names["cont"][0]
		got, err := b.leaseOf(t, b.first, held, leaseA).AcquireLease(ctx, -1, nil)
		require.NoError(t, err)
		batch, err := svc.NewBatchBuilder()
		require.NoError(t, err)
		under := service.BatchDeleteOptions{}
		under.AccessConditions = &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: got.LeaseID}}
		unlike := service.BatchDeleteOptions{}
		unlike.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag(`"0x1"`))}}
		want := []string{"412 LeaseIdMissing", "", "404 BlobNotFound", "404 ContainerNotFound", "412 ConditionNotMet"}
		require.NoError(t, batch.Delete("cont", held, nil))
		require.NoError(t, batch.Delete("cont", held, &under))
		require.NoError(t, batch.Delete("cont", held, &under))
		require.NoError(t, batch.Delete("none", held, nil))
		require.NoError(t, batch.Delete("other", names["other"][0], &unlike))
		for _, name := range names["cont"][1:] {
			require.NoError(t, batch.Delete("cont", name, nil))
			want = append(want, "")
		}
		for _, name := range names["other"][1:53] {
			require.NoError(t, batch.Delete("other", name, nil))
			want = append(want, "")
		}
		require.Len(t, want, 256)
		done, err := svc.SubmitBatch(ctx, batch, nil)
		require.NoError(t, err)
		for i, part := range done.Responses {
			require.Equal(t, i, *part.ContentID, "in the order of the request")
			require.Equal(t, want[i], codeOf(t, part.Error), i)
			require.NotEmpty(t, *part.RequestID)
			require.Equal(t, *done.Version, *part.Version)
		}
		require.NoError(t, batch.Delete("cont", held, nil)) // 257.
		_, err = svc.SubmitBatch(ctx, batch, nil)
		require.ErrorContains(t, err, "ExceedsMaxBatchRequestCount")

		left, err := svc.NewContainerClient("other").NewListBlobsFlatPager(nil).NextPage(ctx)
		require.NoError(t, err)
		require.Len(t, left.Segment.BlobItems, 8)
		eventually(t, "the deletions arrive at -secondary", func() bool {
			far := b.second.ServiceClient()
			in, err := far.NewContainerClient("cont").NewListBlobsFlatPager(nil).NextPage(ctx)
			of, otherErr := far.NewContainerClient("other").NewListBlobsFlatPager(nil).NextPage(ctx)
			return err == nil && otherErr == nil && len(in.Segment.BlobItems) == 0 && len(of.Segment.BlobItems) == 8
		})

		far := b.second.ServiceClient().NewContainerClient("other")
		refused, err := far.NewBatchBuilder()
		require.NoError(t, err)
		require.NoError(t, refused.Delete(names["other"][0], nil))
		_, err = far.SubmitBatch(ctx, refused, nil)
		requireBlobCode(t, err, http.StatusForbidden, bloberror.InsufficientAccountPermissions)
		if round == 0 {
			moveTo(t, b.Cluster, blobTestAccount, North, South)
		}
	}
}

// A client with the signature of a container deletes there what that permits; a change of a tier is answered in a batch as it
// is alone.
func TestBlobBatchesBySignature(t *testing.T) {
	t.Parallel()
	b := startBlobTest(t)
	ctx := t.Context()
	_, err := b.first.CreateContainer(ctx, "cont", nil)
	require.NoError(t, err)
	names := b.putMany(t, "cont", 3)
	owner := b.first.ServiceClient().NewContainerClient("cont")
	for _, c := range []struct {
		may  sas.ContainerPermissions
		want string
	}{{sas.ContainerPermissions{Read: true, Write: true}, "403 AuthorizationPermissionMismatch"}, {sas.ContainerPermissions{Delete: true}, ""}} {
		url, err := owner.GetSASURL(c.may, time.Now().Add(time.Hour), nil)
		require.NoError(t, err)
		guest, err := container.NewClientWithNoCredential(url, &container.ClientOptions{
			ClientOptions: azcore.ClientOptions{Transport: http.DefaultClient, Retry: rest.RetryBusy()},
		})
		require.NoError(t, err)
		batch, err := guest.NewBatchBuilder()
		require.NoError(t, err)
		for _, name := range names[:2] {
			require.NoError(t, batch.Delete(name, nil))
		}
		done, err := guest.SubmitBatch(ctx, batch, nil)
		require.NoError(t, err)
		require.Len(t, done.Responses, 2)
		for _, part := range done.Responses {
			require.Equal(t, c.want, codeOf(t, part.Error))
		}
	}
	tiers, err := owner.NewBatchBuilder()
	require.NoError(t, err)
	require.NoError(t, tiers.SetTier(names[2], blob.AccessTierCool, nil))
	require.NoError(t, tiers.SetTier(names[0], blob.AccessTierCool, nil))
	done, err := owner.SubmitBatch(ctx, tiers, nil)
	require.NoError(t, err)
	var alone []error
	for _, name := range []string{names[2], names[0]} {
		_, err := owner.NewBlobClient(name).SetTier(ctx, blob.AccessTierCool, nil)
		alone = append(alone, err)
	}
	require.Equal(t, codeOf(t, alone[0]), codeOf(t, done.Responses[0].Error))
	require.Equal(t, codeOf(t, alone[1]), codeOf(t, done.Responses[1].Error))
	require.Error(t, errors.Join(alone...))
}
