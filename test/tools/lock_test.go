package tools

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"antipode/test/rest"
)

const (
	lockClients = 4
	lockWait    = 20 * time.Minute
	// checkWait bounds the search for an order.
	checkWait = 2 * time.Minute
	// breaks is how many waits end in a break, one of so many.
	breaks = 20
)

// clientOptions sends through the tests' client, and again what was answered with 503 and so did nothing.
func clientOptions(hc *http.Client) azcore.ClientOptions {
	return azcore.ClientOptions{Transport: hc, Retry: rest.RetryBusy()}
}

// locker is the history of clients that lock one blob.
type locker struct {
	blob  *blockblob.Client
	start time.Time
	// taken counts cycles that began, snapshots and writes those that were done.
	taken, snapshots, writes, broken, lost atomic.Int64

	mu  sync.Mutex
	ops []porcupine.Operation // Guarded by mu.
}

// Four clients lock a state as the azurerm backend of Terraform does: an infinite lease with an own id, read, a
// snapshot, a write under the lease, release. Some break the lease of another one that is at work. No two hold it at
// once, and no update is lost.
func TestTerraformLocks(t *testing.T) {
	p := startDev(t)
	key, err := azblob.NewSharedKeyCredential(string(rest.DevAccount), rest.DevKey)
	require.NoError(t, err)
	f := newRelay(t, p.PortBase)
	at := f.url + "/" + string(rest.DevAccount)
	service, err := azblob.NewClientWithSharedKeyCredential(at, key, &azblob.ClientOptions{ClientOptions: clientOptions(p.HTTP)})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), lockWait)
	defer cancel()
	_, err = service.CreateContainer(ctx, "tfstate", nil)
	require.NoError(t, err)
	states := service.ServiceClient().NewContainerClient("tfstate")
	l := &locker{blob: states.NewBlockBlobClient("terraform.tfstate"), start: time.Now()}
	_, err = l.blob.UploadBuffer(ctx, []byte("0"), nil)
	require.NoError(t, err)

	var clients errgroup.Group
	for id := range lockClients {
		clients.Go(func() error {
			for l.taken.Add(1) <= int64(*cycles) {
				if err := l.cycle(ctx, id); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, clients.Wait())
	took := time.Since(l.start)
	final, err := l.read(ctx, lockClients)
	require.NoError(t, err)
	t.Logf("%d cycles in %v: %d steps, %d writes, %d snapshots, %d leases broken, %d steps refused to those who lost theirs",
		*cycles, took.Round(time.Millisecond), len(l.ops), l.writes.Load(), l.snapshots.Load(), l.broken.Load(), l.lost.Load())
	t.Logf("answers that are errors: %v", f.take())
	require.Equal(t, l.writes.Load(), int64(final), "each write that was done adds one")
	require.Equal(t, l.snapshots.Load(), countSnapshots(ctx, t, states))
	require.Positive(t, l.lost.Load(), "some lost their lease while they worked")
	checked, info := porcupine.CheckOperationsVerbose(lockModel("0"), l.ops, checkWait)
	if checked != porcupine.Ok {
		drawing := filepath.Join(t.ArtifactDir(), "locks.html")
		require.NoError(t, porcupine.VisualizePath(lockModel("0"), info, drawing))
		t.Fatalf("the history is %s: %s", checked, drawing)
	}
}

// cycle takes the lock, adds one to the state and gives the lock back, or loses it to another client on the way.
func (l *locker) cycle(ctx context.Context, client int) error {
	id := uuid()
	held, err := lease.NewBlobClient(l.blob, &lease.BlobClientOptions{LeaseID: &id})
	if err != nil {
		return err
	}
	for {
		done, err := l.do(client, step{verb: acquire, id: id}, func() error {
			_, err := held.AcquireLease(ctx, -1, nil)
			return err
		}, bloberror.LeaseAlreadyPresent)
		if err != nil {
			return err
		}
		if done {
			break
		}
		if mathrand.IntN(breaks) == 0 {
			if err := l.breakLease(ctx, client, held); err != nil {
				return err
			}
			continue // At once, while the other one still works.
		}
		time.Sleep(time.Duration(mathrand.IntN(10)) * time.Millisecond)
	}
	n, err := l.read(ctx, client)
	if err != nil {
		return err
	}
	under := &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &id}}
	lost := []bloberror.Code{bloberror.LeaseLost, bloberror.LeaseIDMismatchWithBlobOperation, bloberror.LeaseNotPresentWithBlobOperation}
	_, err = l.blob.CreateSnapshot(ctx, &blob.CreateSnapshotOptions{AccessConditions: under})
	switch {
	case err == nil:
		l.snapshots.Add(1)
	case !bloberror.HasCode(err, lost...):
		return fmt.Errorf("snapshot: %w", err)
	}
	next := strconv.Itoa(n + 1)
	done, err := l.do(client, step{verb: write, id: id, value: next}, func() error {
		_, err := l.blob.UploadBuffer(ctx, []byte(next), &blockblob.UploadBufferOptions{AccessConditions: under})
		return err
	}, lost...)
	if err != nil {
		return err
	}
	if done {
		l.writes.Add(1)
	}
	released, err := l.do(client, step{verb: release, id: id}, func() error {
		_, err := held.ReleaseLease(ctx, nil)
		return err
	}, bloberror.LeaseIDMismatchWithLeaseOperation, bloberror.LeaseNotPresentWithLeaseOperation)
	if !done || !released {
		l.lost.Add(1)
	}
	return err
}

// breakLease breaks the lease of whichever client holds it.
func (l *locker) breakLease(ctx context.Context, client int, any *lease.BlobClient) error {
	done, err := l.do(client, step{verb: breakNow}, func() error {
		now := int32(0)
		_, err := any.BreakLease(ctx, &lease.BlobBreakOptions{BreakPeriod: &now})
		return err
	}, bloberror.LeaseNotPresentWithLeaseOperation)
	if done {
		l.broken.Add(1)
	}
	return err
}

// read reads the state, which is a number.
func (l *locker) read(ctx context.Context, client int) (int, error) {
	call := l.now()
	answer, err := l.blob.DownloadStream(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("read: %w", err)
	}
	content, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return 0, fmt.Errorf("read: %w", err)
	}
	text := string(content)
	l.record(porcupine.Operation{ClientId: client, Input: step{verb: read}, Call: call, Output: result{done: true, value: text}})
	return strconv.Atoi(text)
}

// do takes a step and records whether it was done. Codes are those of a refusal; any other error ends the test.
func (l *locker) do(client int, s step, ask func() error, codes ...bloberror.Code) (done bool, err error) {
	call := l.now()
	err = ask()
	if err != nil && !bloberror.HasCode(err, codes...) {
		return false, fmt.Errorf("%+v: %w", s, err)
	}
	l.record(porcupine.Operation{ClientId: client, Input: s, Call: call, Output: result{done: err == nil}})
	return err == nil, nil
}

func (l *locker) now() int64 { return time.Since(l.start).Nanoseconds() }

func (l *locker) record(o porcupine.Operation) {
	o.Return = l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = append(l.ops, o)
}

func countSnapshots(ctx context.Context, t *testing.T, states *container.Client) (n int64) {
	t.Helper()
	pages := states.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Snapshots: true}})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		require.NoError(t, err)
		for _, b := range page.Segment.BlobItems {
			if b.Snapshot != nil && *b.Snapshot != "" {
				n++
			}
		}
	}
	return n
}

// uuid is a new id of a lease.
func uuid() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // It never fails.
	return strings.ToLower(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

// The check finds two holders at once, a write without the lease and a lost update, and takes what is right.
func TestLockModel(t *testing.T) {
	history := func(steps ...step) (ops []porcupine.Operation) {
		value := "0"
		for i, s := range steps {
			if s.verb == write {
				value = s.value
			}
			ops = append(ops, porcupine.Operation{ClientId: i, Input: s, Output: result{true, value}, Call: int64(2 * i), Return: int64(2*i + 1)})
		}
		return ops
	}
	take, give := step{verb: acquire, id: "a"}, step{verb: release, id: "a"}
	put, other := step{verb: write, id: "a", value: "1"}, step{verb: acquire, id: "b"}
	late := history(take, put, step{verb: read})
	late[2].Output = result{true, "0"}
	for name, test := range map[string]struct {
		ops []porcupine.Operation
		ok  bool
	}{
		"in order":             {history(take, put, give, other, step{verb: read}), true},
		"broken":               {history(take, step{verb: breakNow}, other), true},
		"two holders":          {history(take, other), false},
		"write after release":  {history(take, give, put), false},
		"write after break":    {history(take, step{verb: breakNow}, put), false},
		"lost update":          {late, false},
		"break without lease":  {history(step{verb: breakNow}), false},
		"release of another's": {history(other, give), false},
	} {
		require.Equal(t, test.ok, porcupine.CheckOperations(lockModel("0"), test.ops), name)
	}
}
