package test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	blobsas "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	queuesas "github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/sas"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/devproc"
	"antipode/test/rest"
)

// A user of the official SDKs makes shared access signatures with their own helpers, and clients without a key do with
// them what they permit, at the primary and at -secondary, and nothing else.
//
// Capability: Clients: Official SDKs against both locations.
// Capability: Blobs: Copies.
// Capability: Queues: The protocol of queues.
func TestSDKSharedAccess(t *testing.T) {
	p := startDev(t)
	for _, st := range []style{hostStyle, pathStyle} {
		t.Run("aztables/"+string(st), func(t *testing.T) { testTableSAS(t, p, st) })
		t.Run("azblob/"+string(st), func(t *testing.T) { testBlobSAS(t, p, st) })
		t.Run("azqueue/"+string(st), func(t *testing.T) { testQueueSAS(t, p, st) })
	}
}

// tomorrow is when the signatures of these tests expire.
func tomorrow() time.Time { return time.Now().UTC().Add(24 * time.Hour).Truncate(time.Second) }

// at is the URL of something in a service, with a signature.
func at(p *devproc.Process, st style, s geo.Service, secondary bool, path, query string) string {
	return endpoint(p, st, s, secondary) + "/" + path + "?" + query
}

// queryOf is the signature in a URL that an SDK made.
func queryOf(t *testing.T, made string, err error) string {
	t.Helper()
	require.NoError(t, err)
	_, query, _ := strings.Cut(made, "?") // One SDK leaves out the slash between host and table.
	params, err := url.ParseQuery(query)
	require.NoError(t, err)
	require.NotEmpty(t, params.Get("sig"))
	return query
}

func testTableSAS(t *testing.T, p *devproc.Process, st style) {
	ctx, cancel := contextFor(t, 2*time.Minute)
	defer cancel()
	name, svc := "Sas"+string(st), tableService(t, p, st, false)
	_, err := svc.CreateTable(ctx, name, nil)
	require.NoError(t, err)
	owner := svc.NewClient(name)
	for _, pk := range []string{"a", "b"} {
		_, err = owner.AddEntity(ctx, entity(t, pk, "r", "x"), nil)
		require.NoError(t, err)
	}
	with := func(secondary bool, query string) *aztables.Client {
		c, err := aztables.NewClientWithNoCredential(
			at(p, st, geo.Table, secondary, name, query), &aztables.ClientOptions{ClientOptions: clientOptions(p)})
		require.NoError(t, err)
		return c
	}
	made, err := owner.GetTableSASURL(aztables.SASPermissions{Read: true, Add: true}, time.Time{}, tomorrow())
	query := queryOf(t, made, err)
	guest := with(false, query)
	_, err = guest.AddEntity(ctx, entity(t, "a", "guest", "x"), nil)
	require.NoError(t, err)
	_, err = guest.GetEntity(ctx, "a", "guest", nil)
	require.NoError(t, err)
	_, err = guest.DeleteEntity(ctx, "a", "guest", nil)
	requireCode(t, err, http.StatusForbidden, "AuthorizationPermissionMismatch")
	_, err = guest.UpsertEntity(ctx, entity(t, "a", "guest", "y"), nil)
	requireCode(t, err, http.StatusForbidden, "AuthorizationPermissionMismatch")
	_, err = guest.Delete(ctx, nil)
	requireCode(t, err, http.StatusForbidden, "AuthorizationFailure")
	_, err = guest.SubmitTransaction(ctx, []aztables.TransactionAction{
		{ActionType: aztables.TransactionTypeAdd, Entity: entity(t, "a", "one", "x")},
		{ActionType: aztables.TransactionTypeAdd, Entity: entity(t, "a", "two", "x")},
	}, nil)
	require.NoError(t, err)
	eventually(t, arriveWait, "entity at -secondary, by the same signature", func(ctx context.Context) error {
		_, err := with(true, query).GetEntity(ctx, "a", "two", nil)
		return err
	})
	_, err = with(true, query).AddEntity(ctx, entity(t, "a", "no", "x"), nil)
	requireCode(t, err, http.StatusForbidden, "InsufficientAccountPermissions")

	cred, err := aztables.NewSharedKeyCredential(string(rest.DevAccount), rest.DevKey)
	require.NoError(t, err)
	// This SDK signs the range, and leaves it out of the token.
	query, err = aztables.SASSignatureValues{
		TableName: name, Permissions: "ra", ExpiryTime: tomorrow(), StartPartitionKey: "b", EndPartitionKey: "b",
	}.Sign(cred)
	require.NoError(t, err)
	_, err = with(false, query).GetEntity(ctx, "b", "r", nil)
	requireCode(t, err, http.StatusForbidden, "AuthenticationFailed")
	ranged := with(false, query+"&spk=b&epk=b")
	page, err := ranged.NewListEntitiesPager(nil).NextPage(ctx)
	require.NoError(t, err)
	require.Len(t, page.Entities, 1)
	_, err = ranged.GetEntity(ctx, "a", "r", nil)
	requireCode(t, err, http.StatusNotFound, "ResourceNotFound")
	_, err = ranged.AddEntity(ctx, entity(t, "a", "no", "x"), nil)
	requireCode(t, err, http.StatusForbidden, "AuthorizationFailure")

	_, err = owner.SetAccessPolicy(ctx, &aztables.SetAccessPolicyOptions{TableACL: []*aztables.SignedIdentifier{{
		ID: to.Ptr("readers"), AccessPolicy: &aztables.AccessPolicy{Expiry: to.Ptr(tomorrow()), Permission: to.Ptr("r")},
	}}})
	require.NoError(t, err)
	acl, err := owner.GetAccessPolicy(ctx, nil)
	require.NoError(t, err)
	require.Len(t, acl.SignedIdentifiers, 1)
	require.Equal(t, "r", *acl.SignedIdentifiers[0].AccessPolicy.Permission)
	query, err = aztables.SASSignatureValues{TableName: name, Identifier: "readers"}.Sign(cred)
	require.NoError(t, err)
	_, err = with(false, query).GetEntity(ctx, "a", "r", nil)
	require.NoError(t, err)
	_, err = owner.SetAccessPolicy(ctx, nil)
	require.NoError(t, err)
	_, err = with(false, query).GetEntity(ctx, "a", "r", nil)
	requireCode(t, err, http.StatusForbidden, "AuthenticationFailed")

	// This helper permits https alone.
	all := aztables.AccountSASResourceTypes{Service: true, Container: true, Object: true}
	made, err = svc.GetAccountSASURL(all, aztables.AccountSASPermissions{List: true}, time.Now().UTC(), tomorrow())
	_, err = serviceBySAS(t, p, st, queryOf(t, made, err)).NewListTablesPager(nil).NextPage(ctx)
	requireCode(t, err, http.StatusForbidden, "AuthorizationProtocolMismatch")
	query, err = signAccount(cred, all, "rwdlacu")
	require.NoError(t, err)
	account := serviceBySAS(t, p, st, query)
	_, err = account.CreateTable(ctx, name+"More", nil)
	require.NoError(t, err)
	tables, err := account.NewListTablesPager(nil).NextPage(ctx)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(tables.Tables), 2)
	_, err = account.DeleteTable(ctx, name+"More", nil)
	require.NoError(t, err)
	_, err = account.NewClient(name).GetAccessPolicy(ctx, nil)
	requireCode(t, err, http.StatusForbidden, "AuthorizationFailure")
}

// signAccount is an account signature of the table service.
func signAccount(cred *aztables.SharedKeyCredential, types aztables.AccountSASResourceTypes, letters string) (string, error) {
	q, err := aztables.AccountSASSignatureValues{
		Version: aztables.SASVersion, Protocol: aztables.SASProtocolHTTPSandHTTP, Permissions: letters, Services: "t",
		ResourceTypes: types.String(), StartTime: time.Now().UTC().Add(-time.Hour), ExpiryTime: tomorrow(),
	}.Sign(cred)
	return q.Encode(), err
}

func serviceBySAS(t *testing.T, p *devproc.Process, st style, query string) *aztables.ServiceClient {
	t.Helper()
	c, err := aztables.NewServiceClientWithNoCredential(
		at(p, st, geo.Table, false, "", query), &aztables.ClientOptions{ClientOptions: clientOptions(p)})
	require.NoError(t, err)
	return c
}

func testBlobSAS(t *testing.T, p *devproc.Process, st style) {
	ctx, cancel := contextFor(t, 2*time.Minute)
	defer cancel()
	first, name := blobClient(t, p, st, false), "sas-"+string(st)
	_, err := first.CreateContainer(ctx, name, nil)
	require.NoError(t, err)
	_, err = first.UploadBuffer(ctx, name, "dir/a b+%.txt", []byte("hello"), nil)
	require.NoError(t, err)
	options := &container.ClientOptions{ClientOptions: clientOptions(p)}
	owner := first.ServiceClient().NewContainerClient(name)
	made, err := owner.GetSASURL(blobsas.ContainerPermissions{Read: true, Create: true, List: true}, tomorrow(), nil)
	query := queryOf(t, made, err)
	guest, err := container.NewClientWithNoCredential(at(p, st, geo.Blob, false, name, query), options)
	require.NoError(t, err)
	list, err := guest.NewListBlobsFlatPager(nil).NextPage(ctx)
	require.NoError(t, err)
	require.Len(t, list.Segment.BlobItems, 1)
	created := guest.NewBlockBlobClient("made")
	_, err = created.UploadBuffer(ctx, content(100), nil)
	require.NoError(t, err)
	_, err = created.UploadBuffer(ctx, content(100), nil)
	requireCode(t, err, http.StatusForbidden, "UnauthorizedBlobOverwrite")
	_, err = created.Delete(ctx, nil)
	requireCode(t, err, http.StatusForbidden, "AuthorizationPermissionMismatch")
	there, err := container.NewClientWithNoCredential(at(p, st, geo.Blob, true, name, query), options)
	require.NoError(t, err)
	eventually(t, arriveWait, "blob at -secondary, by the same signature", func(ctx context.Context) error {
		_, err := there.NewBlobClient("made").GetProperties(ctx, nil)
		return err
	})
	_, err = there.NewBlockBlobClient("no").UploadBuffer(ctx, content(1), nil)
	requireCode(t, err, http.StatusForbidden, "InsufficientAccountPermissions")

	made, err = owner.NewBlobClient("dir/a b+%.txt").GetSASURL(blobsas.BlobPermissions{Read: true}, tomorrow(), nil)
	queryOf(t, made, err)
	one, err := blockblob.NewClientWithNoCredential(made, &blockblob.ClientOptions{ClientOptions: clientOptions(p)})
	require.NoError(t, err)
	got, err := one.DownloadStream(ctx, nil)
	require.NoError(t, err)
	body, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	require.Equal(t, "hello", string(body))
	other, err := blockblob.NewClientWithNoCredential(strings.Replace(made, "dir", "dar", 1), &blockblob.ClientOptions{ClientOptions: clientOptions(p)})
	require.NoError(t, err)
	_, err = other.GetProperties(ctx, nil)
	requireCode(t, err, http.StatusForbidden, "AuthenticationFailed")

	_, err = owner.SetAccessPolicy(ctx, &container.SetAccessPolicyOptions{ContainerACL: []*container.SignedIdentifier{{
		ID: to.Ptr("readers"), AccessPolicy: &container.AccessPolicy{Expiry: to.Ptr(tomorrow()), Permission: to.Ptr("lr")},
	}}})
	require.NoError(t, err)
	acl, err := owner.GetAccessPolicy(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, "rl", *acl.SignedIdentifiers[0].AccessPolicy.Permission)
	cred, err := azblob.NewSharedKeyCredential(string(rest.DevAccount), rest.DevKey)
	require.NoError(t, err)
	by, err := blobsas.BlobSignatureValues{ContainerName: name, Identifier: "readers", ContentType: "text/x", CacheControl: "no-store"}.SignWithSharedKey(cred)
	require.NoError(t, err)
	reader, err := container.NewClientWithNoCredential(at(p, st, geo.Blob, false, name, by.Encode()), options)
	require.NoError(t, err)
	shown, err := reader.NewBlobClient("made").GetProperties(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, "text/x no-store", *shown.ContentType+" "+*shown.CacheControl)

	made, err = first.ServiceClient().GetSASURL(
		blobsas.AccountResourceTypes{Service: true, Container: true}, blobsas.AccountPermissions{Read: true, List: true}, tomorrow(), nil)
	queryOf(t, made, err)
	account, err := azblob.NewClientWithNoCredential(made, &azblob.ClientOptions{ClientOptions: clientOptions(p)})
	require.NoError(t, err)
	_, err = account.NewListContainersPager(nil).NextPage(ctx)
	require.NoError(t, err)
	_, err = account.DownloadStream(ctx, name, "made", nil)
	requireCode(t, err, http.StatusForbidden, "AuthorizationResourceTypeMismatch")
}

func testQueueSAS(t *testing.T, p *devproc.Process, st style) {
	ctx, cancel := contextFor(t, 2*time.Minute)
	defer cancel()
	svc, name := queueService(t, p, st, false), "sas-"+string(st)
	_, err := svc.CreateQueue(ctx, name, nil)
	require.NoError(t, err)
	with := func(secondary bool, query string) *azqueue.QueueClient {
		c, err := azqueue.NewQueueClientWithNoCredential(
			at(p, st, geo.Queue, secondary, name, query), &azqueue.ClientOptions{ClientOptions: clientOptions(p)})
		require.NoError(t, err)
		return c
	}
	// This helper permits https alone.
	made, err := svc.NewQueueClient(name).GetSASURL(queuesas.QueuePermissions{Add: true}, tomorrow(), nil)
	_, err = with(false, queryOf(t, made, err)).EnqueueMessage(ctx, "x", nil)
	requireCode(t, err, http.StatusForbidden, "AuthorizationProtocolMismatch")

	cred, err := azqueue.NewSharedKeyCredential(string(rest.DevAccount), rest.DevKey)
	require.NoError(t, err)
	by, err := queuesas.QueueSignatureValues{QueueName: name, Permissions: "rap", ExpiryTime: tomorrow()}.SignWithSharedKey(cred)
	require.NoError(t, err)
	guest := with(false, by.Encode())
	_, err = guest.EnqueueMessage(ctx, "x", nil)
	require.NoError(t, err)
	eventually(t, arriveWait, "message at -secondary, by the same signature", func(ctx context.Context) error {
		peeked, err := with(true, by.Encode()).PeekMessage(ctx, nil)
		return sameOrWait(err, len(peeked.Messages), 1)
	})
	got, err := guest.DequeueMessage(ctx, nil)
	require.NoError(t, err)
	require.Len(t, got.Messages, 1)
	id, receipt := *got.Messages[0].MessageID, *got.Messages[0].PopReceipt
	_, err = guest.UpdateMessage(ctx, id, receipt, "y", nil)
	requireCode(t, err, http.StatusForbidden, "AuthorizationPermissionMismatch")
	_, err = guest.DeleteMessage(ctx, id, receipt, nil)
	require.NoError(t, err)
	_, err = guest.ClearMessages(ctx, nil)
	requireCode(t, err, http.StatusForbidden, "AuthorizationFailure")
	_, err = with(true, by.Encode()).DequeueMessage(ctx, nil)
	requireCode(t, err, http.StatusForbidden, "InsufficientAccountPermissions")
}
