package blobs

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Metadata and properties of a blob are replaced as a whole, each without the other
// and without the payload; every write moves the ETag, and conditions see the newest.
func TestDescribeBlob(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	body := content(40_000, 1)
	first := r.put("/cont/b", body, "x-ms-meta-old", "1", "x-ms-blob-content-type", "text/x", "x-ms-blob-content-language", "de")
	require.Equal(t, http.StatusCreated, first.status)

	chunks := r.payload.puts.Load()
	set := r.do(http.MethodPut, "/cont/b?comp=metadata", nil, "x-ms-meta-New", "2", "If-Match", first.header.Get("ETag"))
	require.Equal(t, http.StatusOK, set.status, "%s", set.body)
	require.NotEqual(t, first.header.Get("ETag"), set.header.Get("ETag"))
	require.NotEmpty(t, set.header.Get("Last-Modified"))
	r.requireCode(r.do(http.MethodPut, "/cont/b?comp=metadata", nil, "If-Match", first.header.Get("ETag")), 412, "ConditionNotMet")
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		a := r.do(method, "/cont/b?comp=metadata", nil)
		require.Equal(t, http.StatusOK, a.status)
		require.Empty(t, a.body)
		require.Equal(t, set.header.Get("ETag"), a.header.Get("ETag"))
		require.Equal(t, "2", a.header.Get("x-ms-meta-new"))
		require.Empty(t, a.header.Values("x-ms-meta-old"))
		require.Equal(t, http.StatusNotModified, r.do(method, "/cont/b?comp=metadata", nil, "If-None-Match", set.header.Get("ETag")).status)
	}

	sum := md5Of([]byte("anything"))
	props := r.do(http.MethodPut, "/cont/b?comp=properties", nil, "x-ms-blob-content-md5", sum, "x-ms-blob-cache-control", "no-store",
		"Content-Type", "not/stored")
	require.Equal(t, http.StatusOK, props.status, "%s", props.body)
	a := r.get("/cont/b")
	require.Equal(t, props.header.Get("ETag"), a.header.Get("ETag"))
	require.Equal(t, body, a.body)
	require.Equal(t, sum, a.header.Get("Content-MD5"))
	require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	require.Empty(t, a.header.Values("Content-Type"))
	require.Empty(t, a.header.Get("Content-Language"))
	require.Equal(t, "2", a.header.Get("x-ms-meta-new"))
	require.Equal(t, first.header.Get("Last-Modified"), a.header.Get("x-ms-creation-time"))
	require.Equal(t, chunks, r.payload.puts.Load(), "payload was written again")

	require.Equal(t, http.StatusOK, r.do(http.MethodPut, "/cont/b?comp=properties", nil).status)
	require.Equal(t, http.StatusOK, r.do(http.MethodPut, "/cont/b?comp=metadata", nil).status)
	a = r.get("/cont/b")
	require.Empty(t, a.header.Get("Cache-Control"))
	require.Empty(t, a.header.Get("Content-MD5"))
	require.Empty(t, a.header.Values("x-ms-meta-new"))
}

// What Set Blob Properties leaves out is cleared, the content type too, and a reader is
// not sent a type that was guessed; an MD5 is stored unchecked, of any length, by it and
// by Put Block List (protocol/blob.md B5, 18.3).
func TestUncheckedProperties(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, http.StatusCreated, r.put("/cont/b", []byte("<html>"), "x-ms-blob-content-type", "text/x").status)
	for _, sum := range []string{"", "AQIDBA==", md5Of([]byte("another")), "AA==", repeat("AAAA", 20)} {
		a := r.do(http.MethodPut, "/cont/b?comp=properties", nil, "x-ms-blob-content-md5", sum)
		require.Equal(t, http.StatusOK, a.status, "%s", a.body)
		for _, a := range []answer{r.get("/cont/b"), r.do(http.MethodHead, "/cont/b", nil)} {
			require.Equal(t, http.StatusOK, a.status)
			require.Empty(t, a.header.Values("Content-Type"))
			require.Equal(t, sum, a.header.Get("Content-MD5"))
		}
		a = r.get("/cont/b", "Range", "bytes=0-1")
		require.Equal(t, sum, a.header.Get("x-ms-blob-content-md5"))
		require.Empty(t, a.header.Values("Content-MD5"))
		l := r.list(listPath + "&prefix=b")
		require.Equal(t, sum, l.Blobs[0].Properties.MD5)
		require.Empty(t, l.Blobs[0].Properties.ContentType)

		a = r.do(http.MethodPut, "/cont/c?comp=blocklist", []byte("<BlockList/>"), "x-ms-blob-content-md5", sum)
		require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
		a = r.get("/cont/c")
		require.Equal(t, sum, a.header.Get("Content-MD5"))
		require.Equal(t, "application/octet-stream", a.header.Get("Content-Type"))
	}
}

// Metadata of a container is replaced as a whole; the blobs in it stay, and its ETag
// moves.
func TestDescribeContainer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.put("/cont/b", []byte("kept"))
	before := r.get("/cont?restype=container")
	const path = "/cont?restype=container&comp=metadata"
	set := r.do(http.MethodPut, path, nil, "x-ms-meta-Colour", "red")
	require.Equal(t, http.StatusOK, set.status, "%s", set.body)
	require.NotEqual(t, before.header.Get("ETag"), set.header.Get("ETag"))
	for _, a := range []answer{r.get(path), r.do(http.MethodHead, path, nil), r.get("/cont?restype=container")} {
		require.Equal(t, http.StatusOK, a.status)
		require.Equal(t, set.header.Get("ETag"), a.header.Get("ETag"))
		require.Equal(t, "red", a.header.Get("x-ms-meta-colour"))
	}
	r.requireBlob("/cont/b", []byte("kept"))
	require.Equal(t, http.StatusOK, r.do(http.MethodPut, path, nil, "If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT").status)
	require.Empty(t, r.get(path).header.Values("x-ms-meta-colour"))
}
