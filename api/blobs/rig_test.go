package blobs

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/xml"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/api/apitest"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/extent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a handler over a stamp of three nodes in memory, behind a real HTTP server:
// what a client sees of the service, without authorization.
type rig struct {
	t       testing.TB
	fs      *vfs.MemFS
	stamp   *stamp.Stamp
	payload *payload
	handler *Handler
	url     string
	client  *http.Client
	account catalog.Account
	// sources finds what is copied from; nil means fakeSources.
	sources protocol.Sources
	// abandoned is what uploads that failed left.
	abandoned atomic.Int64
}

// payload is the stamp's chunks with faults.
type payload struct {
	*stamp.Stamp
	puts atomic.Int64
	// onPut and onRead run before a call; an error of theirs is its result.
	onPut  func() error
	onRead func(ref extent.Ref, off int64) error

	mu  sync.Mutex
	ids map[extent.ChunkID]bool
}

func (p *payload) PutChunk(ctx context.Context, ref extent.Ref, data []byte) error {
	p.puts.Add(1)
	p.mu.Lock()
	twice := p.ids[ref.ID]
	p.ids[ref.ID] = true
	p.mu.Unlock()
	if twice {
		panic("a chunk id was drawn twice")
	}
	if p.onPut != nil {
		if err := p.onPut(); err != nil {
			return err
		}
	}
	return p.Stamp.PutChunk(ctx, ref, data)
}

func (p *payload) ReadChunk(ref extent.Ref, off int64, b []byte) (int, error) {
	if p.onRead != nil {
		if err := p.onRead(ref, off); err != nil {
			return 0, err
		}
	}
	return p.Stamp.ReadChunk(ref, off, b)
}

const testVersion = "2026-12-06"

// newRig starts a rig with container "cont". set changes the options; timeout bounds
// requests where it is not zero.
func newRig(t testing.TB, set func(*Options)) *rig {
	t.Helper()
	return newRigAt(t, clock.System{}, set)
}

// newRigAt is newRig with a clock of the stamp.
func newRigAt(t testing.TB, c clock.Clock, set func(*Options)) *rig {
	t.Helper()
	quiet := apitest.Quiet()
	r := &rig{t: t, fs: vfs.NewCrashableMem(), client: &http.Client{Transport: &http.Transport{}}}
	r.account = catalog.Account{Name: "acct", Epoch: 1, Primary: "north", Redundancy: catalog.RAGRS}
	r.stamp = apitest.NewStampAt(t, c, r.fs, r.account.Name, geo.Catalog, geo.Blob)
	r.payload = &payload{Stamp: r.stamp, ids: map[extent.ChunkID]bool{}}
	o := Options{
		Stamp: r.stamp, Writer: primary.New(r.stamp), Payload: r.payload, Names: &catalog.Containers{}, NameRest: time.Hour, Abandoned: func(n int64) { r.abandoned.Add(n) }, Logger: quiet,
	}
	if set != nil {
		set(&o)
	}
	r.handler = NewHandler(o)
	server := httptest.NewServer(r.serve(r.handler))
	server.Config.ErrorLog = slog.NewLogLogger(quiet.Handler(), slog.LevelInfo)
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		server.Close()
	})
	r.url = server.URL
	require.Eventually(t, func() bool {
		status := r.do(http.MethodPut, "/cont?restype=container", nil).status // 500 where a starved machine elects another leader meanwhile.
		return status == http.StatusCreated || status == http.StatusConflict
	}, time.Minute, time.Millisecond)
	return r
}

// serve does what package api does around a handler; a query timeout-ms bounds the
// request.
func (r *rig) serve(h *Handler) http.Handler {
	ids := protocol.NewRequestIDs([32]byte{})
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		req := &protocol.Request{ID: ids.Next(), Account: &r.account}
		var err error
		if req.Target, err = protocol.ParseTarget(geo.Blob, "http", hr.Host, hr.RequestURI); err == nil {
			if req.Query, err = protocol.ParseQuery(req.RawQuery); err == nil {
				req.Version, err = protocol.ServiceVersion(geo.Blob, hr.Header.Get("x-ms-version"), true)
			}
		}
		if err != nil {
			protocol.WriteError(w, hr, protocol.BodyXML, req.ID, time.Now(), err)
			return
		}
		protocol.SetCommonHeaders(w.Header(), hr, geo.Blob, req.Version, req.ID, time.Now())
		if d, err := time.ParseDuration(req.Query.Get("limit")); err == nil {
			ctx, cancel := context.WithTimeout(hr.Context(), d)
			defer cancel()
			hr = hr.WithContext(ctx)
		}
		protocol.WatchSender(w, hr)
		req.HTTP = hr
		if req.Sources = r.sources; req.Sources == nil {
			req.Sources = fakeSources{r: r}
		}
		began := &beganWriter{ResponseWriter: w}
		if err := h.Serve(began, req, Lookup(req)); err != nil && !began.began {
			if hr.ContentLength != 0 {
				w.Header().Set("Connection", "close")
			}
			protocol.WriteError(w, hr, protocol.BodyXML, req.ID, time.Now(), err)
			protocol.Linger(w, hr)
		}
	})
}

type beganWriter struct {
	http.ResponseWriter
	began bool
}

func (w *beganWriter) WriteHeader(status int) {
	w.began = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *beganWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
	// err is where the body broke off.
	err error
}

// code is the error code, which header and body agree on.
func (a answer) code(t testing.TB) string {
	t.Helper()
	code := a.header.Get("x-ms-error-code")
	if len(a.body) > 0 && code != "" {
		var doc struct{ Code string }
		require.NoError(t, xml.Unmarshal(a.body, &doc))
		require.Equal(t, code, doc.Code)
	}
	return code
}

// do sends a request; header is name, value pairs. A nil body is none.
func (r *rig) do(method, path string, body []byte, header ...string) answer {
	r.t.Helper()
	a, err := r.try(method, path, bytes.NewReader(body), header...)
	require.NoError(r.t, err)
	return a
}

func (r *rig) try(method, path string, body io.Reader, header ...string) (answer, error) {
	hr, err := http.NewRequest(method, r.url+"/acct"+path, body)
	if err != nil {
		return answer{}, err
	}
	hr.Header.Set("x-ms-version", testVersion)
	for i := 0; i+1 < len(header); i += 2 {
		hr.Header[http.CanonicalHeaderKey(header[i])] = []string{header[i+1]}
	}
	resp, err := r.client.Do(hr)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	a := answer{status: resp.StatusCode, header: resp.Header}
	a.body, a.err = io.ReadAll(resp.Body)
	return a, nil
}

// state is everything that a request could change, payload that nothing names aside.
func (r *rig) state() map[geo.Service]apitest.State {
	r.t.Helper()
	return apitest.States(r.t, r.stamp, geo.Catalog, geo.Blob)
}

// put writes a block blob.
func (r *rig) put(path string, body []byte, header ...string) answer {
	r.t.Helper()
	return r.do(http.MethodPut, path, body, append([]string{"x-ms-blob-type", "BlockBlob"}, header...)...)
}

func (r *rig) get(path string, header ...string) answer {
	r.t.Helper()
	return r.do(http.MethodGet, path, nil, header...)
}

// requireCode requires a refusal by status and code.
func (r *rig) requireCode(a answer, status int, code string) {
	r.t.Helper()
	require.Equal(r.t, status, a.status, "%s", a.body)
	require.Equal(r.t, code, a.code(r.t))
}

// requireBlob requires the content of a blob.
func (r *rig) requireBlob(path string, want []byte) {
	r.t.Helper()
	a := r.get(path)
	require.Equal(r.t, http.StatusOK, a.status, "%s", a.body)
	require.NoError(r.t, a.err)
	require.True(r.t, bytes.Equal(want, a.body), "%d bytes differ from the %d written", len(a.body), len(want))
}

// content returns n bytes that depend on n and seed alone.
func content(n int, seed byte) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed, byte(n), byte(n >> 8), byte(n >> 16)}).Read(b)
	return b
}

func md5Of(b []byte) string {
	sum := md5.Sum(b)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// chunksOf is how many chunks a payload takes.
func chunksOf(n int) int64 {
	if n <= blobs.InlineBytesMax {
		return 0
	}
	return int64((n + blobs.ChunkBytesMax - 1) / blobs.ChunkBytesMax)
}

func repeat(s string, n int) string { return strings.Repeat(s, n) }
