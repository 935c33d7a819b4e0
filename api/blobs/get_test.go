package blobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/services/storageerr"
	"antipode/stamp/extent"
)

// Which bytes a Range header asks for, by table (protocol/blob.md 8.1).
func TestParseSpan(t *testing.T) {
	t.Parallel()
	whole := span{0, 100, false}
	for text, want := range map[string]span{
		"": whole, "bytes=0-99": {0, 100, true}, "bytes=0-0": {0, 1, true}, "bytes=5-": {5, 100, true}, "bytes=99-": {99, 100, true},
		"bytes=90-1000": {90, 100, true}, "bytes=0-99999999999999999999999": {0, 100, true},
		"bytes=-5": whole, "bytes=5-4": whole, "bytes=1-2,4-5": whole, "bytes=a-b": whole, "bytes=": whole, "items=0-1": whole,
		"bytes=0x1-2": whole, "bytes= 1-2": whole,
	} {
		got, err := parseRange(http.Header{"Range": {text}}, testVersion).of(100)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"bytes=100-", "bytes=100-200", "bytes=99999999999999999999999-"} {
		_, err := parseRange(http.Header{"Range": {text}}, testVersion).of(100)
		require.ErrorIs(t, err, storageerr.InvalidRange, text)
	}
	got, err := parseRange(http.Header{"Range": {"bytes=0-1"}, "X-Ms-Range": {"bytes=2-3"}}, testVersion).of(100)
	require.NoError(t, err)
	require.Equal(t, span{2, 4, true}, got)
	got, err = parseRange(http.Header{"Range": {"bytes=5-"}}, protocol.Version20090919).of(100)
	require.NoError(t, err)
	require.Equal(t, whole, got)
}

// Ranges across chunk and buffer edges give the bytes of the body, as 206 with the
// total, and their hashes when asked for.
func TestRanges(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, n := range []int{100, 3<<20 + 7} {
		body := content(n, 3)
		r.put("/cont/b", body)
		for _, s := range [][2]int{{0, n - 1}, {1, n - 2}, {n / 3, n / 2}, {n - 1, n - 1}, {min(1<<20-1, n-2), min(2<<20, n-1)}} {
			a := r.get("/cont/b", "x-ms-range", fmt.Sprintf("bytes=%d-%d", s[0], s[1]), "x-ms-range-get-content-md5", "true")
			require.Equal(t, http.StatusPartialContent, a.status, "%s", a.body)
			want := body[s[0] : s[1]+1]
			require.True(t, bytes.Equal(want, a.body), "range %v", s)
			require.Equal(t, fmt.Sprintf("bytes %d-%d/%d", s[0], s[1], n), a.header.Get("Content-Range"))
			require.Equal(t, md5Of(want), a.header.Get("Content-MD5"))
			require.Equal(t, md5Of(body), a.header.Get("x-ms-blob-content-md5"))
		}
	}
	r.put("/cont/b", []byte("..123456789.."))
	a := r.get("/cont/b", "Range", "bytes=2-10", "x-ms-range-get-content-crc64", "true")
	require.Equal(t, "123456789", string(a.body))
	require.Equal(t, "iJh5CoYUi64=", a.header.Get("x-ms-content-crc64"))
	require.Empty(t, a.header.Get("Content-MD5"))
	r.requireCode(r.get("/cont/b", "x-ms-range-get-content-md5", "true"), http.StatusBadRequest, "InvalidHeaderValue")

	r.put("/cont/long", content(5<<20, 1))
	r.requireCode(r.get("/cont/long", "Range", "bytes=0-", "x-ms-range-get-content-md5", "true"), http.StatusBadRequest, "InvalidHeaderValue")
	r.put("/cont/empty", nil)
	for path, size := range map[string]string{"/cont/empty": "0", "/cont/b": "13"} {
		a := r.get(path, "Range", "bytes=13-20")
		r.requireCode(a, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
		require.Equal(t, "bytes */"+size, a.header.Get("Content-Range"))
	}
}

// Conditions of reads: 304 keeps the tag and has no body, 412 wins over it, a missing
// blob over both.
func TestReadConditions(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	tag := r.put("/cont/b", []byte("x")).header.Get("ETag")
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		a := r.do(method, "/cont/b", nil, "If-None-Match", tag)
		r.requireCode(a, http.StatusNotModified, "ConditionNotMet")
		require.Equal(t, tag, a.header.Get("ETag"))
		require.Empty(t, a.body)
		r.requireCode(r.do(method, "/cont/b", nil, "If-Match", `"0x1"`), http.StatusPreconditionFailed, "ConditionNotMet")
		r.requireCode(r.do(method, "/cont/b", nil, "If-None-Match", "*"), http.StatusBadRequest, "UnsatisfiableCondition")
		r.requireCode(r.do(method, "/cont/none", nil, "If-None-Match", tag), http.StatusNotFound, "BlobNotFound")
		for _, match := range []string{tag, "*", "*,abc"} {
			require.Equal(t, http.StatusOK, r.do(method, "/cont/b", nil, "If-Match", match).status, match)
		}
		for _, match := range []string{"abc", tag + "invalid", "NULL"} {
			r.requireCode(r.do(method, "/cont/b", nil, "If-Match", match), http.StatusPreconditionFailed, "ConditionNotMet")
		}
		r.requireCode(r.do(method, "/cont/none", nil, "If-Match", "*"), http.StatusNotFound, "BlobNotFound")
	}
}

// A blob that is overwritten or deleted while it is read is read to its end as it was.
func TestReadThroughOverwrite(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	old := content(4<<20, 1)
	for name, change := range map[string]func() int{
		"overwrite": func() int { return r.put("/cont/b", content(4<<20, 2)).status },
		"delete":    func() int { return r.do(http.MethodDelete, "/cont/b", nil).status },
	} {
		r.payload.onRead = nil
		require.Equal(t, http.StatusCreated, r.put("/cont/b", old).status)
		var reads, status atomic.Int64
		r.payload.onRead = func(extent.Ref, int64) error {
			if reads.Add(1) == 6 {
				status.Store(int64(change()))
			}
			return nil
		}
		r.requireBlob("/cont/b", old)
		require.Less(t, status.Load(), int64(300), name)
		require.NotZero(t, status.Load(), name)
	}
	r.payload.onRead = nil
}

// R9: what a read is about to send stays, also if the blob is deleted as it begins and collections end before it does. Names
// are of no help here: every round finds none.
func TestR9ReadOutlastsCollections(t *testing.T) {
	r := newRig(t, nil)
	old := content(9<<20, 1)
	require.Equal(t, http.StatusCreated, r.put("/cont/b", old).status)
	require.Equal(t, http.StatusCreated, r.put("/cont/other", content(1<<20, 2)).status)
	var once sync.Once
	r.payload.onRead = func(extent.Ref, int64) error {
		once.Do(func() {
			for _, id := range r.stamp.Nodes() {
				s := r.stamp.Node(id).Extents()
				for range 3 {
					s.BeginRound(true)
					s.EndRound()
				}
				chunks, _, err := s.Sweep(100)
				assert.NoError(t, err)
				assert.Equal(t, 1, chunks, "of the other blob")
			}
		})
		return nil
	}
	r.requireBlob("/cont/b", old)
	for _, id := range r.stamp.Nodes() {
		// The client has all of the body a moment before the handler returns.
		require.Eventually(t, func() bool { return r.stamp.Node(id).Extents().Stats().Releases == 1 }, time.Minute, time.Millisecond, "the read has ended")
	}
}

// Payload that cannot be read is an error while nothing was sent, and a broken answer
// after: never other bytes, and never a whole one.
func TestReadFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	body := content(4<<20, 1)
	r.put("/cont/b", body)
	r.payload.onRead = func(extent.Ref, int64) error { return errors.New("no disk") }
	r.requireCode(r.get("/cont/b"), http.StatusInternalServerError, "InternalError")
	var reads atomic.Int64
	r.payload.onRead = func(extent.Ref, int64) error {
		if reads.Add(1) == 6 {
			return errors.New("no disk")
		}
		return nil
	}
	a := r.get("/cont/b")
	require.Equal(t, http.StatusOK, a.status)
	require.ErrorIs(t, a.err, io.ErrUnexpectedEOF)
	require.True(t, bytes.HasPrefix(body, a.body))
	require.Less(t, len(a.body), len(body))
}

// The life of a container: its properties by GET and HEAD, the rest of its name after
// a deletion, and no blob of a deleted one.
func TestContainer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	a := r.do(http.MethodPut, "/other?restype=container", nil, "x-ms-meta-Color", "blue")
	require.Equal(t, http.StatusCreated, a.status)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		p := r.do(method, "/other?restype=container", nil)
		require.Equal(t, http.StatusOK, p.status)
		require.Empty(t, p.body)
		require.Equal(t, a.header.Get("ETag"), p.header.Get("ETag"))
		require.Equal(t, a.header.Get("Last-Modified"), p.header.Get("Last-Modified"))
		require.Equal(t, "blue", p.header.Get("x-ms-meta-color"))
		require.Equal(t, "available", p.header.Get("x-ms-lease-state"))
		require.Equal(t, "ContainerNotFound", r.do(method, "/none?restype=container", nil).header.Get("x-ms-error-code"))
	}
	r.put("/other/b", []byte("x"))
	require.Equal(t, http.StatusAccepted, r.do(http.MethodDelete, "/other?restype=container", nil).status)
	r.requireCode(r.do(http.MethodDelete, "/other?restype=container", nil), http.StatusNotFound, "ContainerNotFound")
	r.requireCode(r.get("/other/b"), http.StatusNotFound, "ContainerNotFound")
	r.requireCode(r.put("/other/b", []byte("x")), http.StatusNotFound, "ContainerNotFound")
	r.requireCode(r.do(http.MethodPut, "/other?restype=container", nil), http.StatusConflict, "ContainerBeingDeleted")
}

// Delete Blob answers 202 and leaves nothing.
func TestDelete(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	tag := r.put("/cont/b", []byte("x")).header.Get("ETag")
	a := r.do(http.MethodDelete, "/cont/b", nil, "If-Match", tag, "x-ms-delete-snapshots", "include")
	require.Equal(t, http.StatusAccepted, a.status, "%s", a.body)
	require.Equal(t, "true", a.header.Get("x-ms-delete-type-permanent"))
	r.requireCode(r.get("/cont/b"), http.StatusNotFound, "BlobNotFound")
	r.requireCode(r.do(http.MethodDelete, "/cont/b", nil), http.StatusNotFound, "BlobNotFound")
}

// What is no condition is ignored by every operation of blobs and containers, reads and writes (docs/DIVERGENCE.md).
func TestNoConditions(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	conditions := []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"}
	made := 0
	const date, ofContainer = "Sun, 06 Nov 1994 08:49:37", "/cont?restype=container"
	for value, names := range map[string][]string{
		"null": conditions, "": conditions, " ": conditions, "x": conditions[2:], "*": conditions[2:], `"0x1"`: conditions[2:],
		"2026-01-02T12:00:00Z": conditions[2:], date: conditions[2:], date + " PST": conditions[2:], "Sun, 31 Feb 1994 08:49:37 GMT": conditions[2:],
	} {
		for _, name := range append(names, "all") {
			headers := []string{"x-ms-blob-type", "BlockBlob", name, value}
			if name == "all" {
				for _, name := range names {
					headers = append(headers, name, value)
				}
			}
			container := fmt.Sprintf("/made%d?restype=container", made)
			for _, request := range []struct {
				method, path, body string
				status             int
			}{
				{"PUT", "/cont/b", "x", 201},
				{"PUT", "/cont/b?comp=block&blockid=AAAA", "x", 201},
				{"PUT", "/cont/b?comp=blocklist", "<BlockList><Latest>AAAA</Latest></BlockList>", 201},
				{"PUT", "/cont/b?comp=metadata", "", 200},
				{"PUT", "/cont/b?comp=properties", "", 200},
				{"GET", "/cont/b", "", 200},
				{"HEAD", "/cont/b", "", 200},
				{"GET", "/cont/b?comp=metadata", "", 200},
				{"GET", "/cont/b?comp=blocklist", "", 200},
				{"DELETE", "/cont/b", "", 202},
				{"GET", listPath, "", 200},
				{"GET", ofContainer, "", 200},
				{"PUT", ofContainer + "&comp=metadata", "", 200},
				{"PUT", ofContainer + "&comp=acl", "", 200},
				{"GET", ofContainer + "&comp=acl", "", 200},
				{"PUT", container, "", 201},
				{"DELETE", container, "", 202},
			} {
				a := r.do(request.method, request.path, []byte(request.body), headers...)
				require.Equal(t, request.status, a.status, "%s %s with %s: %q: %s", request.method, request.path, name, value, a.body)
			}
			made++
		}
	}
}
