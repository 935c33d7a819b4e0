package test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/devproc"
	"antipode/test/rest"
)

func queueService(t *testing.T, p *devproc.Process, st style, secondary bool) *azqueue.ServiceClient {
	t.Helper()
	cred, err := azqueue.NewSharedKeyCredential(string(rest.DevAccount), rest.DevKey)
	require.NoError(t, err)
	svc, err := azqueue.NewServiceClientWithSharedKeyCredential(
		endpoint(p, st, geo.Queue, secondary), cred, &azqueue.ClientOptions{ClientOptions: clientOptions(p)})
	require.NoError(t, err)
	return svc
}

func testQueues(t *testing.T, p *devproc.Process, st style) {
	ctx, cancel := contextFor(t, 2*time.Minute)
	defer cancel()
	svc, second := queueService(t, p, st, false), queueService(t, p, st, true)
	name := "sdk-" + string(st)
	red := &azqueue.CreateOptions{Metadata: map[string]*string{"color": to.Ptr("red")}}
	_, err := svc.CreateQueue(ctx, name, red)
	require.NoError(t, err)
	_, err = svc.CreateQueue(ctx, name, red)
	require.NoError(t, err, "with the same metadata it is there already")
	_, err = svc.CreateQueue(ctx, name, nil)
	requireCode(t, err, http.StatusConflict, "QueueAlreadyExists")

	testQueueListing(ctx, t, svc, name)
	queue := svc.NewQueueClient(name)
	testQueueItself(ctx, t, queue)
	testMessages(ctx, t, queue)
	testQueueSecondary(ctx, t, queue, second.NewQueueClient(name))

	// The client parses the statistics, which it could not if the Last Sync Time element were there and empty.
	stats, err := second.GetStatistics(ctx, nil)
	require.NoError(t, err)
	require.NotNil(t, stats.GeoReplication)
	requirePlausible(t, string(*stats.GeoReplication.Status), stats.GeoReplication.LastSyncTime)

	_, err = svc.DeleteQueue(ctx, name, nil)
	require.NoError(t, err)
	_, err = queue.GetProperties(ctx, nil)
	requireCode(t, err, http.StatusNotFound, "QueueNotFound")
	_, err = queue.EnqueueMessage(ctx, "x", nil)
	requireCode(t, err, http.StatusNotFound, "QueueNotFound")
}

func testQueueListing(ctx context.Context, t *testing.T, svc *azqueue.ServiceClient, name string) {
	for i := range 3 {
		_, err := svc.CreateQueue(ctx, fmt.Sprint(name, "-", i), nil)
		require.NoError(t, err)
	}
	var names []string
	pages := 0
	pager := svc.NewListQueuesPager(&azqueue.ListQueuesOptions{
		Prefix: &name, MaxResults: to.Ptr(int32(3)), Include: azqueue.ListQueuesInclude{Metadata: true},
	})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		require.NoError(t, err)
		pages++
		for _, q := range page.Queues {
			names = append(names, *q.Name)
			if *q.Name == name {
				require.Equal(t, "red", *q.Metadata["color"])
			}
		}
	}
	require.Equal(t, []string{name, name + "-0", name + "-1", name + "-2"}, names)
	require.GreaterOrEqual(t, pages, 2)
}

func testQueueItself(ctx context.Context, t *testing.T, queue *azqueue.QueueClient) {
	_, err := queue.SetMetadata(ctx, &azqueue.SetMetadataOptions{Metadata: map[string]*string{"size": to.Ptr("1")}})
	require.NoError(t, err)
	got, err := queue.GetProperties(ctx, nil)
	require.NoError(t, err)
	require.EqualValues(t, 0, *got.ApproximateMessagesCount)
	require.Len(t, got.Metadata, 1)

	start, expiry := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2034, 1, 2, 3, 4, 5, 0, time.UTC)
	_, err = queue.SetAccessPolicy(ctx, &azqueue.SetAccessPolicyOptions{QueueACL: []*azqueue.SignedIdentifier{{
		ID: to.Ptr("one"), AccessPolicy: &azqueue.AccessPolicy{Start: &start, Expiry: &expiry, Permission: to.Ptr("raup")},
	}}})
	require.NoError(t, err)
	acl, err := queue.GetAccessPolicy(ctx, nil)
	require.NoError(t, err)
	require.Len(t, acl.SignedIdentifiers, 1)
	require.True(t, start.Equal(*acl.SignedIdentifiers[0].AccessPolicy.Start))
	require.Equal(t, "raup", *acl.SignedIdentifiers[0].AccessPolicy.Permission)
}

// testMessages walks messages through their lives, with the refusals on the way.
func testMessages(ctx context.Context, t *testing.T, queue *azqueue.QueueClient) {
	texts := []string{"", " <a & b>\r\n\t'\"; ]]> søn \U0001F600 ", "QUJDRA==", strings.Repeat("x", 65536)}
	for _, text := range texts {
		_, err := queue.EnqueueMessage(ctx, text, nil)
		require.NoError(t, err)
	}
	_, err := queue.EnqueueMessage(ctx, strings.Repeat("x", 65537), nil)
	requireCode(t, err, http.StatusRequestEntityTooLarge, "RequestBodyTooLarge")
	peeked, err := queue.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})
	require.NoError(t, err)
	require.Len(t, peeked.Messages, len(texts))
	got, err := queue.DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(32)), VisibilityTimeout: to.Ptr(int32(60))})
	require.NoError(t, err)
	require.Len(t, got.Messages, len(texts))
	for i, text := range texts {
		require.Equal(t, text, textOf(peeked.Messages[i].MessageText))
		require.Equal(t, text, textOf(got.Messages[i].MessageText))
		require.EqualValues(t, 1, *got.Messages[i].DequeueCount)
	}
	none, err := queue.DequeueMessage(ctx, nil)
	require.NoError(t, err)
	require.Empty(t, none.Messages)

	first := got.Messages[0]
	updated, err := queue.UpdateMessage(ctx, *first.MessageID, *first.PopReceipt, "changed", &azqueue.UpdateMessageOptions{VisibilityTimeout: to.Ptr(int32(0))})
	require.NoError(t, err)
	_, err = queue.DeleteMessage(ctx, *first.MessageID, *first.PopReceipt, nil)
	requireCode(t, err, http.StatusNotFound, "MessageNotFound")
	again, err := queue.PeekMessage(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, "changed", textOf(again.Messages[0].MessageText))
	_, err = queue.DeleteMessage(ctx, *first.MessageID, *updated.PopReceipt, nil)
	require.NoError(t, err)

	properties, err := queue.GetProperties(ctx, nil)
	require.NoError(t, err)
	require.EqualValues(t, len(texts)-1, *properties.ApproximateMessagesCount)
	_, err = queue.ClearMessages(ctx, nil)
	require.NoError(t, err)
	kept, err := queue.EnqueueMessage(ctx, "never", &azqueue.EnqueueMessageOptions{TimeToLive: to.Ptr(int32(-1)), VisibilityTimeout: to.Ptr(int32(600))})
	require.NoError(t, err)
	require.Equal(t, 9999, kept.Messages[0].ExpirationTime.Year())
	_, err = queue.DeleteMessage(ctx, *kept.Messages[0].MessageID, *kept.Messages[0].PopReceipt, nil)
	require.NoError(t, err)
}

// textOf is the text of a message: the client has none for an empty element.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// testQueueSecondary peeks at -secondary, which refuses what writes, a get included.
func testQueueSecondary(ctx context.Context, t *testing.T, queue, second *azqueue.QueueClient) {
	sent, err := queue.EnqueueMessage(ctx, "geo", nil)
	require.NoError(t, err)
	eventually(t, arriveWait, "message at -secondary", func(ctx context.Context) error {
		there, err := second.PeekMessages(ctx, nil)
		if err == nil && len(there.Messages) == 1 {
			return sameOrWait(nil, *there.Messages[0].MessageID, *sent.Messages[0].MessageID)
		}
		return fmt.Errorf("%d messages, %w", len(there.Messages), err)
	})
	_, err = second.DequeueMessage(ctx, nil)
	requireCode(t, err, http.StatusForbidden, "InsufficientAccountPermissions")
	_, err = second.EnqueueMessage(ctx, "x", nil)
	requireCode(t, err, http.StatusForbidden, "InsufficientAccountPermissions")
	_, err = second.ClearMessages(ctx, nil)
	requireCode(t, err, http.StatusForbidden, "InsufficientAccountPermissions")
	here, err := queue.PeekMessage(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, "geo", textOf(here.Messages[0].MessageText))
}
