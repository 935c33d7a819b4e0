package client_test

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"antipode/client"
	"antipode/geo"
)

// A blob is read while the primary location is stopped: the second try goes to the secondary.
func Example() {
	acct := startWithoutPrimary() // Of these examples: an account whose primary location is stopped.
	defer acct.close()

	p, err := client.New(geo.Blob, acct.endpoint(geo.Blob), client.Options{
		Mode:       client.PrimaryThenSecondary,
		TryTimeout: 30 * time.Second,
		OnTry:      func(_ context.Context, t client.Try) { fmt.Println(t.Method, "at the", t.Endpoint, t.Status) },
	})
	check(err)
	cred, err := azblob.NewSharedKeyCredential(acct.name, acct.key)
	check(err)
	blobs, err := azblob.NewClientWithSharedKeyCredential(acct.endpoint(geo.Blob), cred, &azblob.ClientOptions{
		ClientOptions: azcore.ClientOptions{PerCallPolicies: []policy.Policy{p}},
	})
	check(err)
	got, err := blobs.DownloadStream(context.Background(), "pictures", "cat", nil)
	check(err)
	b, err := io.ReadAll(got.Body)
	check(err)
	check(got.Body.Close())
	fmt.Printf("%s\n", b)
	// Output:
	// GET at the primary 503
	// GET at the secondary 200
	// a cat
}

// Mode and retries of single requests: a page of entities from the secondary, and a write that fails at once.
func ExampleWithLocationMode() {
	acct := startWithoutPrimary()
	defer acct.close()

	p, err := client.New(geo.Table, acct.endpoint(geo.Table), client.Options{})
	check(err)
	cred, err := aztables.NewSharedKeyCredential(acct.name, acct.key)
	check(err)
	tables, err := aztables.NewServiceClientWithSharedKey(acct.endpoint(geo.Table), cred, &aztables.ClientOptions{
		ClientOptions: azcore.ClientOptions{PerCallPolicies: []policy.Policy{p}},
	})
	check(err)
	animals := tables.NewClient("animals")

	// All pages of a listing are read from one endpoint.
	ctx := client.Pin(client.WithLocationMode(context.Background(), client.PrimaryThenSecondary))
	for pages := animals.NewListEntitiesPager(nil); pages.More(); {
		page, err := pages.NextPage(ctx)
		check(err)
		fmt.Println(len(page.Entities), "entity")
	}
	once := client.WithRetryPolicy(context.Background(), client.NoRetry{})
	_, err = animals.UpsertEntity(once, []byte(`{"PartitionKey":"cat","RowKey":"2"}`), nil)
	fmt.Println("written:", err == nil)
	// Output:
	// 1 entity
	// written: false
}

// lastAtSecondary waits a second between tries, and makes the last of four at the secondary.
type lastAtSecondary struct{}

func (lastAtSecondary) Evaluate(_ context.Context, c client.RetryContext) (client.Retry, bool) {
	if c.Retries >= 3 || !client.Retriable(c.Last) {
		return client.Retry{}, false
	}
	next := client.Retry{Endpoint: c.Next, Mode: c.Mode, Wait: c.Wait(c.Next, time.Second)}
	if c.Retries == 2 {
		next.Endpoint = client.Secondary
	}
	return next, true
}

// A retry policy that chooses where the last try goes.
func ExampleRetryPolicy() {
	var p client.RetryPolicy = lastAtSecondary{}
	c := client.RetryContext{
		Last:  client.Result{Endpoint: client.Primary, Status: 503},
		Next:  client.Primary,
		Since: map[client.Endpoint]time.Duration{client.Primary: 200 * time.Millisecond},
	}
	for again := true; again; c.Retries++ {
		var next client.Retry
		if next, again = p.Evaluate(context.Background(), c); again {
			fmt.Println("wait", next.Wait, "then the", next.Endpoint)
		}
	}
	// Output:
	// wait 800ms then the primary
	// wait 800ms then the primary
	// wait 800ms then the secondary
}
