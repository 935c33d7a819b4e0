package blobs

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
)

// copyRig is a rig with blobs to copy: block, with all that describes one, list, log, sealed, leased and archived.
func copyRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, nil)
	require.Equal(t, 201, r.put("/cont/block", []byte("hello"), "x-ms-blob-content-type", "text/x", "x-ms-blob-content-encoding", "e",
		"x-ms-blob-content-language", "de", "x-ms-blob-cache-control", "c", "x-ms-blob-content-disposition", "d", "x-ms-meta-k", "v", "x-ms-meta-l", "w",
		"x-ms-tags", "a=b", "x-ms-access-tier", "Cool").status)
	require.Equal(t, 201, r.putBlock("/cont/list", "aa", []byte("hel")).status)
	require.Equal(t, 201, r.putBlock("/cont/list", "bb", []byte("lo")).status)
	require.Equal(t, 201, r.commit("/cont/list", []string{"Laa", "Lbb"}, "x-ms-blob-content-md5", "AQID").status)
	require.Equal(t, 201, r.create("/cont/log", "x-ms-meta-k", "v").status)
	require.Equal(t, 201, r.append("/cont/log", []byte("hello")).status)
	require.Equal(t, 202, r.copy("/cont/sealed", "/cont/log").status)
	require.Equal(t, 200, r.do(http.MethodPut, "/cont/sealed?comp=seal", nil).status)
	require.Equal(t, 201, r.put("/cont/leased", []byte("hello")).status)
	require.Equal(t, 201, r.lease("/cont/leased?", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", leaseA).status)
	require.Equal(t, 201, r.put("/cont/timed", []byte("hello")).status)
	require.Equal(t, 201, r.lease("/cont/timed?", "acquire", "x-ms-lease-duration", "60", "x-ms-proposed-lease-id", leaseA).status)
	require.Equal(t, 201, r.put("/cont/archived", []byte("hello"), "x-ms-access-tier", "Archive").status)
	require.Equal(t, 201, r.put("/cont/long", content(4<<20+1, 1)).status)
	return r
}

// runCopies runs cases; in headers {of} is the URL of the blobs.
func runCopies(r *rig, cases []appendCase) {
	r.t.Helper()
	urls := strings.NewReplacer("{of}", r.url+"/acct/cont/", "{acct}", r.url+"/acct/")
	for i, c := range cases {
		for h := range c.header {
			c.header[h] = urls.Replace(c.header[h])
		}
		for h := range c.contains {
			c.contains[h] = urls.Replace(c.contains[h])
		}
		c.run(r, i+1)
	}
}

const past = "Sun, 06 Nov 1994 08:49:37 GMT"

// The conformance cases of copies of whole blobs, numbered: protocol/blob.md 13, 16, 17.
//
// Capability: Blobs: Copies.
func TestCopyCases(t *testing.T) {
	t.Parallel()
	r := copyRig(t)
	snapshot := r.do(http.MethodPut, "/cont/block?comp=snapshot", nil, "x-ms-meta-s", "t").header.Get("x-ms-snapshot")
	tag := r.do(http.MethodHead, "/cont/block", nil).header.Get("ETag")
	type list = []string
	from := func(name string, header ...string) list {
		return append(list{"x-ms-copy-source", "{of}" + name}, header...)
	}
	sync := func(name string, header ...string) list {
		return from(name, append(header, "x-ms-requires-sync", "true")...)
	}
	const put, head = "PUT ", "HEAD "
	done := list{"x-ms-copy-status=success", "Content-Length=0", "!Content-MD5", "!x-ms-content-crc64", "!x-ms-request-server-encrypted"}
	runCopies(r, []appendCase{
		// What is copied, and what is not.
		{"new", put, "", from("block"), 202, "", done},
		{"new", head, "", nil, 200, "", list{
			"Content-Length=5", "Content-Type=text/x", "Content-Encoding=e", "Content-Language=de", "Cache-Control=c", "Content-Disposition=d",
			"Content-MD5=" + md5Of([]byte("hello")), "x-ms-meta-k=v", "x-ms-meta-l=w", "!x-ms-tag-count", "x-ms-access-tier-inferred=true",
			"x-ms-copy-status=success", "x-ms-copy-source={of}block", "x-ms-copy-progress=5/5", "!x-ms-copy-status-description",
		}},
		{"new", "GET ", "", list{"x-ms-version", "2011-08-18"}, 200, "", list{"!x-ms-copy-id", "!x-ms-copy-source"}},
		{"new", put, "", from("block", "x-ms-meta-z", "y", "x-ms-tags", "t=u", "x-ms-access-tier", "Cold"), 202, "", done},
		{"new", head, "", nil, 200, "", list{"x-ms-meta-z=y", "!x-ms-meta-k", "x-ms-tag-count=1", "x-ms-access-tier=Cold", "!x-ms-access-tier-inferred"}},
		{"new", put, "", from("list"), 202, "", done},
		{"new", head, "", nil, 200, "", list{"Content-MD5=AQID", "!x-ms-meta-z", "!x-ms-tag-count", "x-ms-access-tier=Cold", "Content-Type=application/octet-stream"}},
		{"new", "GET ?comp=blocklist", "", nil, 200, "", list{"x-ms-blob-content-length=5"}},
		{"new", "PUT ?comp=metadata", "", nil, 200, "", nil},
		{"new", head, "", nil, 200, "", list{"!x-ms-copy-id", "!x-ms-copy-status", "!x-ms-copy-source", "!x-ms-copy-progress", "!x-ms-copy-completion-time"}},
		{"new", "PUT ?comp=copy", "", from("block"), 202, "", done},
		{"new", "PUT ?comp=snapshot", "", nil, 201, "", nil},
		{"new", head, "", nil, 200, "", list{"x-ms-copy-source={of}block"}},
		{"new", put, "x", list{"x-ms-blob-type", "BlockBlob"}, 201, "", nil},
		{"new", head, "", nil, 200, "", list{"!x-ms-copy-id"}},
		{"old", put, "", from("block", "x-ms-version", "2011-08-18"), 201, "", list{"!x-ms-copy-id", "!x-ms-copy-status"}},
		{"old", head, "", nil, 200, "", list{"x-ms-copy-source={of}block"}},
		{"new", put, "", from("block?snapshot=" + url.QueryEscape(snapshot)), 202, "", done},
		{"new", head, "", nil, 200, "", list{"x-ms-meta-s=t", "!x-ms-meta-k"}},
		{"block", put, "", from("block?snapshot=" + url.QueryEscape(snapshot)), 202, "", done},
		{"block", head, "", nil, 200, "", list{"x-ms-meta-s=t", "x-ms-access-tier=Cool"}},
		{"block", "GET ?snapshot=" + snapshot, "", nil, 200, "", list{"x-ms-meta-s=t", "!x-ms-copy-id"}},
		{"list", "PUT ?comp=block&blockid=Y2M=", "x", nil, 201, "", nil},
		{"list", put, "", from("list", "x-ms-meta-self", "yes"), 202, "", done},
		{"list", "GET ?comp=blocklist&blocklisttype=all", "", nil, 200, "", list{"x-ms-blob-content-length=5"}},
		{"list", head, "", nil, 200, "", list{"x-ms-meta-self=yes", "Content-MD5=AQID"}},
		// The source.
		{"new", put, "", list{"x-ms-copy-source", ""}, 400, "MissingRequiredHeader", nil},
		{"new", "PUT ?comp=copy", "", nil, 400, "MissingRequiredHeader", nil},
		{"new", put, "x", from("block"), 400, "InvalidHeaderValue", nil},
		{"new", "PUT ?comp=copy", "x", from("block"), 400, "InvalidHeaderValue", nil},
		{"new", put, "", list{"x-ms-copy-source", "no url"}, 400, "InvalidHeaderValue", nil},
		{"new", put, "", list{"x-ms-copy-source", "{of}"}, 400, "InvalidHeaderValue", nil},
		{"new", put, "", from("missing"), 404, "CannotVerifyCopySource", list{"x-ms-copy-source-status-code=404", "x-ms-copy-source-error-code=BlobNotFound"}},
		{"new", put, "", from("missing", "x-ms-version", "2025-05-05"), 404, "CannotVerifyCopySource", list{"!x-ms-copy-source-status-code"}},
		{"new", put, "", list{"x-ms-copy-source", "{acct}none/block"}, 404, "CannotVerifyCopySource", list{"x-ms-copy-source-error-code=ContainerNotFound"}},
		{"new", put, "", from("block?snapshot=2011-03-09T01:42:34.9360000Z"), 404, "CannotVerifyCopySource", nil},
		{"new", put, "", from("block?snapshot=x"), 400, "CannotVerifyCopySource", list{"x-ms-copy-source-error-code=InvalidQueryParameterValue"}},
		{"new", put, "", from("block?versionid=x"), 501, "NotImplemented", nil},
		{"new", put, "", from("block?sig=bad"), 403, "CannotVerifyCopySource", list{"x-ms-copy-source-error-code=AuthenticationFailed"}},
		{"new", put, "", list{"x-ms-copy-source", "/other/cont/block", "x-ms-version", "2011-08-18"}, 400, "CopyAcrossAccountsNotSupported", nil},
		{"new", put, "", from("block", "x-ms-copy-source-authorization", "Bearer x"), 400, "UnsupportedHeader", nil},
		{"new", put, "", from("block", "x-ms-source-encryption-key", "x"), 400, "UnsupportedHeader", nil},
		// Conditions on it.
		{"new", put, "", from("block", "x-ms-source-if-match", tag), 412, "SourceConditionNotMet", nil},
		{"new", put, "", from("block", "x-ms-source-if-match", "*", "x-ms-source-if-unmodified-since", past), 202, "", done},
		{"new", put, "", from("block", "x-ms-source-if-none-match", tag, "x-ms-source-if-modified-since", "Fri, 06 Nov 2099 08:49:37 GMT"), 202, "", done},
		{"new", put, "", from("block", "x-ms-source-if-none-match", "*"), 412, "SourceConditionNotMet", nil},
		{"new", put, "", from("block", "x-ms-source-if-modified-since", "Fri, 06 Nov 2099 08:49:37 GMT"), 412, "SourceConditionNotMet", nil},
		{"new", put, "", from("block", "x-ms-source-if-unmodified-since", past), 412, "SourceConditionNotMet", nil},
		{"new", put, "", from("block", "x-ms-source-if-none-match", "a, date"), 400, "MultipleConditionHeadersNotSupported", nil},
		{"new", put, "", from("block", "x-ms-source-if-tags", "a='b'"), 412, "SourceConditionNotMet", nil}, // The copy over it took the tags.
		{"new", put, "", from("block", "x-ms-source-if-tags", "a<>'b'"), 202, "", done},
		{"new", put, "", from("block", "x-ms-source-if-tags", "a"), 400, "InvalidHeaderValue", nil},
		{"new", put, "", from("block", "x-ms-source-if-tags", "a='b'", "x-ms-version", "2019-07-07"), 400, "UnsupportedHeader", nil},
		{"new", put, "", from("leased", "x-ms-source-lease-id", leaseA), 400, "UnsupportedHeader", nil},
		{"new", put, "", from("leased", "x-ms-source-lease-id", leaseB, "x-ms-version", "2011-08-18"), 412, "LeaseIdMismatchWithBlobOperation", nil},
		{"new", put, "", from("leased", "x-ms-source-lease-id", leaseA, "x-ms-version", "2011-08-18"), 201, "", nil},
		{"new", head, "", nil, 200, "", list{"x-ms-lease-state=available"}},
		// The destination.
		{"new", put, "", from("block", "If-Match", `"0x1"`), 412, "TargetConditionNotMet", nil},
		{"new", put, "", from("block", "If-Unmodified-Since", past), 412, "TargetConditionNotMet", nil},
		{"new", put, "", from("block", "If-None-Match", "*"), 409, "BlobAlreadyExists", nil},
		{"new", put, "", from("block", "x-ms-if-tags", "a='b'"), 412, "ConditionNotMet", nil},
		{"new2", put, "", from("block", "If-Match", "*"), 412, "TargetConditionNotMet", nil},
		{"new2", put, "", from("block", "x-ms-lease-id", leaseA), 412, "LeaseNotPresentWithBlobOperation", nil},
		{"new2", put, "", from("block", "If-None-Match", "*"), 202, "", done},
		{"leased", put, "", from("block"), 412, "LeaseIdMissing", nil},
		{"leased", put, "", from("block", "x-ms-lease-id", leaseB), 412, "LeaseIdMismatchWithBlobOperation", nil},
		{"leased", put, "", from("block", "x-ms-lease-id", leaseA), 202, "", done},
		{"timed", put, "", from("block", "x-ms-lease-id", leaseA), 202, "", done},
		{"leased", head, "", nil, 200, "", list{"x-ms-lease-state=leased"}},
		{"log", put, "", from("block"), 409, "InvalidBlobType", nil},
		{"block", put, "", from("log"), 409, "InvalidBlobType", nil},
		{"archived", put, "", from("block"), 409, "BlobArchived", nil},
		{"none/", put, "", from("block"), 202, "", done},
		{"new", put, "", from("block", "x-ms-access-tier", "Warm"), 400, "InvalidHeaderValue", nil},
		{"new", put, "", from("block", "x-ms-rehydrate-priority", "Low"), 400, "InvalidHeaderValue", nil},
		{"new", put, "", from("block", "x-ms-tags", "a"), 400, "InvalidTag", nil},
		{"new", "PUT ?snapshot=" + snapshot, "", from("block"), 400, "InvalidQueryParameterValue", nil},
		// An archived source.
		{"new", put, "", from("archived"), 409, "BlobArchived", nil},
		{"new", put, "", from("archived", "x-ms-access-tier", "Archive"), 409, "BlobArchived", nil},
		{"new", put, "", from("archived", "x-ms-access-tier", "Hot", "x-ms-version", "2018-11-09"), 409, "BlobArchived", nil},
		{"new", put, "", from("archived", "x-ms-access-tier", "Cool", "x-ms-rehydrate-priority", "High"), 202, "", done},
		{"new", "GET ", "", nil, 200, "", list{"x-ms-access-tier=Cool", "Content-Length=5"}},
		{"archived", put, "", from("archived", "x-ms-access-tier", "Hot"), 409, "BlobArchived", nil},
		// Append blobs.
		{"log2", put, "", from("log"), 202, "", done},
		{"log2", head, "", nil, 200, "", list{"x-ms-blob-type=AppendBlob", "x-ms-blob-committed-block-count=1", "!x-ms-blob-sealed", "x-ms-meta-k=v", "!x-ms-access-tier"}},
		{"log2", "PUT ?comp=appendblock", "x", nil, 201, "", list{"x-ms-blob-append-offset=5"}},
		{"log", head, "", nil, 200, "", list{"Content-Length=5"}},
		{"log2", put, "", from("sealed"), 202, "", done},
		{"log2", "PUT ?comp=appendblock", "x", nil, 409, "BlobIsSealed", nil},
		{"log3", put, "", from("log", "x-ms-seal-blob", "true"), 202, "", done},
		{"log3", head, "", nil, 200, "", list{"x-ms-blob-sealed=true"}},
		{"log3", put, "", from("log", "x-ms-seal-blob", "maybe"), 400, "InvalidHeaderValue", nil},
		{"log3", put, "", from("log", "x-ms-access-tier", "Hot"), 400, "InvalidHeaderValue", nil},
		{"log3", put, "", from("log", "x-ms-version", "2014-02-14"), 409, "FeatureVersionMismatch", nil},
		{"log4", put, "", from("log", "x-ms-version", "2014-02-14"), 409, "FeatureVersionMismatch", nil},
		{"new", put, "", from("block", "x-ms-seal-blob", "true"), 400, "InvalidHeaderValue", nil},
		// Copy Blob From URL.
		{"sync", put, "", sync("list"), 202, "", done},
		{"sync", put, "x", sync("list"), 400, "InvalidHeaderValue", nil},
		{"sync", put, "", from("list", "x-ms-requires-sync", "false"), 400, "InvalidHeaderValue", nil},
		{"sync", put, "", from("list", "x-ms-requires-sync", "yes"), 400, "InvalidHeaderValue", nil},
		{"sync", "PUT ?comp=copy", "", from("list", "x-ms-requires-sync", "0"), 400, "InvalidHeaderValue", nil},
		{"sync", put, "", from("list", "x-ms-requires-sync", "True"), 202, "", done},
		{"sync", "PUT ?comp=copy", "", sync("list"), 202, "", done},
		{"sync", "GET ?comp=blocklist", "", nil, 200, "", list{"x-ms-blob-content-length=5"}},
		{"sync", head, "", nil, 200, "", list{"x-ms-copy-status=success", "x-ms-copy-progress=5/5"}},
		{"sync", put, "", sync("list", "x-ms-source-content-md5", md5Of([]byte("hello"))), 202, "", list{"Content-MD5=" + md5Of([]byte("hello")), "!x-ms-content-crc64"}},
		{"sync", put, "", sync("list", "x-ms-source-content-md5", md5Of([]byte("other"))), 400, "Md5Mismatch", nil},
		{"sync", put, "", sync("list", "x-ms-source-content-md5", "x"), 400, "InvalidHeaderValue", nil},
		{"sync", put, "", sync("list", "x-ms-source-if-tags", "no condition"), 202, "", done},
		{"sync", put, "", sync("list", "x-ms-requires-sync", "true", "x-ms-version", "2017-11-09"), 400, "UnsupportedHeader", nil},
		{"sync", put, "", sync("log"), 409, "InvalidSourceBlobType", nil},
		{"sync", put, "", sync("archived", "x-ms-access-tier", "Hot"), 409, "BlobArchived", nil},
		{"sync", put, "", sync("block", "x-ms-copy-source-tag-option", "COPY", "x-ms-tags", "a=b"), 400, "BothUserTagsAndSourceTagsCopyPresentException", nil},
		{"sync", put, "", sync("block", "x-ms-copy-source-tag-option", "copy"), 400, "InvalidHeaderValue", nil},
		{"tagged", put, "", sync("block", "x-ms-copy-source-tag-option", "REPLACE", "x-ms-tags", "c=d&e=f"), 202, "", done},
		{"sync", put, "", sync("tagged", "x-ms-copy-source-tag-option", "COPY"), 202, "", done},
		{"sync", head, "", nil, 200, "", list{"x-ms-tag-count=2"}},
		{"sync", put, "", sync("tagged"), 202, "", done},
		{"sync", head, "", nil, 200, "", list{"!x-ms-tag-count"}},
		{"sync", put, "", sync("list", "If-Match", `"0x1"`), 412, "TargetConditionNotMet", nil},
		// Abort Copy Blob.
		{"sync", "PUT ?comp=copy&copyid=" + leaseA, "", list{"x-ms-copy-action", "abort"}, 409, "NoPendingCopyOperation", nil},
		{"missing", "PUT ?comp=copy&copyid=" + leaseA, "", list{"x-ms-copy-action", "abort"}, 404, "BlobNotFound", nil},
		{"sync", "PUT ?comp=copy", "", list{"x-ms-copy-action", "abort"}, 400, "MissingRequiredQueryParameter", nil},
		{"sync", "PUT ?comp=copy&copyid=x", "", list{"x-ms-copy-action", "abort"}, 400, "InvalidQueryParameterValue", nil},
		{"leased", "PUT ?comp=copy&copyid=" + leaseA, "", list{"x-ms-copy-action", "abort"}, 412, "LeaseIdMissing", nil},
		{"leased", "PUT ?comp=copy&copyid=" + leaseA, "", list{"x-ms-copy-action", "abort", "x-ms-lease-id", leaseA}, 409, "NoPendingCopyOperation", nil},
		{"sync", "PUT ?comp=copy&copyid=" + leaseA, "", list{"x-ms-copy-action", "abort", "x-ms-version", "2011-08-18"}, 400, "InvalidQueryParameterValue", nil},
	})
	r.requireBlob("/cont/new", []byte("hello"))
	committed, uncommitted, _ := r.blocks("/cont/list", "all")
	require.Equal(t, []string{"aa:3", "bb:2"}, committed)
	require.Empty(t, uncommitted, "a copy over it drops what is uncommitted")
}

// The conformance cases of content from a URL, numbered: protocol/blob.md B9, B11, B18, 13.6, 18.
//
// Capability: Blobs: Copies.
func TestFromURLCases(t *testing.T) {
	t.Parallel()
	r := copyRig(t)
	type list = []string
	from := func(name string, header ...string) list {
		return append(list{"x-ms-copy-source", "{of}" + name}, header...)
	}
	blob := func(name string, header ...string) list {
		return from(name, append(header, "x-ms-blob-type", "BlockBlob")...)
	}
	const put, block, app, head = "PUT ", "PUT ?comp=block&blockid=Y2M=", "PUT ?comp=appendblock", "HEAD "
	hello, crc := md5Of([]byte("hello")), "x-ms-content-crc64=V0JSBnCFdzM="
	other := md5Of([]byte("other"))
	bytes := func(text string) list { return from("block", "x-ms-source-range", text) }
	runCopies(r, []appendCase{
		// Put Blob From URL.
		{"new", put, "", blob("block"), 201, "", list{"x-ms-request-server-encrypted=false", "!x-ms-copy-id", "!Content-MD5", crc}},
		{"new", head, "", nil, 200, "", list{
			"Content-Length=5", "Content-Type=text/x", "Content-Encoding=e", "Content-MD5=" + hello, "x-ms-meta-k=v", "!x-ms-tag-count", "!x-ms-copy-id",
			"x-ms-access-tier-inferred=true",
		}},
		{"new", put, "", blob("block", "x-ms-blob-content-type", "text/y", "x-ms-blob-content-md5", "AQID", "x-ms-meta-z", "y", "x-ms-access-tier", "Cold", "x-ms-tags", "t=u"), 201, "", nil},
		{"new", head, "", nil, 200, "", list{"Content-Type=text/y", "Content-Encoding=e", "Content-MD5=AQID", "x-ms-meta-z=y", "!x-ms-meta-k", "x-ms-tag-count=1", "x-ms-access-tier=Cold"}},
		{"new", put, "", blob("block", "x-ms-copy-source-blob-properties", "false", "x-ms-blob-cache-control", "n"), 201, "", nil},
		{"new", head, "", nil, 200, "", list{"Content-Type=application/octet-stream", "!Content-Encoding", "!Content-MD5", "Cache-Control=n"}},
		{"new", put, "", blob("block", "x-ms-copy-source-blob-properties", "false", "x-ms-source-content-md5", hello), 201, "", list{"Content-MD5=" + hello, "!x-ms-content-crc64"}},
		{"new", head, "", nil, 200, "", list{"Content-MD5=" + hello}},
		{"new", put, "", blob("block", "x-ms-copy-source-blob-properties", "x"), 400, "InvalidHeaderValue", nil},
		{"new", put, "x", blob("block"), 400, "InvalidHeaderValue", nil},
		{"new", put, "", blob("block", "x-ms-blob-content-md5", other), 201, "", nil}, // The property, which is not checked.
		{"new", head, "", nil, 200, "", list{"Content-MD5=" + other}},
		{"new", put, "", blob("block", "x-ms-source-content-md5", other), 400, "Md5Mismatch", nil},
		{"new", put, "", blob("block", "x-ms-source-content-crc64", "AAAAAAAAAAA="), 400, "Crc64Mismatch", nil},
		{"new", put, "", blob("block", "x-ms-source-content-crc64", "AAAAAAAAAAA=", "x-ms-source-content-md5", hello), 400, "BothCrc64AndMd5HeaderPresent", nil},
		{"new", put, "", blob("block", "x-ms-source-content-crc64", "V0JSBnCFdzM="), 201, "", list{crc}},
		{"new", put, "", blob("block", "x-ms-blob-content-md5", "x"), 400, "InvalidMd5", nil},
		{"new", put, "", blob("block", "x-ms-version", "2020-02-10"), 400, "UnsupportedHeader", nil},
		{"new", put, "", blob("block", "x-ms-copy-source-tag-option", "COPY"), 201, "", nil},
		{"new", head, "", nil, 200, "", list{"x-ms-tag-count=1"}},
		{"new", put, "", blob("block", "x-ms-source-if-tags", "a='c'"), 412, "SourceConditionNotMet", nil},
		{"new", put, "", blob("block", "x-ms-source-if-match", `"0x1"`), 412, "SourceConditionNotMet", nil},
		{"new", put, "", blob("block", "If-Match", `"0x1"`), 412, "TargetConditionNotMet", nil},
		{"new", put, "", blob("block", "If-None-Match", "*"), 409, "BlobAlreadyExists", nil},
		{"new", put, "", blob("archived"), 409, "BlobArchived", nil},
		{"new", put, "", blob("archived", "x-ms-access-tier", "Hot"), 409, "BlobArchived", nil},
		{"new", put, "", blob("missing"), 404, "CannotVerifyCopySource", nil},
		{"leased", put, "", blob("block"), 412, "LeaseIdMissing", nil},
		{"leased", put, "", blob("block", "x-ms-lease-id", leaseA), 201, "", nil},
		{"new", put, "", blob("list"), 201, "", nil},
		{"new", "GET ?comp=blocklist", "", nil, 200, "", list{"x-ms-blob-content-length=5"}},
		{"new", put, "", blob("log", "x-ms-access-tier", "Cool"), 201, "", nil},
		{"new", head, "", nil, 200, "", list{"x-ms-blob-type=BlockBlob", "Content-Length=5", "x-ms-access-tier=Cool"}},
		{"sealed", put, "", blob("block"), 201, "", nil}, // Of another type.
		{"sealed", head, "", nil, 200, "", list{"x-ms-blob-type=BlockBlob"}},
		{"none/", put, "", blob("block"), 201, "", nil},
		// Put Block From URL.
		{"blocks", block, "", from("block"), 201, "", list{crc, "!Content-MD5", "!ETag", "x-ms-request-server-encrypted=false"}},
		{"blocks", head, "", nil, 404, "BlobNotFound", nil},
		{"blocks", block, "", from("block", "x-ms-source-content-md5", hello), 201, "", list{"Content-MD5=" + hello, "!x-ms-content-crc64"}},
		{"blocks", block, "", from("block", "x-ms-source-range", "bytes=1-2", "x-ms-source-content-md5", md5Of([]byte("el"))), 201, "", nil},
		{"blocks", block, "", from("block", "x-ms-source-range", "bytes=1-2", "x-ms-source-content-md5", hello), 400, "Md5Mismatch", nil},
		{"blocks", block, "", bytes("bytes=3-"), 201, "", nil},
		{"blocks", block, "", bytes("bytes=4-5"), 416, "InvalidRange", nil},
		{"blocks", block, "", bytes("bytes=5-"), 416, "InvalidRange", nil},
		{"blocks", block, "", bytes("bytes=2-1"), 400, "InvalidHeaderValue", nil},
		{"blocks", block, "", bytes("1-2"), 400, "InvalidHeaderValue", nil},
		{"blocks", block, "", bytes("bytes=0-18446744073709551614"), 416, "InvalidRange", nil},
		{"blocks", block, "", bytes("bytes=0-18446744073709551615"), 400, "InvalidHeaderValue", nil},
		{"blocks", block, "", bytes("bytes=0-99999999999999999999"), 400, "InvalidHeaderValue", nil},
		{"blocks", block, "", bytes("bytes=99999999999999999999-"), 416, "InvalidRange", nil},
		{"blocks", block, "x", from("block"), 400, "InvalidHeaderValue", nil},
		{"blocks", block, "", from("log", "x-ms-source-range", "bytes=0-0"), 201, "", nil},
		{"blocks", block, "", from("block", "If-Match", `"0x1"`), 201, "", nil}, // It takes no conditions.
		{"blocks", block, "", from("block", "x-ms-source-if-match", `"0x1"`), 412, "SourceConditionNotMet", nil},
		{"blocks", block, "", from("block", "x-ms-version", "2017-11-09"), 400, "UnsupportedHeader", nil},
		{"blocks", block, "", from("missing"), 404, "CannotVerifyCopySource", nil},
		{"blocks", block, "", from("archived"), 409, "BlobArchived", nil},
		{"blocks", "PUT ?comp=block&blockid=Y2Nj", "", from("block"), 400, "InvalidBlobOrBlock", nil},
		{"blocks", "PUT ?comp=block", "", from("block"), 400, "MissingRequiredQueryParameter", nil},
		{"log", block, "", from("block"), 409, "InvalidBlobType", nil},
		{"leased", block, "", from("block"), 412, "LeaseIdMissing", nil},
		{"archived", block, "", from("block"), 409, "BlobArchived", nil},
		// Append Block From URL.
		{"log", app, "", from("block"), 201, "", list{"x-ms-blob-append-offset=5", "x-ms-blob-committed-block-count=2", crc, "x-ms-request-server-encrypted=false"}},
		{"log", app, "", from("log"), 201, "", list{"x-ms-blob-append-offset=10", "x-ms-blob-committed-block-count=3"}}, // Itself.
		{"log", app, "", from("block", "x-ms-source-range", "bytes=0-1", "x-ms-source-content-md5", md5Of([]byte("he"))), 201, "", list{"x-ms-blob-append-offset=20"}},
		{"log", app, "", from("block", "x-ms-source-content-md5", other), 400, "Md5Mismatch", nil},
		{"log", app, "", from("block", "x-ms-blob-condition-appendpos", "5"), 412, "AppendPositionConditionNotMet", nil},
		{"log", app, "", from("block", "x-ms-blob-condition-maxsize", "26"), 412, "MaxBlobSizeConditionNotMet", nil},
		{"log", app, "", from("block", "If-Match", `"0x1"`), 412, "ConditionNotMet", nil},
		{"log", app, "", from("block", "x-ms-source-if-unmodified-since", past), 412, "SourceConditionNotMet", nil},
		{"log", app, "", bytes("bytes=0-5"), 416, "InvalidRange", nil},
		{"log", app, "", bytes("bytes=0-18446744073709551615"), 400, "InvalidHeaderValue", nil},
		{"log", app, "x", from("block"), 400, "InvalidHeaderValue", nil},
		{"log", app, "", from("long", "x-ms-version", "2021-12-02"), 413, "RequestBodyTooLarge", nil},
		{"log", app, "", from("long"), 201, "", list{"x-ms-blob-append-offset=22", "!x-ms-content-crc64"}},
		{"log", app, "", from("block", "x-ms-version", "2018-03-28"), 400, "UnsupportedHeader", nil},
		{"block", app, "", from("log"), 409, "InvalidBlobType", nil},
		{"missing", app, "", from("block"), 404, "BlobNotFound", nil},
	})
	r.requireBlob("/cont/log", append([]byte("hellohellohellohellohe"), content(4<<20+1, 1)...))
}

// Who may not read the tags of a source copies none, and makes no condition on them.
//
// Capability: Blobs: Tags and tiers.
func TestSourceTagsNeedPermission(t *testing.T) {
	t.Parallel()
	r := copyRig(t)
	for letters, may := range map[string]bool{"r": false, "rt": true} {
		r.sources = fakeSources{r: r, access: &protocol.Access{Letters: letters}}
		for _, header := range [][]string{
			{"x-ms-source-if-tags", "a='b'"},
			{"x-ms-source-if-tags", "a='b'", "x-ms-blob-type", "BlockBlob"},
			{"x-ms-copy-source-tag-option", "COPY", "x-ms-blob-type", "BlockBlob"},
			{"x-ms-copy-source-tag-option", "COPY", "x-ms-requires-sync", "true"},
		} {
			a := r.copy("/cont/new", "/cont/block", header...)
			if may {
				require.Less(t, a.status, 300, "%s", a.body)
			} else {
				r.requireCode(a, 403, "CannotVerifyCopySource")
				require.Equal(t, "AuthorizationPermissionMismatch", a.header.Get("x-ms-copy-source-error-code"))
			}
		}
	}
}
