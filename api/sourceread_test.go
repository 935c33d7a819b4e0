package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/apitest"
	"antipode/api/blobs"
	"antipode/api/protocol"
	"antipode/api/routing"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/services/catalog"
	"antipode/stamp/extent"
)

// sourcePair is two locations: north has account acct with blob cont/b in its stamp, south reads for copies.
type sourcePair struct {
	north, south *frontEnd
	content      []byte
	// moves: the accounts of north are on their way to south.
	moves   *atomic.Bool
	payload *failingPayload
}

// failingPayload has north's chunks, which cannot be read after as many reads as are left, where fails is set.
type failingPayload struct {
	blobs.Payload
	fails atomic.Bool
	left  atomic.Int64
}

// ReadChunk implements blobs.Payload.
func (p *failingPayload) ReadChunk(ref extent.Ref, off int64, b []byte) (int, error) {
	if p.fails.Load() && p.left.Add(-1) < 0 {
		return 0, errors.New("the chunk is damaged")
	}
	return p.Payload.ReadChunk(ref, off, b)
}

// movingDirectory has accounts that are on their way while moves is set.
type movingDirectory struct {
	directory
	moves *atomic.Bool
}

// Resolve implements api.Directory.
func (d movingDirectory) Resolve(
	ctx context.Context, name geo.Account, s geo.Service, container func(*catalog.Account) string,
) (*catalog.Account, *catalog.Found, []catalog.CORSRule, error) {
	if d.moves.Load() {
		return offeredDirectory{policyDirectory{d.directory}}.Resolve(ctx, name, s, container)
	}
	return d.directory.Resolve(ctx, name, s, container)
}

const pairSecret = "a secret of this process"

func newSourcePair(t *testing.T) *sourcePair {
	t.Helper()
	stamp := apitest.NewStamp(t, vfs.NewCrashableMem(), "acct", geo.Catalog, geo.Blob)
	names, writer := &catalog.Containers{}, primary.New(stamp)
	pair := &sourcePair{moves: new(atomic.Bool), payload: &failingPayload{Payload: stamp}, content: bytes.Repeat([]byte("0123456789abcdef"), 9<<20/16)}
	accounts := directory{"acct": "north", "mine": "south"}
	pair.north = newFrontEnd(t, api.Options{
		Location: "north", Directory: movingDirectory{accounts, pair.moves}, HopSecret: pairSecret,
		Blobs: blobs.NewHandler(blobs.Options{Stamp: stamp, Writer: writer, Payload: pair.payload, Names: names, Logger: apitest.Quiet()}),
	})
	l := httptest.NewServer(pair.north.Handler(geo.Blob))
	t.Cleanup(l.Close)
	pair.north.url = l.URL
	for _, c := range []coded{
		blob("PUT /acct/cont?restype=container", ""), blob("PUT /acct/cont/b", string(pair.content), "x-ms-blob-type", blockBlobs),
	} {
		require.Equal(t, http.StatusCreated, c.send(t, map[geo.Service]string{geo.Blob: l.URL}).status)
	}
	clear(pair.north.counts)
	pair.south = newFrontEnd(t, api.Options{
		Location: "south", Directory: accounts, Hosts: []string{"storage.example"},
		Forward: routing.NewForwarder("south", at(l.URL), nil).WithSecret(pairSecret),
	})
	return pair
}

// source is blob cont/b of acct for a copy into mine by a signature of it, or into acct by its key.
func (p *sourcePair) source(t *testing.T, params ...string) *protocol.Source {
	t.Helper()
	const uri = "http://storage.example:10000/acct/cont/b"
	r, with := copyInto(t, "acct", ""), ""
	if len(params) > 0 {
		r, with = copyInto(t, "mine", ""), "?"+readSAS(t, "acct", "cont", "b", params...)
	}
	s, _, err := p.south.SourceOf(r, uri+with)
	require.NoError(t, err)
	require.NotNil(t, s.Do)
	return s
}

// askSource reads a source to its end.
func askSource(t *testing.T, s *protocol.Source, method string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	r := httptest.NewRequest(method, "/", nil).WithContext(t.Context())
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.Do(r)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp, body
}

// A source that another location serves is read there, signed with the key or with the signature of its URL, as a client reads
// it: whole, in ranges, its header alone, and under conditions. What the other location refuses is an answer.
func TestSourceOfAnotherLocation(t *testing.T) {
	t.Parallel()
	p := newSourcePair(t)
	for _, s := range []*protocol.Source{p.source(t), p.source(t, "sp=r")} {
		require.Equal(t, "http://storage.example:10000/acct/cont/b", s.Shown)
		resp, body := askSource(t, s, http.MethodGet)
		require.Equal(t, http.StatusOK, resp.StatusCode, string(body))
		require.EqualValues(t, len(p.content), resp.ContentLength)
		require.True(t, bytes.Equal(p.content, body))
		require.Equal(t, "BlockBlob", resp.Header.Get("x-ms-blob-type"))
		etag := resp.Header.Get("ETag")
		resp, body = askSource(t, s, http.MethodGet, "x-ms-range", "bytes=5-9", "If-Match", etag, "x-ms-range-get-content-md5", "true")
		require.Equal(t, http.StatusPartialContent, resp.StatusCode)
		require.Equal(t, "56789", string(body))
		require.NotEmpty(t, resp.Header.Get("Content-MD5"))
		resp, body = askSource(t, s, http.MethodGet, "Range", "bytes=1048576-3145727")
		require.Equal(t, http.StatusPartialContent, resp.StatusCode)
		require.True(t, bytes.Equal(p.content[1<<20:3<<20], body))
		resp, body = askSource(t, s, http.MethodHead)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Empty(t, body)
		require.EqualValues(t, len(p.content), resp.ContentLength)
		resp, _ = askSource(t, s, http.MethodGet, "If-None-Match", etag)
		require.Equal(t, http.StatusNotModified, resp.StatusCode)
		resp, body = askSource(t, s, http.MethodGet, "If-Match", `"0x1"`)
		require.Equal(t, http.StatusPreconditionFailed, resp.StatusCode)
		require.Contains(t, string(body), "<Code>ConditionNotMet</Code>")
		resp, _ = askSource(t, s, http.MethodGet, "x-ms-version", "2099-01-01")
		require.Equal(t, string(protocol.Newest), resp.Header.Get("x-ms-version"), "the version is the caller's")
		_, err := s.Do(httptest.NewRequest(http.MethodPut, "/", nil))
		require.ErrorContains(t, err, "PUT")
	}
	p.south.requireCounted(t) // What is forwarded counts where it is served.
	for name, params := range map[string][]string{
		"a letter":            {"sp=w"},
		"a time":              {"se=2020-01-01"},
		"another client":      {"sip=192.0.2.2"},
		"a scheme":            {"spr=https"},
		"an unknown policy":   {"se=", "sp=", "si=q"},
		"tags, not permitted": {"sp=r", "tags"},
	} {
		headers := []string(nil)
		if params[len(params)-1] == "tags" {
			params, headers = params[:1], []string{"x-ms-if-tags", "a = 'b'"}
		}
		resp, body := askSource(t, p.source(t, params...), http.MethodGet, headers...)
		require.Equal(t, http.StatusForbidden, resp.StatusCode, "%s: %s", name, body)
	}
	resp, body := askSource(t, p.source(t, "sip=192.0.2.1"), http.MethodGet)
	require.Equal(t, http.StatusOK, resp.StatusCode, "the client is the one of the copy: %s", body)
}

// What a read of a source sends is what it needs and nothing else: neither what a client or a handler wrote beside that, nor
// marks of hops, which only the front end itself makes.
func TestSourceSendsNothingElse(t *testing.T) {
	t.Parallel()
	var got atomic.Pointer[http.Request]
	other := stub(t, func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Clone(context.Background()))
		w.WriteHeader(http.StatusTeapot)
	})
	f := newSourceEnd(t, api.Options{Forward: routing.NewForwarder("north", at(other), nil).WithSecret(pairSecret)})
	forged := []string{
		"X-Antipode-Hop", "south", "X-Antipode-Client-Addr", "198.51.100.1:1", "X-Antipode-Client-Proto", "https", "X-Antipode-Hop-Secret", "guess",
		"X-Antipode-Gateway", "x", "X-Antipode-Epoch", "9/south", "x-ms-meta-a", "b", "Authorization", "SharedKey acct:AAAA", "Cookie", "c=d",
		"x-ms-copy-source", "http://evil", "Origin", "http://evil", "Transfer-Encoding", "chunked", "Host", "evil",
	}
	for uri, signed := range map[string]bool{
		"http://storage.example:10000/acct-secondary/cont/b%2F%2e?snapshot=x":             true,
		"http://storage.example:10000/mirror/cont/b?" + readSAS(t, "mirror", "cont", "b"): false,
	} {
		r := copyRequest(t, "x-ms-source-if-match", "*", "X-Antipode-Gateway", "x")
		s, _, err := f.SourceOf(r, uri)
		require.NoError(t, err)
		resp, _ := askSource(t, s, http.MethodGet, append(slices.Clone(forged), "Range", "bytes=0-1", "If-Match", "*")...)
		require.Equal(t, http.StatusTeapot, resp.StatusCode)
		sent := got.Load()
		require.Equal(t, strings.TrimPrefix(uri, "http://storage.example:10000"), sent.RequestURI)
		require.Equal(t, "storage.example:10000", sent.Host)
		h := sent.Header.Clone()
		require.Equal(t, signed, h.Get("Authorization") != "")
		require.NotContains(t, h.Get("Authorization"), "AAAA")
		require.Equal(t, "192.0.2.1:1234", h.Get("X-Antipode-Client-Addr"))
		require.Equal(t, "http", h.Get("X-Antipode-Client-Proto"))
		require.Equal(t, pairSecret, h.Get("X-Antipode-Hop-Secret"))
		require.Equal(t, "north", h.Get("X-Antipode-Hop"))
		for _, name := range []string{"Authorization", "X-Ms-Date", "X-Antipode-Client-Addr", "X-Antipode-Client-Proto", "X-Antipode-Hop-Secret", "X-Antipode-Hop"} {
			h.Del(name)
		}
		require.Equal(t, http.Header{"Range": {"bytes=0-1"}, "If-Match": {"*"}, "X-Ms-Version": {"2021-12-02"}}, h)
	}
}

// A read of a source ends with its body, with its context, and where the other location breaks off, which no reader takes
// for the end. TestMain finds what stays behind.
func TestSourceReadsEnd(t *testing.T) {
	t.Parallel()
	const part = 64 << 10
	entered, left := make(chan struct{}, 1), make(chan struct{})
	var broken, stalls, chunked atomic.Bool
	other := stub(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			if broken.Load() {
				breakOff()
			}
			entered <- struct{}{}
			<-r.Context().Done()
			left <- struct{}{}
			return
		}
		if !chunked.Load() {
			w.Header().Set("Content-Length", "1000000000")
		}
		for {
			if _, err := w.Write(make([]byte, part)); err != nil {
				left <- struct{}{}
				return
			}
			if broken.Load() {
				breakOff()
			}
			if stalls.Load() {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		}
	})
	f := newSourceEnd(t, api.Options{Forward: routing.NewForwarder("north", at(other), nil)})
	s, _, err := f.SourceOf(copyRequest(t), "http://storage.example:10000/acct-secondary/cont/b")
	require.NoError(t, err)
	begin := func(ctx context.Context) *http.Response {
		resp, err := s.Do(httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
		require.NoError(t, err)
		_, err = io.ReadFull(resp.Body, make([]byte, part))
		require.NoError(t, err)
		return resp
	}
	soon := func() {
		select {
		case <-left:
		case <-time.After(time.Minute):
			require.Fail(t, "the other location was not left")
		}
	}
	t.Run("closed", func(t *testing.T) {
		resp := begin(t.Context())
		require.NoError(t, resp.Body.Close())
		soon()
		require.NoError(t, resp.Body.Close(), "again")
	})
	t.Run("closed, while nothing comes", func(t *testing.T) {
		stalls.Store(true)
		defer stalls.Store(false)
		resp, began := begin(t.Context()), clock.System{}.Now()
		require.NoError(t, resp.Body.Close())
		require.Less(t, clock.System{}.Now().Sub(began), 20*time.Second, "the hop by itself takes longer")
		soon()
	})
	t.Run("context, and nobody reads on", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begin(ctx)
		cancel()
		soon()
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		resp := begin(ctx)
		cancel()
		soon()
		_, err := io.Copy(io.Discard, resp.Body)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, resp.Body.Close())
	})
	t.Run("context, before an answer", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-entered
			cancel()
		}()
		_, err := s.Do(httptest.NewRequest(http.MethodHead, "/", nil).WithContext(ctx))
		require.ErrorIs(t, err, context.Canceled)
		soon()
	})
	t.Run("broken off", func(t *testing.T) {
		broken.Store(true)
		for _, unknown := range []bool{false, true} {
			chunked.Store(unknown)
			resp, err := s.Do(httptest.NewRequest(http.MethodGet, "/", nil).WithContext(t.Context()))
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.NoError(t, resp.Body.Close())
		}
		resp, err := s.Do(httptest.NewRequest(http.MethodHead, "/", nil).WithContext(t.Context()))
		require.NoError(t, err, "asked twice, the other location answered neither: a 500 of this one")
		require.GreaterOrEqual(t, resp.StatusCode, 500)
		require.NoError(t, resp.Body.Close())
	})
}

// An account that was on its way when its source was looked for, and has come back, is read here: by the rights that the
// client of the copy has.
func TestSourceOfAnAccountThatStays(t *testing.T) {
	t.Parallel()
	p := newSourcePair(t)
	find := func(params ...string) *protocol.Source {
		p.moves.Store(true)
		s, _, err := p.north.SourceOf(copyInto(t, "acct", "", "Host", host(p.north.url)), p.north.url+"/acct/cont/b?"+readSAS(t, "acct", "cont", "b", params...))
		require.NoError(t, err)
		require.NotNil(t, s.Do)
		p.moves.Store(false)
		return s
	}
	resp, body := askSource(t, find("sip=192.0.2.1"), http.MethodGet, "Range", "bytes=0-3")
	require.Equal(t, http.StatusPartialContent, resp.StatusCode, string(body))
	require.Equal(t, "0123", string(body))
	p.north.requireCounted(t, "GetBlob 206")
	// What cannot be read to its end breaks off: it is no shorter blob.
	p.payload.left.Store(2)
	p.payload.fails.Store(true)
	resp, err := find("sip=192.0.2.1").Do(httptest.NewRequest(http.MethodGet, "/", nil).WithContext(t.Context()))
	require.NoError(t, err)
	require.EqualValues(t, len(p.content), resp.ContentLength)
	n, err := io.Copy(io.Discard, resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Less(t, n, resp.ContentLength)
	require.NoError(t, resp.Body.Close())
}

// A source whose range another node of the location leads is read here, so that its chunks are shared.
func TestSourceOfAnotherNode(t *testing.T) {
	t.Parallel()
	leader := stub(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	f := newSourceEnd(t, api.Options{Leader: ledBy(leader), Clock: clock.System{}})
	s, _, err := f.SourceOf(copyRequest(t), "http://storage.example:10000/acct/cont/b")
	require.NoError(t, err)
	require.NotNil(t, s.Read)
	require.Nil(t, s.Do)
}
