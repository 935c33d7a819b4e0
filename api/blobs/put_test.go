package blobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
)

// Bodies of every kind come back as they went in, with the same ETag and hashes from
// Put, Get and Head; those up to the inline limit touch no extent, longer ones take
// one chunk a MiB.
func TestPutGet(t *testing.T) {
	r := newRig(t, nil)
	for _, n := range []int{0, 1, 1 << 10, 16 << 10, 16<<10 + 1, 1 << 20, 1<<20 + 1, 3<<20 - 1, 8 << 20} {
		path := fmt.Sprintf("/cont/dir/blob-%d", n)
		body := content(n, 1)
		before := r.payload.puts.Load()
		a := r.put(path, body)
		require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
		require.Equal(t, chunksOf(n), r.payload.puts.Load()-before)
		require.Equal(t, md5Of(body), a.header.Get("Content-MD5"))
		require.NotEmpty(t, a.header.Get("x-ms-content-crc64"))
		require.Equal(t, "false", a.header.Get("x-ms-request-server-encrypted"))

		get := r.get(path)
		require.Equal(t, http.StatusOK, get.status)
		require.True(t, bytes.Equal(body, get.body))
		head := r.do(http.MethodHead, path, nil)
		require.Equal(t, http.StatusOK, head.status)
		require.Empty(t, head.body)
		for _, x := range []answer{get, head} {
			require.Equal(t, a.header.Get("ETag"), x.header.Get("ETag"))
			require.Equal(t, a.header.Get("Last-Modified"), x.header.Get("Last-Modified"))
			require.Equal(t, a.header.Get("Last-Modified"), x.header.Get("x-ms-creation-time"))
			require.Equal(t, fmt.Sprint(n), x.header.Get("Content-Length"))
			require.Equal(t, md5Of(body), x.header.Get("Content-MD5"))
			require.Equal(t, "BlockBlob", x.header.Get("x-ms-blob-type"))
			require.Equal(t, "application/octet-stream", x.header.Get("Content-Type"))
			require.Equal(t, "bytes", x.header.Get("Accept-Ranges"))
			require.Equal(t, "unlocked", x.header.Get("x-ms-lease-status"))
		}
		require.Equal(t, "Hot", head.header.Get("x-ms-access-tier"))
		require.Equal(t, "true", head.header.Get("x-ms-access-tier-inferred"))
	}
}

// Content properties, metadata and the tier are kept and answered; an overwrite
// replaces them all but the tier.
func TestPropertiesAndMetadata(t *testing.T) {
	r := newRig(t, nil)
	a := r.put("/cont/b", []byte("x"),
		"x-ms-blob-content-type", "text/x", "Content-Type", "ignored/plain", "Content-Encoding", "gzip",
		"x-ms-blob-content-language", "de", "x-ms-blob-content-disposition", "inline", "Cache-Control", "no-store",
		"x-ms-meta-Key_1", " v 1 ", "x-ms-meta-empty", "", "x-ms-access-tier", "Cool")
	require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
	for _, x := range []answer{r.get("/cont/b", "Accept-Encoding", "identity"), r.do(http.MethodHead, "/cont/b", nil)} {
		require.Equal(t, "text/x", x.header.Get("Content-Type"))
		require.Equal(t, "gzip", x.header.Get("Content-Encoding"))
		require.Equal(t, "de", x.header.Get("Content-Language"))
		require.Equal(t, "inline", x.header.Get("Content-Disposition"))
		require.Equal(t, "no-store", x.header.Get("Cache-Control"))
		require.Equal(t, "v 1", x.header.Get("x-ms-meta-key_1"))
		require.Equal(t, []string{""}, x.header.Values("x-ms-meta-empty"))
		require.Equal(t, "Cool", x.header.Get("x-ms-access-tier"))
		require.Empty(t, x.header.Get("x-ms-access-tier-inferred"))
	}
	require.Equal(t, http.StatusCreated, r.put("/cont/b", []byte("y")).status)
	x := r.get("/cont/b")
	require.Equal(t, "application/octet-stream", x.header.Get("Content-Type"))
	require.Empty(t, x.header.Get("Content-Encoding"))
	require.Empty(t, x.header.Values("x-ms-meta-key_1"))
	require.Equal(t, "Cool", x.header.Get("x-ms-access-tier"))
}

// Names: the raw path is cut at the first slash after the container, then decoded, so
// encoded and raw slashes are the same name and nothing is cleaned away.
func TestNames(t *testing.T) {
	r := newRig(t, nil)
	for i, pair := range [][2]string{
		{"/cont/a/b", "/cont/a%2Fb"},
		{"/cont//a//b/", "/cont/%2Fa%2f/b%2F"},
		{"/cont/../x/./y", "/cont/..%2Fx%2F.%2Fy"},
		{"/cont/a+b", "/cont/a%2Bb"},
		{"/cont/%C3%A9;'", "/cont/%c3%a9%3B%27"},
		{"/cont/w%5Cin", "/cont/w/in"},
		{"/cont/" + repeat("x", 1024), "/cont/%78" + repeat("x", 1023)},
	} {
		body := fmt.Appendf(nil, "body %d", i)
		require.Equal(t, http.StatusCreated, r.put(pair[0], body).status, pair[0])
		r.requireBlob(pair[1], body)
	}
	r.requireCode(r.get("/cont/A/b"), http.StatusNotFound, "BlobNotFound")
}

// Whatever is refused says so with status and code, and the blob that was there stays.
func TestRefusals(t *testing.T) {
	r := newRig(t, func(o *Options) { o.BodyBytesMax = 100_000 })
	r.put("/cont/b", []byte("old"))
	small, large := []byte("123456789"), content(50_000, 2)
	block := []string{"x-ms-blob-type", "BlockBlob"}
	with := func(h ...string) []string { return append(h, block...) }
	for _, c := range []struct {
		method, path string
		body         []byte
		header       []string
		status       int
		code         string
	}{
		{"PUT", "/cont/b", small, nil, 400, "MissingRequiredHeader"},
		{"PUT", "/cont/b", small, []string{"x-ms-blob-type", "Blockblob"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", nil, []string{"x-ms-blob-type", "PageBlob"}, 501, "NotImplemented"},
		{"PUT", "/cont/b", nil, []string{"x-ms-blob-type", "AppendBlob"}, 501, "NotImplemented"},
		{"PUT", "/cont/b", nil, with("x-ms-copy-source", "http://x/y"), 501, "NotImplemented"},
		{"PUT", "/cont/b", content(100_001, 1), block, 413, "RequestBodyTooLarge"},
		{"PUT", "/cont/b", small, with("Content-MD5", md5Of(large)), 400, "Md5Mismatch"},
		{"PUT", "/cont/b", large, with("Content-MD5", md5Of(small)), 400, "Md5Mismatch"},
		{"PUT", "/cont/b", small, with("Content-MD5", "x"), 400, "InvalidMd5"},
		{"PUT", "/cont/b", small, with("x-ms-blob-content-md5", md5Of(large)), 400, "Md5Mismatch"},
		{"PUT", "/cont/b", large, with("x-ms-content-crc64", "AAAAAAAAAAA="), 400, "Crc64Mismatch"},
		{"PUT", "/cont/b", small, with("x-ms-content-crc64", "AAAA"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("x-ms-content-crc64", "iJh5CoYUi64=", "Content-MD5", md5Of(small)), 400, "BothCrc64AndMd5HeaderPresent"},
		{"PUT", "/cont/b", small, with("x-ms-structured-body", "XSM/1.0; properties=crc64"), 400, "UnsupportedHeader"},
		{"PUT", "/cont/b", small, with("x-ms-encryption-key", "secret"), 400, "UnsupportedHeader"},
		{"PUT", "/cont/b", small, with("x-ms-encryption-scope", "s"), 400, "UnsupportedHeader"},
		{"PUT", "/cont/b", small, with("x-ms-tags", "a=b"), 400, "UnsupportedHeader"},
		{"PUT", "/cont/b", small, with("x-ms-if-tags", "a='b'"), 400, "UnsupportedHeader"},
		{"PUT", "/cont/b", small, with("x-ms-access-tier", "Archive"), 501, "NotImplemented"},
		{"PUT", "/cont/b", small, with("x-ms-access-tier", "hot"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("x-ms-blob-content-length", "9"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("x-ms-lease-id", "1"), 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/b", large, with("x-ms-lease-id", "1"), 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/b", small, with("x-ms-meta-", "v"), 400, "EmptyMetadataKey"},
		{"PUT", "/cont/b", small, with("x-ms-meta-1a", "v"), 400, "InvalidMetadata"},
		{"PUT", "/cont/b", small, with("x-ms-meta-a", "ü"), 400, "InvalidMetadata"},
		{"PUT", "/cont/b", small, with("x-ms-meta-a", repeat("v", 8<<10)), 400, "MetadataTooLarge"},
		{"PUT", "/cont/b", small, with("If-Match", `"0x1"`), 412, "ConditionNotMet"},
		{"PUT", "/cont/b", large, with("If-Match", `"0x1"`), 412, "ConditionNotMet"},
		{"PUT", "/cont/b", small, with("If-None-Match", `*`), 409, "BlobAlreadyExists"},
		{"PUT", "/cont/b", small, with("If-Match", `*`, "If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"), 400, "MultipleConditionHeadersNotSupported"},
		{"PUT", "/none/b", small, block, 404, "ContainerNotFound"},
		{"PUT", "/UPPER/b", small, block, 400, "InvalidResourceName"},
		{"PUT", "/ab/b", small, block, 400, "OutOfRangeInput"},
		{"PUT", "/$other/b", small, block, 400, "InvalidResourceName"},
		{"PUT", "/$root/b", small, block, 501, "NotImplemented"},
		{"PUT", "/inroot", small, block, 501, "NotImplemented"},
		{"PUT", "/cont/", small, block, 400, "InvalidUri"},
		{"PUT", "/cont/%ff", small, block, 400, "InvalidResourceName"},
		{"PUT", "/cont/a%00", small, block, 400, "InvalidResourceName"},
		{"PUT", "/cont/" + repeat("x", 1025), small, block, 400, "OutOfRangeInput"},
		{"PUT", "/cont/b?comp=block", small, nil, 400, "MissingRequiredQueryParameter"},
		{"PUT", "/cont/b?comp=block&blockid=", small, nil, 400, "MissingRequiredQueryParameter"},
		{"PUT", "/cont/b?comp=block&blockid=A", small, nil, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/b?comp=block&blockid=AB==", small, nil, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/b?comp=block&blockid=b-1", small, nil, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/b?comp=block&blockid=" + repeat("AAAA", 22), small, nil, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/b?comp=block&blockid=AA==", nil, nil, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=block&blockid=AA==", content(100_001, 1), nil, 413, "RequestBodyTooLarge"},
		{"PUT", "/cont/b?comp=block&blockid=AA==", large, []string{"Content-MD5", md5Of(small)}, 400, "Md5Mismatch"},
		{"PUT", "/cont/b?comp=block&blockid=AA==", small, []string{"Content-MD5", "x"}, 400, "InvalidMd5"},
		{"PUT", "/cont/b?comp=block&blockid=AA==", small, []string{"x-ms-content-crc64", "AAAAAAAAAAA="}, 400, "Crc64Mismatch"},
		{"PUT", "/cont/b?comp=block&blockid=AA==", small, []string{"x-ms-structured-body", "XSM/1.0; properties=crc64"}, 400, "UnsupportedHeader"},
		{"PUT", "/cont/b?comp=block&blockid=AA==", small, []string{"x-ms-copy-source", "http://x/y"}, 501, "NotImplemented"},
		{"PUT", "/cont/b?comp=block&blockid=AA==", large, []string{"x-ms-lease-id", "1"}, 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/none/b?comp=block&blockid=AA==", small, nil, 404, "ContainerNotFound"},
		{"PUT", "/cont/b?comp=blocklist", small, nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", nil, nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/><BlockList/>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<List/>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList><Newest>AA==</Newest></BlockList>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList><Latest><b/></Latest></BlockList>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList>AA==</BlockList>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<!DOCTYPE x><BlockList/>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList><Latest>?</Latest></BlockList>"), nil, 400, "InvalidBlockList"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList><Latest>AA==</Latest></BlockList>"), nil, 400, "InvalidBlockList"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"Content-MD5", md5Of(small)}, 400, "Md5Mismatch"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"x-ms-blob-content-md5", "x"}, 400, "InvalidMd5"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"If-None-Match", "*"}, 409, "BlobAlreadyExists"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"If-Match", `"0x1"`}, 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"x-ms-lease-id", "1"}, 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/none/b?comp=blocklist", []byte("<BlockList/>"), nil, 404, "ContainerNotFound"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList>" + repeat("<Latest>AA==</Latest>", 50_001) + "</BlockList>"), nil, 400, "BlockListTooLong"},
		{"PUT", "/cont/b?comp=blocklist", []byte(repeat(" ", 8<<20+1)), nil, 413, "RequestBodyTooLarge"},
		{"GET", "/cont/b?comp=blocklist&blocklisttype=none", nil, nil, 400, "InvalidQueryParameterValue"},
		{"GET", "/cont/b?comp=blocklist", nil, []string{"x-ms-lease-id", "1"}, 412, "LeaseNotPresentWithBlobOperation"},
		{"GET", "/cont/none?comp=blocklist", nil, nil, 404, "BlobNotFound"},
		{"PUT", "/cont/b?comp=lease", nil, nil, 501, "NotImplemented"},
		{"PUT", "/cont/b?comp=immutabilityPolicies", nil, nil, 501, "NotImplemented"},
		{"PUT", "/cont/b?comp=nothing", small, block, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/b?restype=share", small, block, 400, "InvalidQueryParameterValue"},
		{"POST", "/cont/b", small, block, 405, "UnsupportedHttpVerb"},
		{"PATCH", "/cont/b?comp=metadata", small, block, 405, "UnsupportedHttpVerb"},
		{"GET", "/cont/b?comp=block", nil, nil, 405, "UnsupportedHttpVerb"},
		{"PUT", "/cont/b?comp=metadata", nil, []string{"x-ms-meta-1a", "v"}, 400, "InvalidMetadata"},
		{"PUT", "/cont/b?comp=metadata", nil, []string{"x-ms-meta-a", repeat("v", 8<<10)}, 400, "MetadataTooLarge"},
		{"PUT", "/cont/b?comp=metadata", nil, []string{"If-Match", `"0x1"`}, 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=metadata", nil, []string{"If-None-Match", "*"}, 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=metadata", nil, []string{"x-ms-lease-id", "1"}, 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/b?comp=metadata", nil, []string{"x-ms-encryption-key", "secret"}, 400, "UnsupportedHeader"},
		{"PUT", "/cont/b?comp=metadata&snapshot=2011-03-09T01:42:34.9360000Z", nil, nil, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/none?comp=metadata", nil, []string{"If-Match", `"0x1"`}, 404, "BlobNotFound"},
		{"PUT", "/none/b?comp=metadata", nil, nil, 404, "ContainerNotFound"},
		{"PUT", "/cont/b?comp=properties", nil, []string{"x-ms-blob-content-md5", "x"}, 400, "InvalidMd5"},
		{"PUT", "/cont/b?comp=properties", nil, []string{"x-ms-blob-content-length", "512"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=properties", nil, []string{"x-ms-sequence-number-action", "max"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=properties", nil, []string{"If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"}, 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=properties", nil, []string{"x-ms-lease-id", "1"}, 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/none?comp=properties", nil, nil, 404, "BlobNotFound"},
		{"GET", "/cont/none?comp=metadata", nil, nil, 404, "BlobNotFound"},
		{"PUT", "/cont?restype=container&comp=metadata", nil, []string{"x-ms-meta-", "v"}, 400, "EmptyMetadataKey"},
		{"PUT", "/cont?restype=container&comp=metadata", nil, []string{"If-Match", "*"}, 400, "ConditionHeadersNotSupported"},
		{"PUT", "/cont?restype=container&comp=metadata", nil, []string{"If-Modified-Since", "Fri, 06 Nov 2099 08:49:37 GMT"}, 412, "ConditionNotMet"},
		{"PUT", "/cont?restype=container&comp=metadata", nil, []string{"x-ms-lease-id", "x"}, 412, "LeaseNotPresentWithContainerOperation"},
		{"PUT", "/none?restype=container&comp=metadata", nil, nil, 404, "ContainerNotFound"},
		{"GET", "/cont/b?snapshot=2011-03-09T01:42:34.9360000Z", nil, nil, 501, "NotImplemented"},
		{"GET", "/cont/b", nil, []string{"x-ms-encryption-key", "k"}, 400, "UnsupportedHeader"},
		{"GET", "/cont/b", nil, []string{"x-ms-lease-id", "k"}, 412, "LeaseNotPresentWithBlobOperation"},
		{"GET", "/cont/none", nil, []string{"x-ms-lease-id", "k"}, 404, "BlobNotFound"},
		{"GET", "/none/b", nil, nil, 404, "ContainerNotFound"},
		{"GET", "/cont?restype=container&comp=block", nil, nil, 400, "InvalidQueryParameterValue"},
		{"GET", "/?comp=nothing", nil, nil, 400, "InvalidQueryParameterValue"},
		{"GET", "/cont?restype=account&comp=properties", nil, nil, 501, "NotImplemented"},
		{"DELETE", "/cont/b", nil, []string{"x-ms-delete-snapshots", "only"}, 501, "NotImplemented"},
		{"DELETE", "/cont/b", nil, []string{"x-ms-delete-snapshots", "x"}, 400, "InvalidHeaderValue"},
		{"DELETE", "/cont/b", nil, []string{"x-ms-lease-id", "x"}, 412, "LeaseNotPresentWithBlobOperation"},
		{"DELETE", "/cont/b", nil, []string{"If-Match", "x"}, 412, "ConditionNotMet"},
		{"DELETE", "/cont/none", nil, []string{"If-Match", "x"}, 404, "BlobNotFound"},
		{"PUT", "/cont?restype=container", nil, nil, 409, "ContainerAlreadyExists"},
		{"PUT", "/cont2?restype=container", nil, []string{"x-ms-blob-public-access", "blob"}, 409, "PublicAccessNotPermitted"},
		{"PUT", "/cont2?restype=container", nil, []string{"x-ms-meta-1", "x"}, 400, "InvalidMetadata"},
		{"PUT", "/a--b?restype=container", nil, nil, 400, "InvalidResourceName"},
		{"DELETE", "/cont?restype=container", nil, []string{"If-Match", "*"}, 400, "ConditionHeadersNotSupported"},
		{"DELETE", "/cont?restype=container", nil, []string{"If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"}, 412, "ConditionNotMet"},
		{"DELETE", "/cont?restype=container", nil, []string{"x-ms-lease-id", "x"}, 412, "LeaseNotPresentWithContainerOperation"},
		{"GET", "/none?restype=container", nil, nil, 404, "ContainerNotFound"},
	} {
		a := r.do(c.method, c.path, c.body, c.header...)
		require.Equal(t, c.status, a.status, "%s %s %v: %s", c.method, c.path, c.header, a.body)
		require.Equal(t, c.code, a.code(t), "%s %s %v", c.method, c.path, c.header)
		require.NotContains(t, string(a.body), "secret")
	}
	r.requireBlob("/cont/b", []byte("old"))
	require.Equal(t, []string{"b"}, r.list(listPath+"&include=uncommittedblobs").names(), "a refused block stays")
}

// Right hashes are accepted, and the one of the blob wins over that of the body.
func TestHashes(t *testing.T) {
	r := newRig(t, nil)
	a := r.put("/cont/b", []byte("123456789"), "x-ms-content-crc64", "iJh5CoYUi64=")
	require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
	require.Equal(t, "iJh5CoYUi64=", a.header.Get("x-ms-content-crc64"))
	require.Equal(t, "JfnnlDI7RTiF9RgfG2JNCw==", a.header.Get("Content-MD5"))
	a = r.put("/cont/b", []byte("hello world"), "Content-MD5", "XrY7u+Ae7tCTyyK7j1rNww==", "x-ms-blob-content-md5", "XrY7u+Ae7tCTyyK7j1rNww==")
	require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
	require.Equal(t, "vo7q9sPVKY0=", a.header.Get("x-ms-content-crc64"))
	a = r.put("/cont/b", []byte("x"), "x-ms-version", "2019-12-12")
	require.Empty(t, a.header.Values("x-ms-content-crc64"))
}

// raw sends bytes on a connection of its own and returns the status line, if any.
func (r *rig) raw(request string, closeWrite bool) string {
	r.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	require.NoError(r.t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, request)
	require.NoError(r.t, err)
	if closeWrite {
		require.NoError(r.t, c.(*net.TCPConn).CloseWrite())
	}
	b, _ := io.ReadAll(c)
	line, _, _ := strings.Cut(string(b), "\r\n")
	return line
}

// A body shorter than its Content-Length changes nothing, inline or in chunks; one
// without a length is 411, and one that stalls ends with the request's time.
func TestBrokenBodies(t *testing.T) {
	r := newRig(t, nil)
	r.put("/cont/b", []byte("old"))
	head := "PUT /acct/cont/b HTTP/1.1\r\nHost: x\r\nx-ms-version: " + testVersion + "\r\nx-ms-blob-type: BlockBlob\r\nConnection: close\r\n"
	require.Contains(t, r.raw(head+"Content-Length: 100\r\n\r\nabc", true), "400")
	require.Contains(t, r.raw(head+"Content-Length: 3000000\r\n\r\n"+repeat("x", 2_000_000), true), "400")
	require.Contains(t, r.raw(head+"\r\n", false), "411")
	require.Contains(t, r.raw(head+"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", false), "411")
	stalled := strings.Replace(head, "/b HTTP", "/b?limit=50ms HTTP", 1)
	require.Contains(t, r.raw(stalled+"Content-Length: 100\r\n\r\nabc", false), "500")
	block := strings.Replace(head, "/b HTTP", "/b?comp=block&blockid=AA== HTTP", 1)
	require.Contains(t, r.raw(block+"Content-Length: 100\r\n\r\nabc", true), "400")
	require.Contains(t, r.raw(block+"Content-Length: 3000000\r\n\r\n"+repeat("x", 2_000_000), true), "400")
	list := strings.Replace(head, "/b HTTP", "/b?comp=blocklist HTTP", 1)
	require.Contains(t, r.raw(list+"Content-Length: 100\r\n\r\n<BlockList/>", true), "400")
	require.Contains(t, r.raw(strings.Replace(list, "?", "?limit=50ms&", 1)+"Content-Length: 100\r\n\r\n<BlockList>", false), "500")
	require.Contains(t, string(r.get("/cont/b?comp=blocklist&blocklisttype=all").body), "<UncommittedBlocks></UncommittedBlocks>")
	r.requireBlob("/cont/b", []byte("old"))
	require.Contains(t, r.raw(head+"Expect: 100-continue\r\nContent-Length: 3\r\n\r\nnew", false), "100")
	r.requireBlob("/cont/b", []byte("new"))
}

// Payload that cannot be made durable refuses the upload before anything is proposed.
func TestPutChunkFails(t *testing.T) {
	r := newRig(t, nil)
	r.put("/cont/b", []byte("old"))
	var calls atomic.Int64
	r.payload.onPut = func() error {
		if calls.Add(1) == 2 {
			return errors.New("disk on fire")
		}
		return nil
	}
	r.requireCode(r.put("/cont/b", content(3<<20, 1)), http.StatusServiceUnavailable, "ServerBusy")
	require.Equal(t, int64(2), calls.Load())
	r.requireBlob("/cont/b", []byte("old"))
}

// Bytes in flight are bounded before a body is read: of many uploads no more run than
// fit, one larger than the bound runs alone, and one whose time ends while it waits
// changed nothing.
func TestInFlight(t *testing.T) {
	const body = 2 << 20
	r := newRig(t, func(o *Options) { o.InFlightBytesMax = 2 * body })
	gate := make(chan struct{})
	var running, most atomic.Int64
	r.payload.onPut = func() error {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-gate
		running.Add(-1)
		return nil
	}
	var wg sync.WaitGroup
	statuses := make([]int, 6)
	for i := range statuses {
		wg.Go(func() {
			a, err := r.try(http.MethodPut, fmt.Sprintf("/cont/b%d", i), bytes.NewReader(content(body, byte(i))), "x-ms-blob-type", "BlockBlob")
			if err == nil {
				statuses[i] = a.status
			}
		})
	}
	require.Eventually(t, func() bool { return running.Load() == 2 }, 5*time.Second, time.Millisecond)
	r.requireCode(r.put("/cont/late?limit=30ms", content(body, 9)), http.StatusServiceUnavailable, "ServerBusy")
	close(gate)
	wg.Wait()
	for i, status := range statuses {
		require.Equal(t, http.StatusCreated, status)
		r.requireBlob(fmt.Sprintf("/cont/b%d", i), content(body, byte(i)))
	}
	require.Equal(t, int64(2), most.Load())
	require.Equal(t, http.StatusCreated, r.put("/cont/huge", content(5<<20, 1)).status)
	r.requireCode(r.get("/cont/late"), http.StatusNotFound, "BlobNotFound")
}

// Test and write are one step: of many creators one succeeds, and of many writers that
// hold the same ETag one does, for bodies inline and in chunks.
func TestConditionsAreAtomic(t *testing.T) {
	r := newRig(t, nil)
	race := func(n int, header ...string) map[int]int {
		var mu sync.Mutex
		var wg sync.WaitGroup
		count := map[int]int{}
		for i := range 16 {
			wg.Go(func() {
				a, err := r.try(http.MethodPut, "/cont/b", bytes.NewReader(content(n, byte(i))), append(header, "x-ms-blob-type", "BlockBlob")...)
				if err != nil {
					a.status = -1
				}
				mu.Lock()
				defer mu.Unlock()
				count[a.status]++
			})
		}
		wg.Wait()
		return count
	}
	for _, n := range []int{100, 20_000} {
		require.Equal(t, map[int]int{201: 1, 409: 15}, race(n, "If-None-Match", "*"))
		tag := r.do(http.MethodHead, "/cont/b", nil).header.Get("ETag")
		require.Equal(t, map[int]int{201: 1, 412: 15}, race(n, "If-Match", tag))
		require.Equal(t, http.StatusAccepted, r.do(http.MethodDelete, "/cont/b", nil).status)
	}
}

// The in-flight semaphore, the inline limit and the default body limit are those the
// documents name.
func TestDefaults(t *testing.T) {
	o := Options{}.withDefaults()
	require.Zero(t, o.BodyBytesMax)
	require.Equal(t, bodyBytes{5000, 256, 64}, putBlobBytes)
	require.Equal(t, bodyBytes{4000, 100, 4}, putBlockBytes)
	require.Equal(t, int64(64<<20), o.InFlightBytesMax)
	require.Less(t, protocol.Version("2021-12-02"), version20240804)
}
