package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/wire"
	"antipode/internal/clock"
	"antipode/test/fake"
)

// service adds to store what it lacks of blobs: ranges, leases, copies, batches and listings with snapshots. It is
// sound or has one fault.
type service struct {
	*store
	// leases and snapshots are by path; store.mu guards them.
	leases, snapshots map[string]string
	// timed counts the requests that the workload times. From the second on they are answered with refusal, if any.
	workload string
	timed    atomic.Int32
	refusal  int
	// What else is wrong from the second on, one at a time.
	keepsBlob, refusesPart, isPending, hidesSnapshot, changes, losesLease, forgetsLease bool
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, h := r.URL.Query(), r.Header
	comp := q.Get("comp")
	timed := map[string]bool{
		workloadAppend: comp == "appendblock", workloadDelete: comp == "batch", workloadSnapshots: comp == "list",
		workloadPutBlocks: comp == "block", workloadGetBlocks: h.Get("x-ms-range") != "",
		workloadRenew: h.Get("x-ms-lease-action") == "renew", workloadBlobCopy: h.Get("x-ms-copy-source") != "",
	}
	if timed[s.workload] && s.timed.Add(1) > 1 && s.refusal > 0 {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(s.refusal)
		return
	}
	switch {
	case comp == "lease":
		s.lease(w, r)
	case comp == "batch":
		s.batch(w, r)
	case comp == "list":
		s.list(w, q)
	case comp == "snapshot":
		s.mu.Lock()
		s.snapshots[r.URL.Path] = "2026"
		s.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	case h.Get("x-ms-copy-source") != "":
		s.copy(w, r)
	case r.Method == http.MethodGet:
		s.get(w, r)
	case comp != "":
		s.Store.ServeHTTP(w, r)
	default:
		s.store.ServeHTTP(w, r)
	}
}

// ask makes a request within the service.
func (s *service) ask(method, path string, body []byte) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Store.ServeHTTP(w, httptest.NewRequest(method, path, bytes.NewReader(body)))
	return w
}

func (s *service) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	held := s.leases[r.URL.Path]
	s.mu.Unlock()
	primary := !strings.Contains(r.URL.Path, "-secondary/")
	if id := r.Header.Get("x-ms-lease-id"); primary && id != "" && id != held {
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	a := s.ask(http.MethodGet, r.URL.Path, nil)
	body, status := a.Body.Bytes(), a.Code
	var from, to int
	if n, _ := fmt.Sscanf(r.Header.Get("x-ms-range"), "bytes=%d-%d", &from, &to); n == 2 && status == http.StatusOK {
		if from >= len(body) {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		body, status = slices.Clone(body[from:min(to+1, len(body))]), http.StatusPartialContent
		if s.changes && s.timed.Load() > 1 {
			body[len(body)-1]++
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func (s *service) lease(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	acquires := r.Header.Get("x-ms-lease-action") == "acquire" && r.Header.Get("x-ms-lease-duration") == "60"
	switch id := r.Header.Get("x-ms-lease-id"); {
	case acquires && s.leases[r.URL.Path] == "":
		s.leases[r.URL.Path] = r.Header.Get("x-ms-proposed-lease-id")
		w.WriteHeader(http.StatusCreated)
	case s.forgetsLease && s.timed.Load() > 1: // It answers as if the lease were renewed.
		delete(s.leases, r.URL.Path)
	case id == "" || s.leases[r.URL.Path] != id:
		w.WriteHeader(http.StatusConflict)
	case s.losesLease && s.timed.Load() > 1:
		delete(s.leases, r.URL.Path)
	}
}

func (s *service) copy(w http.ResponseWriter, r *http.Request) {
	_, source, _ := strings.Cut(r.Header.Get("x-ms-copy-source"), "//")
	a := s.ask(http.MethodGet, source[strings.Index(source, "/"):], nil)
	if a.Code != http.StatusOK {
		w.WriteHeader(a.Code)
		return
	}
	s.ask(http.MethodPut, r.URL.Path, a.Body.Bytes())
	status := "success"
	if s.isPending && s.timed.Load() > 1 {
		status = "pending"
	}
	w.Header().Set("x-ms-copy-status", status)
	w.WriteHeader(http.StatusAccepted)
}

func (s *service) batch(w http.ResponseWriter, r *http.Request) {
	boundary, err := wire.BatchBoundary(r.Header.Get("Content-Type"))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var answer bytes.Buffer
	for parts := wire.NewBatchReader(r.Body, boundary); ; {
		part, err := parts.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || part.Method != http.MethodDelete || part.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		status := http.StatusAccepted
		if !s.keepsBlob || s.timed.Load() == 1 {
			status = s.ask(http.MethodDelete, part.URI, nil).Code
		}
		if s.refusesPart && s.timed.Load() > 1 {
			status = http.StatusNotFound
		}
		_, _ = fmt.Fprintf(&answer, "--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 %d X\r\n\r\n", status)
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = answer.WriteTo(w)
}

// listedMax is how many entries a page of the service has at most.
const listedMax = 700

// list has the number of the next entry for a marker.
func (s *service) list(w http.ResponseWriter, q url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.blobs)
	of := map[string]bool{}
	for name := range s.snapshots {
		of[path.Base(path.Dir(name))+"/"+path.Base(name)] = true
	}
	var entries []string
	for _, name := range s.blobs {
		if of[name] && !s.hidesSnapshot {
			entries = append(entries, "<Blob><Name>"+name+"</Name><Snapshot>2026</Snapshot></Blob>")
		}
		entries = append(entries, "<Blob><Name>"+name+"</Name><Properties></Properties></Blob>")
	}
	from, _ := strconv.Atoi(q.Get("marker"))
	top, _ := strconv.Atoi(q.Get("maxresults"))
	to, next := min(from+min(top, listedMax), len(entries)), ""
	if to < len(entries) {
		next = strconv.Itoa(to)
	}
	_, _ = fmt.Fprintf(w, "<Blobs>%s</Blobs><NextMarker>%s</NextMarker>", strings.Join(entries[from:to], ""), next)
}

// operationArgs makes the run of an operation a small one.
func operationArgs(name string) []string {
	args := []string{"--workload", name, "--concurrency", "2", "--warmup", "0s", "--read-back", "10"}
	switch name {
	case workloadDelete:
		args = append(args, "--rows", strconv.Itoa(8*batchDeletes))
	case workloadSnapshots:
		args = append(args, "--rows", "1505", "--bytes", "1MiB") // The second page has 656 entries.
	case workloadAppend:
		args = append(args, "--bytes", "1MiB")
	case workloadPutBlocks, workloadGetBlocks:
		args = append(args, "--bytes", "30MiB")
	default:
		args = append(args, "--duration", "2s")
	}
	if sizes()[name] > 0 {
		args = append(args, "--size", "9MiB") // The third block is a short one.
	}
	return args
}

func runOperation(t *testing.T, name string, faults fake.Faults, spoil func(s *service)) (string, error) {
	t.Helper()
	s := &service{
		workload: name, store: &store{Store: fake.New(faults, 20*time.Millisecond)},
		leases: map[string]string{}, snapshots: map[string]string{},
	}
	if spoil != nil {
		spoil(s)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	o := options(t, append(operationArgs(name), "--endpoint", server.URL+"/devstoreaccount1", "--admin", "")...)
	o.arriveWait = 10 * time.Second
	if faults != (fake.Faults{}) || spoil != nil {
		o.arriveWait = time.Second // What is wrong stays wrong.
	}
	var out strings.Builder
	err := measure(t.Context(), o, clock.System{}, &out)
	return out.String(), err
}

// A run of each operation against a sound service has no errors and reads back at both endpoints. An answer of another
// status, of success or not, ends it without figures.
func TestOperations(t *testing.T) {
	for name, kind := range workloads() {
		if kind.begins == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := runOperation(t, name, fake.Faults{}, nil)
			require.NoError(t, err, out)
			require.Contains(t, out, "errors    none")
			require.NotContains(t, out, "read back 0")
			require.Equal(t, sizes()[name] > 0, strings.Contains(out, "blobs of 9MiB"), out)
			require.NotContains(t, out, "primary, 0 at")
			for _, status := range []int{http.StatusServiceUnavailable, http.StatusNoContent} {
				out, err := runOperation(t, name, fake.Faults{}, func(s *service) { s.refusal = status })
				require.ErrorIs(t, err, errVoid)
				require.ErrorContains(t, err, strconv.Itoa(status))
				require.Empty(t, out)
			}
		})
	}
}

// The content of an answer with the right status is checked too, and what the service has at the
// end.
func TestOperationsFindFaults(t *testing.T) {
	for _, tt := range []struct {
		name, workload, want string
		faults               fake.Faults
		spoil                func(s *service)
	}{
		{name: "append twice", workload: workloadAppend, want: "412", faults: fake.Faults{AppendTwice: true}},
		{name: "append lost", workload: workloadAppend, want: "not those written", faults: fake.Faults{AppendsLost: true}},
		{name: "lease lost", workload: workloadRenew, want: "409", spoil: func(s *service) { s.losesLease = true }},
		{name: "lease forgot", workload: workloadRenew, want: "reading", spoil: func(s *service) { s.forgetsLease = true }},
		{name: "part refused", workload: workloadDelete, want: "404", spoil: func(s *service) { s.refusesPart = true }},
		{name: "blob kept", workload: workloadDelete, want: "reading back", spoil: func(s *service) { s.keepsBlob = true }},
		{name: "copy pending", workload: workloadBlobCopy, want: `"pending"`, spoil: func(s *service) { s.isPending = true }},
		{name: "no snapshot", workload: workloadSnapshots, want: "place", spoil: func(s *service) { s.hidesSnapshot = true }},
		{name: "block changed", workload: workloadGetBlocks, want: wrongValue, spoil: func(s *service) { s.changes = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := runOperation(t, tt.workload, tt.faults, tt.spoil)
			require.Error(t, err)
			require.ErrorIs(t, err, errVoid)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// operationCalls are the calls of an operation beside those of its objects.
func operationCalls(of operation, o object) []func() *call {
	switch of := of.(type) {
	case *appends:
		return []func() *call{func() *call { return of.begin(o) }}
	case *leases:
		return []func() *call{func() *call { return of.acquire(o) }}
	case *putBlocks:
		return []func() *call{func() *call { return of.commit(of.path(o)) }}
	case *snapshots:
		return []func() *call{of.next, func() *call { return of.snapshot(o) }}
	}
	return nil
}

// An append blob that is full is followed by another one, and a block is read where it is.
func TestAppendsGoOn(t *testing.T) {
	p := &appends{blobs{name: "bench1", partitions: 10, size: 8}, 3}
	first, next := p.write(object{1, 2}), p.write(object{1, 3})
	require.Equal(t, "x-ms-blob-condition-appendpos: 16\r\n", first.headers)
	require.Equal(t, "x-ms-blob-condition-appendpos: 0\r\n", next.headers)
	require.NotEqual(t, first.path, next.path)
	require.Equal(t, p.begin(object{1, 3}).path, next.path)
	require.Equal(t, next.path, p.write(object{1, 5}).path)
	require.Equal(t, "x-ms-range:bytes=16-23\n", p.read(object{1, 5}).signedLast)
}

// A run that has each operation made by a real server is sound.
func TestOperationsAtServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := launch(t.Context(), serverOptions(t), dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.end()) }()
	for name, kind := range workloads() {
		if kind.begins == nil {
			continue
		}
		var out strings.Builder
		o := l.aim(serverOptions(t, operationArgs(name)...))
		require.NoError(t, measure(t.Context(), o, clock.System{}, &out), out.String())
		require.Contains(t, out.String(), "errors    none")
		require.NotContains(t, out.String(), "primary, 0 at")
	}
}
