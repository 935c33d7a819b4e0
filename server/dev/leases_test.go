package dev

import (
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/stretchr/testify/require"
)

const (
	leaseA = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	leaseB = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
)

func (*blobTest) leaseOf(t *testing.T, c *azblob.Client, name, id string) *lease.BlobClient {
	t.Helper()
	of, err := lease.NewBlobClient(c.ServiceClient().NewContainerClient("cont").NewBlobClient(name), &lease.BlobClientOptions{LeaseID: to.Ptr(id)})
	require.NoError(t, err)
	return of
}

func underLease(id string) *azblob.UploadBufferOptions {
	return &azblob.UploadBufferOptions{
		AccessConditions: &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: to.Ptr(id)}},
	}
}

// An official client holds leases of a blob and of a container through a planned failover: -secondary shows them and takes no
// action, writes need the id at either primary, and nobody else gets one. Of fifty clients one gets the lease.
//
// Capability: Blobs: Leases.
func TestLeasesWithSDK(t *testing.T) {
	t.Parallel()
	b := startFinalized(t)
	ctx := t.Context()
	put, err := b.first.UploadBuffer(ctx, "cont", "b", blobContent(20<<10, 1), nil)
	require.NoError(t, err)
	got, err := b.leaseOf(t, b.first, "b", leaseA).AcquireLease(ctx, -1, nil)
	require.NoError(t, err)
	require.Equal(t, leaseA, *got.LeaseID)
	require.Equal(t, *put.ETag, *got.ETag, "a lease leaves it")

	box := b.first.ServiceClient().NewContainerClient("cont")
	held, err := lease.NewContainerClient(box, &lease.ContainerClientOptions{LeaseID: to.Ptr(leaseA)})
	require.NoError(t, err)
	_, err = held.AcquireLease(ctx, 60, nil)
	require.NoError(t, err)

	far := b.second.ServiceClient().NewContainerClient("cont")
	eventually(t, "both leases at -secondary", func() bool {
		of, err := far.GetProperties(ctx, nil)
		at, blobErr := far.NewBlobClient("b").GetProperties(ctx, nil)
		return err == nil && blobErr == nil && *of.LeaseState == "leased" && *at.LeaseState == "leased"
	})
	at, err := far.NewBlobClient("b").GetProperties(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, lease.DurationTypeInfinite, *at.LeaseDuration)
	require.Equal(t, lease.StatusTypeLocked, *at.LeaseStatus)
	_, err = b.leaseOf(t, b.second, "b", leaseA).RenewLease(ctx, nil)
	requireBlobCode(t, err, 403, bloberror.InsufficientAccountPermissions)

	refused := func() {
		t.Helper()
		for _, length := range []int{10, 20 << 10} {
			_, err := b.first.UploadBuffer(ctx, "cont", "b", blobContent(length, 2), nil)
			requireBlobCode(t, err, 412, bloberror.LeaseIDMissing)
		}
		_, err = b.first.UploadBuffer(ctx, "cont", "b", blobContent(10, 2), underLease(leaseB))
		requireBlobCode(t, err, 412, bloberror.LeaseIDMismatchWithBlobOperation)
		_, err = b.first.DeleteBlob(ctx, "cont", "b", nil)
		requireBlobCode(t, err, 412, bloberror.LeaseIDMissing)
		_, err = b.first.DeleteContainer(ctx, "cont", nil)
		requireBlobCode(t, err, 412, bloberror.LeaseIDMissing)
		_, err = b.leaseOf(t, b.first, "b", leaseB).AcquireLease(ctx, 15, nil)
		requireBlobCode(t, err, 409, bloberror.LeaseAlreadyPresent)
	}
	refused()
	moveTo(t, b.Cluster, blobTestAccount, North, South)
	refused()
	_, err = b.leaseOf(t, b.first, "b", leaseA).RenewLease(ctx, nil)
	require.NoError(t, err)
	put2, err := b.first.UploadBuffer(ctx, "cont", "b", blobContent(30<<10, 3), underLease(leaseA))
	require.NoError(t, err)
	b.requireBlob(t, b.first, "cont", "b", blobContent(30<<10, 3), *put2.ETag)

	listed, err := box.NewListBlobsFlatPager(nil).NextPage(ctx)
	require.NoError(t, err)
	require.Equal(t, lease.StateTypeLeased, *listed.Segment.BlobItems[0].Properties.LeaseState, "a write keeps it")
	broken, err := b.leaseOf(t, b.first, "b", leaseB).BreakLease(ctx, nil)
	require.NoError(t, err)
	require.Zero(t, *broken.LeaseTime)

	var wg sync.WaitGroup
	won := make(chan string, 50)
	for range 50 {
		wg.Go(func() {
			of, err := lease.NewBlobClient(box.NewBlobClient("b"), nil)
			if err == nil {
				if got, err := of.AcquireLease(ctx, 60, nil); err == nil {
					won <- *got.LeaseID
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, won, 1)
	_, err = b.first.DeleteBlob(ctx, "cont", "b", &azblob.DeleteBlobOptions{
		AccessConditions: &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: to.Ptr(<-won)}},
	})
	require.NoError(t, err)
	_, err = held.RenewLease(ctx, nil)
	require.NoError(t, err)
	_, err = b.first.DeleteContainer(ctx, "cont", &container.DeleteOptions{
		AccessConditions: &container.AccessConditions{LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: to.Ptr(leaseA)}},
	})
	require.NoError(t, err)
}

// R20: an unplanned failover keeps the leases that had arrived, and no other: the blob whose lease was lost takes writes.
//
// Capability: Blobs: Leases.
func TestR20LeasesArePromoted(t *testing.T) {
	t.Parallel()
	b := startFinalized(t)
	ctx := t.Context()
	for _, name := range []string{"kept", "lost"} {
		_, err := b.first.UploadBuffer(ctx, "cont", name, blobContent(10, 1), nil)
		require.NoError(t, err)
	}
	state := func(c *azblob.Client, name string) lease.StateType {
		p, err := c.ServiceClient().NewContainerClient("cont").NewBlobClient(name).GetProperties(ctx, nil)
		if err != nil || p.LeaseState == nil {
			return ""
		}
		return *p.LeaseState
	}
	_, err := b.leaseOf(t, b.first, "kept", leaseA).AcquireLease(ctx, -1, nil)
	require.NoError(t, err)
	eventually(t, "one lease at -secondary", func() bool {
		return state(b.second, "kept") == lease.StateTypeLeased && state(b.second, "lost") == lease.StateTypeAvailable
	})
	b.link.Cut()
	_, err = b.leaseOf(t, b.first, "lost", leaseA).AcquireLease(ctx, -1, nil)
	require.NoError(t, err)
	require.NoError(t, b.stopLocation(ctx, North))
	b.link.Heal()
	promote(t, b.Cluster, blobTestAccount)
	eventually(t, "the new primary takes writes", func() bool {
		_, err := b.first.UploadBuffer(ctx, "cont", "lost", blobContent(10, 2), nil)
		return err == nil
	})
	require.Equal(t, lease.StateTypeAvailable, state(b.first, "lost"))
	require.Equal(t, lease.StateTypeLeased, state(b.first, "kept"))
	_, err = b.first.UploadBuffer(ctx, "cont", "kept", blobContent(10, 2), nil)
	requireBlobCode(t, err, 412, bloberror.LeaseIDMissing)
	_, err = b.leaseOf(t, b.first, "kept", leaseB).AcquireLease(ctx, -1, nil)
	requireBlobCode(t, err, 409, bloberror.LeaseAlreadyPresent)
	_, err = b.leaseOf(t, b.first, "kept", leaseA).ReleaseLease(ctx, nil)
	require.NoError(t, err)
}
