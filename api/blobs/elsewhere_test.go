package blobs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/services/blobs"
)

// other is a server elsewhere that serves one blob, and misbehaves on request: ?fault=...
type other struct {
	content []byte
	header  http.Header

	mu sync.Mutex
	// asked are the headers of the requests. Guarded by mu.
	asked []http.Header
}

// requests are the headers of those that came.
func (o *other) requests() []http.Header {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.asked)
}

func (o *other) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.asked = append(o.asked, r.Header.Clone())
	o.mu.Unlock()
	h, body, status := w.Header(), o.content, http.StatusOK
	for name, values := range o.header {
		h[name] = values
	}
	q := r.URL.Query()
	if text := r.Header.Get("Range"); text != "" && q.Get("fault") != "whole" {
		first, last, _ := cutRange(text, testVersion)
		if first >= uint64(len(body)) {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		last = min(last, uint64(len(body))-1)
		switch q.Get("fault") {
		case "shifted":
			first++
		case "longer":
			last++
		}
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, len(body)))
		body, status = body[first:last+1], http.StatusPartialContent
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	switch fault := q.Get("fault"); fault {
	case "": // It serves the blob.
	case "whole", "shifted", "longer":
	case "part":
		h.Set("Content-Range", "bytes 0-0/1")
		status = http.StatusPartialContent
	case "drip":
		w.WriteHeader(status)
		for {
			if _, err := w.Write([]byte("x")); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	case "silent":
		<-r.Context().Done()
		return
	case "short":
		w.WriteHeader(status)
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	case "unknown":
		h.Del("Content-Length")
		w.WriteHeader(status)
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write(body)
		return
	case "large":
		h.Set("Content-Length", strconv.Itoa(elsewhereMax+1))
	case "metadata":
		h.Set("X-Ms-Meta-1", "v")
	case "refused":
		h.Del("Content-Length")
		h.Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("<?xml version=\"1.0\"?><Error><Code>NotYours</Code><Message>It is not yours.\nRequestId:1</Message></Error>"))
		return
	default:
		code, _ := strconv.Atoi(fault)
		h.Del("Content-Length")
		w.WriteHeader(code)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// newOther starts a rig and a server elsewhere. at is a URL of its blob.
func newOther(t *testing.T, content []byte) (r *rig, o *other, at string) {
	t.Helper()
	r = newRig(t, nil)
	o = &other{content: content, header: http.Header{
		"Content-Type": {"text/x"}, "Content-Md5": {"AQIDBAUGBwgJCgsMDQ4PEA=="}, "Content-Encoding": {"e"}, "X-Ms-Meta-K": {"v"}, "X-Ms-Blob-Type": {"BlockBlob"},
		"Content-Language": {"de"}, "Cache-Control": {"c"}, "Content-Disposition": {"d"},
	}}
	server := httptest.NewServer(o)
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		server.Close()
	})
	return r, o, server.URL + "/blob"
}

// copyFrom asks for the copy of a blob elsewhere.
func (r *rig) copyFrom(path, uri string, header ...string) answer {
	r.t.Helper()
	return r.do(http.MethodPut, path, nil, append([]string{"x-ms-copy-source", uri}, header...)...)
}

// A blob elsewhere is read once, with its properties, by every operation; its content is put here.
func TestCopyFromElsewhere(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 5, blobs.InlineBytesMax, blobs.InlineBytesMax + 1, 3<<20 + 1} {
		r, o, at := newOther(t, content(size, 1))
		for _, header := range [][]string{nil, {"x-ms-requires-sync", "true"}, {"x-ms-blob-type", "BlockBlob"}} {
			asked, puts := len(o.requests()), r.payload.puts.Load()
			a := r.copyFrom("/cont/b", at+"?x=1&sig=secret", header...)
			require.Less(t, a.status, 300, "%s", a.body)
			require.Len(t, o.requests(), asked+1)
			require.Equal(t, puts+chunksOf(size), r.payload.puts.Load())
			r.requireBlob("/cont/b", o.content)
			h := r.do(http.MethodHead, "/cont/b", nil).header
			for name, values := range o.header {
				require.Equal(t, values, h[name], name)
			}
			if len(header) == 2 && header[0] == "x-ms-blob-type" {
				require.Empty(t, h.Get("x-ms-copy-id"))
			} else {
				require.Equal(t, at+"?x=1&sig=REDACTED", h.Get("x-ms-copy-source"))
				require.Equal(t, fmt.Sprintf("%d/%d", size, size), h.Get("x-ms-copy-progress"))
			}
			require.NotEmpty(t, a.header.Get("x-ms-content-crc64"), "it was read")
		}
		require.Equal(t, "identity", o.requests()[0].Get("Accept-Encoding"))
		require.Equal(t, 201, r.create("/cont/log").status)
		a := r.copyFrom("/cont/log?comp=appendblock", at, "x-ms-source-content-md5", md5Of(o.content))
		if size == 0 {
			r.requireCode(a, 416, "InvalidRange")
			continue
		}
		require.Equal(t, 201, a.status, "%s", a.body)
		r.requireBlob("/cont/log", o.content)
		require.Equal(t, 201, r.copyFrom("/cont/log?comp=appendblock", at, "x-ms-source-range", fmt.Sprintf("bytes=%d-%d", size/2, size-1)).status)
		r.requireBlob("/cont/log", append(bytes.Clone(o.content), o.content[size/2:]...))
		require.Equal(t, 201, r.copyFrom("/cont/l?comp=block&blockid=AAAA", at, "x-ms-source-range", "bytes=1-").status)
		require.Equal(t, 201, r.do(http.MethodPut, "/cont/l?comp=blocklist", []byte("<BlockList><Latest>AAAA</Latest></BlockList>")).status)
		r.requireBlob("/cont/l", o.content[1:])
	}
}

// What a server elsewhere refuses, does not send, or sends too slowly is copied by no operation, and changes nothing.
func TestFaultsElsewhere(t *testing.T) {
	t.Parallel()
	r, o, at := newOther(t, content(3<<20, 1))
	require.Equal(t, 201, r.create("/cont/log").status)
	require.Equal(t, 201, r.put("/cont/b", []byte("old")).status)
	for _, c := range []struct {
		fault  string
		header []string
		status int
		code   string
		// put: the content is taken before it is found out.
		put bool
	}{
		{"drip", nil, 500, "CannotVerifyCopySource", false},
		{"silent", nil, 500, "CannotVerifyCopySource", false},
		{"short", nil, 500, "CannotVerifyCopySource", true},
		{"unknown", nil, 409, "CannotVerifyCopySource", false},
		{"part", nil, 409, "CannotVerifyCopySource", false},
		{"metadata", nil, 409, "CannotVerifyCopySource", false},
		{"refused", nil, 403, "CannotVerifyCopySource", false},
		{"404", nil, 404, "CannotVerifyCopySource", false},
		{"503", nil, 503, "CannotVerifyCopySource", false},
		{"500", nil, 500, "CannotVerifyCopySource", false},
		{"412", nil, 412, "CannotVerifyCopySource", false},
		{"416", nil, 416, "CannotVerifyCopySource", false},
		{"302", nil, 500, "CannotVerifyCopySource", false},
		{"412", []string{"x-ms-source-if-match", "a"}, 412, "SourceConditionNotMet", false},
		{"304", []string{"x-ms-source-if-none-match", "a"}, 412, "SourceConditionNotMet", false},
		{"", []string{"x-ms-source-content-md5", md5Of([]byte("other"))}, 400, "Md5Mismatch", true},
		{"", []string{"x-ms-source-content-crc64", "AAAAAAAAAAA="}, 400, "Crc64Mismatch", true},
		{"", []string{"x-ms-lease-id", leaseA}, 412, "LeaseNotPresentWithBlobOperation", false},
	} {
		for to, header := range map[string][]string{
			"/cont/b": nil, "/cont/b?1": {"x-ms-requires-sync", "true"}, "/cont/b?2": {"x-ms-blob-type", "BlockBlob"},
			"/cont/b?comp=block&blockid=AAAA": nil, "/cont/log?comp=appendblock": nil,
		} {
			if to == "/cont/b" && c.put && c.fault == "" { // Copy Blob takes no hashes.
				continue
			}
			if r.handler.sourceStall = time.Minute; c.fault == "drip" || c.fault == "silent" {
				r.handler.sourceStall = 100 * time.Millisecond
			}
			before, asked := r.state(), len(o.requests())
			a := r.copyFrom(to, at+"?fault="+c.fault, append(header, c.header...)...)
			require.Equal(t, c.status, a.status, "%s of %q: %s", to, c.fault, a.body)
			require.Equal(t, c.code, a.code(t), "%s of %q", to, c.fault)
			require.Equal(t, before, r.state(), "%s of %q", to, c.fault)
			if a.code(t) == "CannotVerifyCopySource" && c.status < 500 && c.fault == strconv.Itoa(c.status) {
				require.Equal(t, c.fault, a.header.Get("x-ms-copy-source-status-code"))
			}
			require.Equal(t, c.put, r.abandoned.Swap(0) > 0, "%s of %q", to, c.fault)
			require.Len(t, o.requests(), asked+1, "%s of %q", to, c.fault)
		}
	}
	a := r.copyFrom("/cont/b", at+"?fault=refused")
	require.Contains(t, string(a.body), "It is not yours.")
	require.Equal(t, "NotYours", a.header.Get("x-ms-copy-source-error-code"))
	r.requireBlob("/cont/b", []byte("old"))

	// Parts.
	block := "/cont/b?comp=block&blockid=AAAA"
	for _, c := range []struct {
		fault, bytes string
		status       int
		code         string
	}{
		{"whole", "bytes=0-9", 409, "CannotVerifyCopySource"},
		{"shifted", "bytes=0-9", 409, "CannotVerifyCopySource"},
		{"longer", "bytes=0-9", 409, "CannotVerifyCopySource"},
		{"", "bytes=3145727-3145728", 416, "InvalidRange"},
		{"", "bytes=3145728-", 416, "InvalidRange"},
	} {
		a := r.copyFrom(block, at+"?fault="+c.fault, "x-ms-source-range", c.bytes)
		require.Equal(t, c.status, a.status, "%s of %q: %s", c.bytes, c.fault, a.body)
		require.Equal(t, c.code, a.code(t))
	}
	// Lengths.
	for to, want := range map[string]string{"/cont/b": "409 CannotVerifyCopySource", block: "413 RequestBodyTooLarge", "/cont/log?comp=appendblock": "413 RequestBodyTooLarge"} {
		a := r.copyFrom(to, at+"?fault=large")
		require.Equal(t, want, fmt.Sprint(a.status, " ", a.code(t)))
	}
	r.requireCode(r.copyFrom("/cont/b", at+"?fault=large", "x-ms-blob-type", "BlockBlob"), 409, "CannotVerifyCopySource")
	// Types, and tags, which are not in the answer.
	o.header.Set("X-Ms-Blob-Type", "AppendBlob")
	r.requireCode(r.copyFrom("/cont/b", at), 409, "InvalidSourceBlobType")
	require.Equal(t, 201, r.copyFrom("/cont/b", at, "x-ms-blob-type", "BlockBlob").status)
	r.requireCode(r.copyFrom("/cont/b", at, "x-ms-blob-type", "BlockBlob", "x-ms-copy-source-tag-option", "COPY"), 501, "NotImplemented")
}

// paced brings chunk bytes after each pause, as often as there are reads, and then nothing until its request ends.
type paced struct {
	request      context.Context
	pause        time.Duration
	chunk, reads int
}

func (p *paced) Read(b []byte) (int, error) {
	if p.reads == 0 {
		<-p.request.Done()
		return 0, p.request.Err()
	}
	p.reads--
	select {
	case <-time.After(p.pause):
		return min(len(b), p.chunk), nil
	case <-p.request.Done():
		return 0, p.request.Err()
	}
}

// A source may take its time for every stallBytes, and no longer: one that was fast before has no more of it, and the time in
// which nobody reads is not the source's.
func TestSlowSources(t *testing.T) {
	t.Parallel()
	const stall = 30 * time.Second
	for name, c := range map[string]struct {
		paced
		// idle passes between the reads; whole: all is read before it is cut off.
		idle  time.Duration
		whole bool
	}{
		"fast, then silent":  {paced: paced{chunk: stallBytes, reads: 100}, whole: true},
		"slow, and enough":   {paced: paced{chunk: stallBytes, reads: 10, pause: stall - 1}, whole: true},
		"slow, in parts":     {paced: paced{chunk: stallBytes / 2, reads: 20, pause: stall/2 - 1}, whole: true},
		"slow, not enough":   {paced: paced{chunk: stallBytes/2 - 1, reads: 20, pause: stall/2 - 1}},
		"drips":              {paced: paced{chunk: 1, reads: 100, pause: time.Second}},
		"taken slowly by us": {paced: paced{chunk: 1, reads: 100}, idle: stall, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				c.request = ctx
				a := newAnswered(cancel, stall)
				a.begin(io.NopCloser(&c.paced))
				defer a.close()
				var err error
				var waited time.Duration
				for err == nil {
					time.Sleep(c.idle)
					began := time.Now()
					_, err = a.Read(make([]byte, stallBytes))
					waited = time.Since(began)
				}
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, c.whole, c.reads == 0)
				require.LessOrEqual(t, waited, stall)
			})
		})
	}
}

// Conditions on a source elsewhere are sent on, of two only the one that decides; a request whose time is over is answered so.
func TestConditionsElsewhere(t *testing.T) {
	t.Parallel()
	r, o, at := newOther(t, []byte("hello"))
	require.Equal(t, 202, r.copyFrom("/cont/b", at, "x-ms-source-if-match", `"a"`, "x-ms-source-if-unmodified-since", past, "x-ms-source-if-tags", "a='b'").status)
	require.Equal(t, 202, r.copyFrom("/cont/b", at, "x-ms-source-if-modified-since", past).status)
	require.Equal(t, 202, r.copyFrom("/cont/b", at, "x-ms-source-if-none-match", `"a"`, "x-ms-source-if-modified-since", past).status)
	for i, want := range []map[string]string{
		{"If-Match": `"a"`, "X-Ms-If-Tags": "a='b'"}, {"If-Modified-Since": past}, {"If-None-Match": `"a"`},
	} {
		for _, name := range []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "X-Ms-If-Tags"} {
			require.Equal(t, want[name], o.requests()[i].Get(name), "%d: %s", i, name)
		}
	}
	r.requireCode(r.copyFrom("/cont/b?limit=50ms", at+"?fault=silent"), 500, "OperationTimedOut")
	r.requireCode(r.copyFrom("/cont/b", "http://127.0.0.1:1/"+url.PathEscape("b")), 500, "CannotVerifyCopySource")
}
