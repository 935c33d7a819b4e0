package client_test

import (
	"context"
	"encoding/base64"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"antipode/client"
	"antipode/client/admin"
	"antipode/geo"
	"antipode/server/dev"
	"antipode/test/devproc"
)

// account is an account of two locations in this process.
type account struct {
	name, key string
	cluster   *dev.Cluster
	dir       string
	endpoints map[geo.Service]string
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// startWithoutPrimary starts both locations, fills an account, waits until the secondary has all of it and stops the primary.
func startWithoutPrimary() *account {
	base, err := devproc.FreePortBase(&devproc.Held{})
	check(err)
	dir, err := os.MkdirTemp("", "client")
	check(err)
	key := make([]byte, 64)
	a := &account{name: "zoo", key: base64.StdEncoding.EncodeToString(key), dir: dir, endpoints: map[geo.Service]string{}}
	a.cluster, err = dev.Open(dev.ClusterOptions{
		Dir: dir, Host: "127.0.0.1", PortBase: base, Tick: 20 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	check(a.cluster.Start(ctx))
	check(a.cluster.EnsureAccount(ctx, dev.North, geo.Account(a.name), key, key))
	ports := dev.Ports{Host: "127.0.0.1", Base: base}
	for _, s := range geo.Services {
		a.endpoints[s] = "http://" + ports.Of(s) + "/" + a.name
	}
	a.fill(ctx)
	operator, err := admin.New("http://"+ports.Admin(), nil)
	check(err)
	_, err = operator.StopLocation(ctx, dev.North)
	check(err)
	return a
}

// endpoint is what clients of a service are made with.
func (a *account) endpoint(s geo.Service) string { return a.endpoints[s] }

// clients are those of the account with a mode.
func (a *account) clients(m client.LocationMode) (*azblob.Client, *aztables.ServiceClient) {
	options := func(s geo.Service) azcore.ClientOptions {
		p, err := client.New(s, a.endpoint(s), client.Options{Mode: m, Retry: client.Linear{Retries: 1000, Apart: 20 * time.Millisecond}})
		check(err)
		return azcore.ClientOptions{PerCallPolicies: []policy.Policy{p}}
	}
	blobKey, err := azblob.NewSharedKeyCredential(a.name, a.key)
	check(err)
	blobs, err := azblob.NewClientWithSharedKeyCredential(a.endpoint(geo.Blob), blobKey, &azblob.ClientOptions{ClientOptions: options(geo.Blob)})
	check(err)
	tableKey, err := aztables.NewSharedKeyCredential(a.name, a.key)
	check(err)
	tables, err := aztables.NewServiceClientWithSharedKey(a.endpoint(geo.Table), tableKey, &aztables.ClientOptions{ClientOptions: options(geo.Table)})
	check(err)
	return blobs, tables
}

// fill writes a blob and an entity, and waits for both at the secondary: what is not there yet is asked for again.
func (a *account) fill(ctx context.Context) {
	blobs, tables := a.clients(client.PrimaryOnly)
	_, err := blobs.CreateContainer(ctx, "pictures", nil)
	check(err)
	_, err = blobs.UploadBuffer(ctx, "pictures", "cat", []byte("a cat"), nil)
	check(err)
	_, err = tables.CreateTable(ctx, "animals", nil)
	check(err)
	_, err = tables.NewClient("animals").UpsertEntity(ctx, []byte(`{"PartitionKey":"cat","RowKey":"1"}`), nil)
	check(err)
	blobs, tables = a.clients(client.SecondaryOnly)
	_, err = blobs.DownloadBuffer(ctx, "pictures", "cat", make([]byte, 10), nil)
	check(err)
	_, err = tables.NewClient("animals").GetEntity(ctx, "cat", "1", nil)
	check(err)
}

func (a *account) close() {
	check(a.cluster.Close())
	check(os.RemoveAll(a.dir))
}
