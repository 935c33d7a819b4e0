package blobs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services"
	"antipode/services/storageerr"
)

// shaky is a writer with faults.
type shaky struct {
	services.AllWriter
	faults atomic.Pointer[faults]
	// groups are the submissions of many writes, writes what was in them.
	groups, writes atomic.Int64
}

// faults are functions that may be nil.
type faults struct {
	// unsent: what is written together is not submitted. result changes the error of the n-th of them.
	unsent bool
	result func(n int, err error) error
	// one is called before each write by itself, together before those that are made together.
	one      func()
	together func(context.Context)
}

func (s *shaky) set(f faults) { s.faults.Store(&f) }

func (s *shaky) now() faults {
	if f := s.faults.Load(); f != nil {
		return *f
	}
	return faults{}
}

func (s *shaky) WriteAll(ctx context.Context, ws []services.Write) []error {
	s.groups.Add(1)
	s.writes.Add(int64(len(ws)))
	f := s.now()
	if f.together != nil {
		f.together(ctx)
	}
	errs := make([]error, len(ws))
	if !f.unsent {
		errs = s.AllWriter.WriteAll(ctx, ws)
	}
	for n := range errs {
		if f.result != nil {
			errs[n] = f.result(n, errs[n])
		}
	}
	return errs
}

func (s *shaky) Write(ctx context.Context, w services.Write) error {
	if f := s.now(); f.one != nil {
		f.one()
	}
	return s.AllWriter.Write(ctx, w)
}

// newShakyRig is newBatchRig with such a writer.
func newShakyRig(t *testing.T) (*rig, *shaky) {
	t.Helper()
	w := &shaky{}
	return newBatchRig(t, func(o *Options) {
		w.AllWriter = o.Writer
		o.Writer = w
	}), w
}

// A part that fails, by overload or a bug too, fails alone. Where all are refused by overload nothing happened, and the batch is:
// clients send it again.
//
// Capability: Blobs: Batches.
func TestFailuresWithinABatch(t *testing.T) {
	t.Parallel()
	r, w := newShakyRig(t)
	staged := func(path string) { require.Equal(t, http.StatusCreated, r.putBlock(path, "aa", []byte("x")).status) }
	body := bodyOf(deleting("/cont/a"), deleting("/cont/none"), deleting("/cont/b"))
	w.set(faults{unsent: true, result: func(int, error) error { return storageerr.ServerBusy }})
	require.Equal(t, []string{"503 ServerBusy"}, said(t, []gotPart{{answer: r.sendBatch("/?comp=batch", bodyOf(deleting("/cont/a")))}}))
	a := r.sendBatch("/?comp=batch", body)
	r.requireCode(a, http.StatusServiceUnavailable, "ServerBusy")
	require.NotEmpty(t, a.header.Get("Retry-After"))
	a = r.sendBatch("/?comp=batch", bodyOf(deleting("/cont/a"), sentPart{method: "DELETE", path: "/cont/b"}))
	require.Equal(t, []string{"503 ServerBusy", "401 NoAuthenticationInformation"}, said(t, partsOf(t, a)))

	staged("/cont/a")
	staged("/cont/b")
	w.set(faults{result: func(n int, err error) error {
		if n == 2 {
			return storageerr.ServerBusy
		}
		return err
	}})
	require.Equal(t, []string{"202", "404 BlobNotFound", "503 ServerBusy"}, said(t, r.batch("/?comp=batch", body)))
	w.set(faults{result: func(n int, err error) error {
		if n == 0 {
			return errors.New("no error of the protocol")
		}
		return err
	}})
	staged("/cont/a")
	staged("/cont/b")
	require.Equal(t, []string{"500 InternalError", "404 BlobNotFound", "202"}, said(t, r.batch("/?comp=batch", body)))

	staged("/cont/a")
	staged("/cont/b")
	var once sync.Once
	w.set(faults{one: func() { once.Do(func() { panic("planned") }) }}) // Of what is left of the blocks.
	got := said(t, r.batch("/?comp=batch", body))
	w.set(faults{})
	require.ElementsMatch(t, []string{"500 InternalError", "404 BlobNotFound", "202"}, got)
	require.Equal(t, "404 BlobNotFound", got[1])

	staged("/cont/a")
	w.set(faults{unsent: true, together: func(context.Context) { panic("planned") }})
	_, err := r.try(http.MethodPost, "/?comp=batch", strings.NewReader(body), "Content-Type", "multipart/mixed; boundary=b")
	require.Error(t, err, "the server of the rig ends the connection")
	w.set(faults{})
	require.Equal(t, []string{"202", "404 BlobNotFound", "404 BlobNotFound"}, said(t, r.batch("/?comp=batch", body)), "no part of before goes on")
}

// A batch whose time is over while its parts are committed says of each that nobody knows; none before.
//
// Capability: Blobs: Batches.
func TestBatchEndsWithItsTime(t *testing.T) {
	t.Parallel()
	r, w := newShakyRig(t)
	require.Equal(t, http.StatusCreated, r.put("/cont/a", nil).status)
	w.set(faults{together: func(ctx context.Context) { <-ctx.Done() }})
	got := r.batch("/?comp=batch&limit=300ms", bodyOf(deleting("/cont/a"), deleting("/cont/b")))
	require.Equal(t, []string{"500 OperationTimedOut", "500 OperationTimedOut"}, said(t, got))
	w.set(faults{})
	require.Equal(t, int64(1), w.groups.Load())

	body, drip := io.Pipe() // Parts that come and do not end.
	go func() { _, _ = io.WriteString(drip, strings.TrimSuffix(bodyOf(deleting("/cont/a")), "--\r\n")) }()
	a, err := r.try(http.MethodPost, "/?comp=batch&limit=50ms", body, "Content-Type", "multipart/mixed; boundary=b")
	require.NoError(t, err)
	r.requireCode(a, http.StatusInternalServerError, "OperationTimedOut")
	require.NoError(t, drip.Close())

	var held []int64
	for { // The body finds no memory.
		n, ok := r.handler.inFlight.Of("acct").TryAdmit(1 << 20)
		if !ok {
			break
		}
		held = append(held, n)
	}
	r.requireCode(r.sendBatch("/?comp=batch&limit=50ms", bodyOf(deleting("/cont/a"))), http.StatusServiceUnavailable, "ServerBusy")
	for _, n := range held {
		r.handler.inFlight.Of("acct").Release(n)
	}
	require.Equal(t, int64(1), w.groups.Load(), "no part of them had an effect")
}
