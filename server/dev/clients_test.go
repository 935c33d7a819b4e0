package dev

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/stretchr/testify/require"

	"antipode/client"
	"antipode/geo"
)

// sdkAccount is northacct as the Azure SDK for Go reaches it through package client.
type sdkAccount struct {
	blobs  *azblob.Client
	tables *aztables.Client

	mu sync.Mutex
	// tries are where the tries since the last take went: "PS". Guarded by mu.
	tries strings.Builder
}

// sdkClient makes clients of a front end in path style, which keep to one location's ports if secondary is nil.
func sdkClient(t *testing.T, primary Ports, secondary *Ports, o client.Options) *sdkAccount {
	t.Helper()
	a := &sdkAccount{}
	o.OnTry = func(_ context.Context, try client.Try) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.tries.WriteString(strings.ToUpper(try.Endpoint.String()[:1]))
	}
	hc := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(hc.CloseIdleConnections)
	of := func(s geo.Service) (string, azcore.ClientOptions) {
		url := "http://" + primary.Of(s) + "/northacct"
		if secondary != nil {
			o.Secondary = "http://" + secondary.Of(s) + "/northacct" + geo.SecondarySuffix
		}
		p, err := client.New(s, url, o)
		require.NoError(t, err)
		return url, azcore.ClientOptions{Transport: hc, PerCallPolicies: []policy.Policy{p}}
	}
	key := base64.StdEncoding.EncodeToString(key64)
	url, co := of(geo.Blob)
	blobKey, err := azblob.NewSharedKeyCredential("northacct", key)
	require.NoError(t, err)
	a.blobs, err = azblob.NewClientWithSharedKeyCredential(url, blobKey, &azblob.ClientOptions{ClientOptions: co})
	require.NoError(t, err)
	url, co = of(geo.Table)
	tableKey, err := aztables.NewSharedKeyCredential("northacct", key)
	require.NoError(t, err)
	svc, err := aztables.NewServiceClientWithSharedKey(url, tableKey, &aztables.ClientOptions{ClientOptions: co})
	require.NoError(t, err)
	a.tables = svc.NewClient("tbl")
	return a
}

// take returns where the tries went since the last call.
func (a *sdkAccount) take() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.tries.Reset()
	return a.tries.String()
}

func (a *sdkAccount) getBlob(ctx context.Context, name string) (string, error) {
	resp, err := a.blobs.DownloadStream(ctx, "ccc", name, nil)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(resp.Body)
	return string(b), errors.Join(err, resp.Body.Close())
}

func (a *sdkAccount) putBlob(ctx context.Context, name, value string) error {
	_, err := a.blobs.UploadBuffer(ctx, "ccc", name, []byte(value), nil)
	return err
}

func (a *sdkAccount) getEntity(ctx context.Context, pk string) (string, error) {
	e, err := a.tables.GetEntity(ctx, pk, "r", nil)
	return string(e.Value), err
}

func (a *sdkAccount) putEntity(ctx context.Context, pk, value string) error {
	_, err := a.tables.UpsertEntity(ctx, fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":"r","v":%q}`, pk, value), nil)
	return err
}

// requireReads requires that a blob and an entity are read, each with these tries.
func (a *sdkAccount) requireReads(ctx context.Context, t *testing.T, tries string) {
	t.Helper()
	a.take()
	got, err := a.getBlob(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "v", got)
	require.Equal(t, tries, a.take())
	got, err = a.getEntity(ctx, "k")
	require.NoError(t, err)
	require.Contains(t, got, `"v":"v"`)
	require.Equal(t, tries, a.take())
}

// requireStatus requires that a request was answered with a status, after these tries.
func (a *sdkAccount) requireStatus(t *testing.T, err error, status int, tries string) {
	t.Helper()
	var answered *azcore.ResponseError
	require.ErrorAs(t, err, &answered)
	require.Equal(t, status, answered.StatusCode, "%v", err)
	require.Equal(t, tries, a.take())
}

// quick retries three times, soon.
func quick(m client.LocationMode) client.Options {
	return client.Options{Mode: m, Retry: client.Linear{Retries: 3, Apart: time.Millisecond}, TryTimeout: 20 * time.Second}
}

// filled starts a cluster whose northacct has a blob and an entity, at both locations.
func filled(t *testing.T) *Cluster {
	c := startFaulty(t)
	createTable(t, c, "northacct")
	a := sdkClient(t, c.gateway, nil, client.Options{})
	_, err := a.blobs.CreateContainer(t.Context(), "ccc", nil)
	require.NoError(t, err)
	require.NoError(t, a.putBlob(t.Context(), "k", "v"))
	require.NoError(t, a.putEntity(t.Context(), "k", "v"))
	there := client.WithLocationMode(client.WithRetryPolicy(t.Context(), client.NoRetry{}), client.SecondaryOnly)
	eventually(t, "both are at the secondary", func() bool {
		_, blobErr := a.getBlob(there, "k")
		_, entityErr := a.getEntity(there, "k")
		return errors.Join(blobErr, entityErr) == nil
	})
	return c
}

// The policies of package client in all modes, against running locations, a cut link and either location stopped
// (protocol/service.md 13): what a mode allows to be read is read, and nothing else; the signatures are right at both endpoints.
//
// Capability: Clients: Location modes and retries for the Azure SDK for Go.
func TestClientModes(t *testing.T) {
	t.Parallel()
	c := filled(t)
	a := sdkClient(t, c.gateway, nil, quick(client.PrimaryOnly))
	in := func(m client.LocationMode) context.Context { return client.WithLocationMode(t.Context(), m) }
	for mode, tries := range map[client.LocationMode]string{
		client.PrimaryOnly: "P", client.PrimaryThenSecondary: "P", client.SecondaryOnly: "S", client.SecondaryThenPrimary: "S",
	} {
		a.requireReads(in(mode), t, tries)
	}

	c.link.Cut()
	require.NoError(t, a.putBlob(t.Context(), "new", "v"))
	require.NoError(t, a.putEntity(t.Context(), "new", "v"))
	require.Equal(t, "PP", a.take())
	for _, get := range []func(context.Context, string) (string, error){a.getBlob, a.getEntity} {
		_, err := get(in(client.SecondaryThenPrimary), "new")
		require.NoError(t, err)
		require.Equal(t, "SP", a.take(), "the secondary does not have it, and the primary is asked")
		_, err = get(in(client.SecondaryOnly), "new")
		a.requireStatus(t, err, http.StatusNotFound, "SSSS")
	}
	c.link.Heal()

	require.NoError(t, c.stopLocation(t.Context(), North))
	for mode, tries := range map[client.LocationMode]string{
		client.PrimaryThenSecondary: "PS", client.SecondaryOnly: "S", client.SecondaryThenPrimary: "S",
	} {
		a.requireReads(in(mode), t, tries)
	}
	_, err := a.getBlob(t.Context(), "k")
	a.requireStatus(t, err, http.StatusServiceUnavailable, "PPPP")
	a.requireStatus(t, a.putBlob(in(client.PrimaryThenSecondary), "k", "lost"), http.StatusServiceUnavailable, "PPPP")
	require.ErrorIs(t, a.putBlob(in(client.SecondaryOnly), "k", "lost"), client.ErrWrite)
	require.Empty(t, a.take())
	south := c.ports[South]
	direct := sdkClient(t, c.ports[North], &south, quick(client.PrimaryThenSecondary))
	direct.requireReads(t.Context(), t, "PS") // Nothing listens there.

	require.NoError(t, c.startLocation(t.Context(), North))
	eventually(t, "the north serves", func() bool { return c.locations[North].Readiness(t.Context()).Serving })
	require.NoError(t, c.stopLocation(t.Context(), South))
	a.requireReads(in(client.PrimaryThenSecondary), t, "P")
	a.requireReads(in(client.SecondaryThenPrimary), t, "SP")
	_, err = a.getBlob(in(client.SecondaryOnly), "k")
	a.requireStatus(t, err, http.StatusServiceUnavailable, "SSSS")
}

// busyClients read and write all the time.
type busyClients struct {
	t    *testing.T
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
	all  []*busyClient
}

// busyClient makes one kind of request in one mode.
type busyClient struct {
	mode   client.LocationMode
	writes bool
	do     func(context.Context) error
	done   atomic.Int64
	// failed is the first error.
	failed atomic.Pointer[error]
}

// startClients runs clients of a front end. Reads are retried for a second or two, as long as both locations may refuse them
// while a promotion is committed; writes until they succeed.
func startClients(t *testing.T, at Ports, modes ...client.LocationMode) *busyClients {
	b := &busyClients{t: t}
	b.ctx, b.stop = context.WithCancel(t.Context())
	t.Cleanup(b.end)
	for _, mode := range modes {
		reader := sdkClient(t, at, nil, client.Options{Mode: mode, Retry: client.Linear{Retries: 7, Apart: 250 * time.Millisecond}})
		writer := sdkClient(t, at, nil, client.Options{Mode: mode, Retry: client.Linear{Retries: 1 << 20, Apart: 10 * time.Millisecond}})
		name := "of " + mode.String()
		b.start(
			&busyClient{mode: mode, do: func(ctx context.Context) error { _, err := reader.getBlob(ctx, "k"); return err }},
			&busyClient{mode: mode, do: func(ctx context.Context) error { _, err := reader.getEntity(ctx, "k"); return err }},
			&busyClient{mode: mode, writes: true, do: func(ctx context.Context) error { return writer.putBlob(ctx, name, "v") }},
			&busyClient{mode: mode, writes: true, do: func(ctx context.Context) error { return writer.putEntity(ctx, name, "v") }},
		)
	}
	return b
}

// start adds clients.
func (b *busyClients) start(more ...*busyClient) {
	for _, one := range more {
		b.all = append(b.all, one)
		b.wg.Go(func() { one.run(b.ctx) })
	}
}

func (b *busyClient) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := b.do(ctx)
		switch {
		case err == nil:
			b.done.Add(1)
		case ctx.Err() == nil:
			b.failed.CompareAndSwap(nil, &err)
		}
	}
}

// goOn waits until all, or all that read, have succeeded in two more requests: the second one began afterwards.
func (b *busyClients) goOn(reads bool) {
	b.t.Helper()
	for _, one := range b.all {
		before := one.done.Load()
		eventually(b.t, fmt.Sprintf("%v goes on, writes: %t", one.mode, one.writes), func() bool {
			return reads && one.writes || one.done.Load() >= before+2
		})
	}
}

func (b *busyClients) end() {
	b.stop()
	b.wg.Wait()
}

// requireNoErrors ends the clients, none of which has seen an error.
func (b *busyClients) requireNoErrors() {
	b.t.Helper()
	b.end()
	for _, one := range b.all {
		if err := one.failed.Load(); err != nil {
			require.NoError(b.t, *err, "%v, writes: %t", one.mode, one.writes)
		}
	}
}

// Across planned failovers there and back, clients of the first primary's address see no error in any mode, the reads not even
// with a single try: a location that has taken the account serves what it had forwarded before (R19). And once the
// account has moved each request there succeeds within one more round trip: it is forwarded. Without a link between the
// locations it is not, and reads end at the secondary.
//
// Capability: Clients: Location modes and retries for the Azure SDK for Go.
func TestClientsAcrossAMove(t *testing.T) {
	t.Parallel()
	c := filled(t)
	old := c.ports[North]
	modes := []client.LocationMode{client.PrimaryOnly, client.PrimaryThenSecondary, client.SecondaryThenPrimary}
	b := startClients(t, old, modes...)
	once := sdkClient(t, old, nil, client.Options{Retry: client.NoRetry{}})
	b.start(
		&busyClient{do: func(ctx context.Context) error { _, err := once.getBlob(ctx, "k"); return err }},
		&busyClient{do: func(ctx context.Context) error { _, err := once.getEntity(ctx, "k"); return err }},
	)
	b.goOn(false)
	from, to := North, South
	for range 3 {
		moveTo(t, c, "northacct", from, to)
		b.goOn(false)
		from, to = to, from
	}
	b.requireNoErrors()

	for _, mode := range modes {
		a := sdkClient(t, old, nil, quick(mode))
		for _, f := range []func() error{
			func() error { _, err := a.getBlob(t.Context(), "k"); return err },
			func() error { _, err := a.getEntity(t.Context(), "k"); return err },
			func() error { return a.putBlob(t.Context(), "after", "v") },
			func() error { return a.putEntity(t.Context(), "after", "v") },
		} {
			require.NoError(t, f(), mode)
			require.LessOrEqual(t, len(a.take()), 2, mode)
		}
	}
	c.link.Cut()
	a := sdkClient(t, old, nil, quick(client.PrimaryThenSecondary))
	a.requireReads(t.Context(), t, "PS")
	require.Error(t, a.putBlob(t.Context(), "after", "not here"), "nothing is written at the former primary")
}

// The primary is stopped under clients, the secondary is promoted, and the former primary returns: reads in the modes with two
// endpoints go on without an error throughout, and writes once the account is promoted, at the same address.
//
// Capability: Clients: Location modes and retries for the Azure SDK for Go.
func TestClientsAcrossAPromotion(t *testing.T) {
	t.Parallel()
	c := filled(t)
	b := startClients(t, c.gateway, client.PrimaryThenSecondary, client.SecondaryThenPrimary)
	b.goOn(false)
	require.NoError(t, c.stopLocation(t.Context(), North))
	b.goOn(true)
	promote(t, c, "northacct")
	b.goOn(false)
	require.NoError(t, c.startLocation(t.Context(), North))
	b.goOn(false)
	b.requireNoErrors()
}
