package blobs

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/apitest"
)

// noLease is a lease id that no blob and no container has.
const noLease = "c0ffee00-0000-4000-8000-000000000001"

// tagSet is a body of Set Blob Tags with one tag.
func tagSet(inner string) []byte {
	return []byte("<Tags><TagSet><Tag>" + inner + "</Tag></TagSet></Tags>")
}

// Whatever is refused says so with status and code, and the blob that was there stays.
//
// Capability: Clients: Bad input gets the protocol's error and changes nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.BodyBytesMax = 100_000 })
	r.put("/cont/b", []byte("old"))
	r.handler.o.BodyBytesMax = 0
	r.put("/cont/long", content(4<<20+1, 1))
	r.handler.o.BodyBytesMax = 100_000
	require.Equal(t, http.StatusCreated, r.putBlock("/cont/s", "aa", []byte("staged")).status)
	small, large := []byte("123456789"), content(50_000, 2)
	block := []string{"x-ms-blob-type", "BlockBlob"}
	with := func(h ...string) []string { return append(h, block...) }
	acquired := func(duration string, h ...string) []string {
		return append([]string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", duration}, h...)
	}
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
		{"PUT", "/cont/b", small, []string{"x-ms-blob-type", "AppendBlob"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=appendblock", small, nil, 409, "InvalidBlobType"},
		{"PUT", "/cont/b?comp=seal", nil, nil, 409, "InvalidBlobType"},
		{"PUT", "/cont/b", nil, with("x-ms-copy-source", "x"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", nil, with("x-ms-copy-source", "http://localhost/acct/cont/none"), 404, "CannotVerifyCopySource"},
		{"PUT", "/cont/b", nil, []string{"x-ms-copy-source", "http://localhost/acct/cont"}, 404, "CannotVerifyCopySource"},
		{"PUT", "/cont/b", nil, []string{"x-ms-copy-source", "http://localhost/acct/cont/b", "x-ms-lease-id", noLease}, 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/none/b", nil, []string{"x-ms-copy-source", "http://localhost/acct/cont/b"}, 404, "ContainerNotFound"},
		{"PUT", "/$logs/b", nil, []string{"x-ms-copy-source", "http://localhost/acct/cont/b"}, 403, "InsufficientAccountPermissions"},
		{"PUT", "/cont/b", nil, []string{"x-ms-copy-source", "http://localhost/acct/$logs/b"}, 404, "CannotVerifyCopySource"},
		{"PUT", "/cont/b?comp=block&blockid=AA==", nil, []string{"x-ms-copy-source", "http://localhost/acct/cont/b", "x-ms-source-range", "bytes=3-"}, 416, "InvalidRange"},
		{"PUT", "/cont/b", content(100_001, 1), block, 413, "RequestBodyTooLarge"},
		{"PUT", "/cont/b", small, with("Content-MD5", md5Of(large)), 400, "Md5Mismatch"},
		{"PUT", "/cont/b", large, with("Content-MD5", md5Of(small)), 400, "Md5Mismatch"},
		{"PUT", "/cont/b", small, with("Content-MD5", "x"), 400, "InvalidMd5"},
		{"PUT", "/cont/b", small, with("x-ms-blob-content-md5", md5Of(large)), 400, "Md5Mismatch"},
		{"PUT", "/cont/b", small, with("x-ms-blob-content-md5", "AAAA"), 400, "InvalidMd5"},
		{"PUT", "/cont/b", small, with("Content-MD5", strings.TrimRight(md5Of(small), "=")), 400, "InvalidMd5"},
		{"PUT", "/cont/b", large, with("x-ms-content-crc64", "AAAAAAAAAAA="), 400, "Crc64Mismatch"},
		{"PUT", "/cont/b", small, with("x-ms-content-crc64", "AAAA"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("x-ms-content-crc64", "iJh5CoYUi64=", "Content-MD5", md5Of(small)), 400, "BothCrc64AndMd5HeaderPresent"},
		{"PUT", "/cont/b", small, with("x-ms-structured-body", "XSM/1.0; properties=crc64"), 400, "UnsupportedHeader"},
		{"PUT", "/cont/b", small, with("x-ms-encryption-key", "secret"), 400, "UnsupportedHeader"},
		{"PUT", "/cont/b", small, with("x-ms-encryption-scope", "s"), 400, "UnsupportedHeader"},
		{"PUT", "/cont/b", small, with("x-ms-tags", "a=b", "x-ms-version", "2019-07-07"), 400, "UnsupportedHeader"},
		{"PUT", "/cont/b", small, with("x-ms-tags", "a"), 400, "InvalidTag"},
		{"PUT", "/cont/b", small, with("x-ms-tags", "a=b&"), 400, "InvalidTag"},
		{"PUT", "/cont/b", small, with("x-ms-tags", "a=%zz"), 400, "InvalidTag"},
		{"PUT", "/cont/b", small, with("x-ms-tags", "%z=b"), 400, "InvalidTag"},
		{"PUT", "/cont/b", small, with("x-ms-tags", "a=%2C"), 400, "InvalidTag"},
		{"PUT", "/cont/b", small, with("x-ms-tags", "a%26=b"), 400, "InvalidTag"},
		{"PUT", "/cont/b", small, with("x-ms-tags", "=b"), 400, "EmptyTagName"},
		{"PUT", "/cont/b", small, with("x-ms-tags", "a=b&a=c"), 400, "DuplicateTagNames"},
		{"PUT", "/cont/b", small, with("x-ms-tags", repeat("a", 129)+"=b"), 400, "TagsTooLarge"},
		{"PUT", "/cont/b", small, with("x-ms-tags", "a="+repeat("b", 257)), 400, "TagsTooLarge"},
		{"PUT", "/cont/b", small, with("x-ms-tags", "a=&b=&c=&d=&e=&f=&g=&h=&i=&j=&k=&"), 400, "TagsTooLarge"},
		{"PUT", "/cont/b", small, with("x-ms-if-tags", "a='b'", "x-ms-version", "2019-07-07"), 400, "UnsupportedHeader"},
		{"PUT", "/cont/b", small, with("x-ms-if-tags", "a='b'"), 412, "ConditionNotMet"},
		{"PUT", "/cont/none", small, with("x-ms-if-tags", "a='b'"), 412, "ConditionNotMet"},
		{"PUT", "/cont/b", large, with("x-ms-if-tags", "a='b'"), 412, "ConditionNotMet"},
		{"PUT", "/cont/b", small, with("x-ms-if-tags", "a=b"), 400, "InvalidHeaderValue"},
		{"GET", "/cont/b", nil, []string{"x-ms-if-tags", "a='b'"}, 412, "ConditionNotMet"},
		{"GET", "/cont/b", nil, []string{"x-ms-if-tags", "@container='b'"}, 400, "InvalidHeaderValue"},
		{"GET", "/cont/b?comp=blocklist", nil, []string{"x-ms-if-tags", "a='b'"}, 412, "ConditionNotMet"},
		{"DELETE", "/cont/b", nil, []string{"x-ms-if-tags", "a='b'"}, 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=lease", nil, acquired("15", "x-ms-if-tags", "a='b'"), 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=tier", nil, []string{"x-ms-access-tier", "Cool", "x-ms-if-tags", "a='b'"}, 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=tier", nil, nil, 400, "MissingRequiredHeader"},
		{"PUT", "/cont/b?comp=tier", nil, []string{"x-ms-access-tier", "Warm"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=tier", nil, []string{"x-ms-access-tier", "Smart"}, 501, "NotImplemented"},
		{"PUT", "/cont/b?comp=tier", nil, []string{"x-ms-access-tier", "Cool", "x-ms-rehydrate-priority", "high"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=tier", nil, []string{"x-ms-access-tier", "Cool", "x-ms-lease-id", noLease}, 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/b?comp=tier", nil, []string{"x-ms-access-tier", "Cool", "x-ms-version", "2016-05-31"}, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/s?comp=tier", nil, []string{"x-ms-access-tier", "Cool"}, 404, "BlobNotFound"},
		{"GET", "/cont/b?comp=tags", nil, []string{"x-ms-version", "2019-07-07"}, 400, "InvalidQueryParameterValue"},
		{"GET", "/cont/b?comp=tags&snapshot=2011-03-09T01:42:34.9360000Z", nil, nil, 404, "BlobNotFound"},
		{"GET", "/cont/b?comp=tags&versionid=2011-03-09T01:42:34.9360000Z", nil, nil, 501, "NotImplemented"},
		{"PUT", "/cont/b?comp=tags&snapshot=2011-03-09T01:42:34.9360000Z", []byte("<Tags><TagSet/></Tags>"), nil, 400, "InvalidQueryParameterValue"},
		{"GET", "/cont/none?comp=tags", nil, nil, 404, "BlobNotFound"},
		{"GET", "/cont/b?comp=tags", nil, []string{"x-ms-blob-if-match", `"a"`}, 412, "ConditionNotMet"},
		{"GET", "/cont/b?comp=tags", nil, []string{"x-ms-lease-id", noLease}, 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/b?comp=tags", []byte("<Tags><TagSet/></Tags>"), []string{"x-ms-version", "2019-07-07"}, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/b?comp=tags", []byte("<Tags><TagSet/></Tags>"), []string{"x-ms-blob-if-match", `"a"`}, 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=tags", []byte("<Tags><TagSet/></Tags>"), []string{"x-ms-if-tags", "a='b'"}, 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=tags", []byte("<Tags><TagSet/></Tags>"), []string{"x-ms-lease-id", noLease}, 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/b?comp=tags", []byte("<Tags><TagSet/></Tags>"), []string{"Content-MD5", md5Of(small)}, 400, "Md5Mismatch"},
		{"PUT", "/cont/b?comp=tags", []byte("<Tags><TagSet/></Tags>"), []string{"x-ms-content-crc64", "AAAAAAAAAAA="}, 400, "Crc64Mismatch"},
		{"PUT", "/cont/none?comp=tags", []byte("<Tags><TagSet/></Tags>"), nil, 404, "BlobNotFound"},
		{"PUT", "/cont/s?comp=tags", []byte("<Tags><TagSet/></Tags>"), nil, 404, "BlobNotFound"},
		{"PUT", "/cont/b?comp=tags", nil, nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=tags", []byte("<Tags/>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=tags", []byte("<TagSet/>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=tags", []byte("<Tags><TagSet>x</TagSet></Tags>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=tags", []byte("<Tags><TagSet><Tga/></TagSet></Tags>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=tags", tagSet("<Key>a</Key>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=tags", tagSet("<Key>a</Key><Value><b/></Value>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=tags", tagSet("<Key/><Value>b</Value>"), nil, 400, "EmptyTagName"},
		{"PUT", "/cont/b?comp=tags", tagSet("<Key>a</Key><Value>&amp;</Value>"), nil, 400, "InvalidTag"},
		{"DELETE", "/cont/b", nil, []string{"x-ms-access-tier-if-modified-since", "Fri, 06 Nov 2099 08:49:37 GMT"}, 412, "ConditionNotMet"},
		{"DELETE", "/cont/b", nil, []string{"x-ms-access-tier-if-unmodified-since", "Sun, 06 Nov 1994 08:49:37 GMT"}, 412, "ConditionNotMet"},
		{"DELETE", "/cont/b", nil, []string{"x-ms-access-tier-if-unmodified-since", "Sun, 06 Nov 1994 08:49:37 GMT", "x-ms-version", "2026-02-06"}, 400, "UnsupportedHeader"},
		{"PUT", "/cont/b", small, with("x-ms-access-tier-if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT"), 400, "UnsupportedHeader"},
		{"PUT", "/cont/b", small, with("x-ms-access-tier", "hot"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("x-ms-blob-content-length", "9"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("x-ms-lease-id", noLease), 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/b", large, with("x-ms-lease-id", noLease), 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/b", small, with("x-ms-lease-id", "1"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("x-ms-lease-id", "{"+noLease), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("x-ms-lease-id", "{"+noLease+")"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("x-ms-lease-id", noLease[1:]), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("x-ms-lease-id", strings.Replace(noLease, "c", "g", 1)), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("x-ms-lease-id", "("+noLease+")"), 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/b", small, with("x-ms-lease-id", strings.ToUpper(strings.ReplaceAll(noLease, "-", ""))), 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/none", small, with("x-ms-lease-id", noLease), 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/b", small, with("x-ms-meta-", "v"), 400, "EmptyMetadataKey"},
		{"PUT", "/cont/b", small, with("x-ms-meta-", "v", "x-ms-meta-1", "v"), 400, "EmptyMetadataKey"},
		{"PUT", "/cont/b", small, with("x-ms-meta-a-b", "v"), 400, "InvalidMetadata"},
		{"PUT", "/cont/b", small, with("x-ms-meta-a.b", "v"), 400, "InvalidMetadata"},
		{"PUT", "/cont/b", small, with("x-ms-meta-a-b", "v", "x-ms-version", "2009-09-19"), 400, "InvalidMetadata"},
		{"PUT", "/cont/b", small, with("x-ms-meta-a", repeat("v", 5<<10), "x-ms-meta-b", repeat("v", 5<<10)), 400, "MetadataTooLarge"},
		{"PUT", "/cont/b", small, with("x-ms-meta-1a", "v"), 400, "InvalidMetadata"},
		{"PUT", "/cont/b", small, with("x-ms-meta-a", "ü"), 400, "InvalidMetadata"},
		{"PUT", "/cont/b", small, with("x-ms-meta-a", repeat("v", 8<<10)), 400, "MetadataTooLarge"},
		{"PUT", "/cont/b", small, with("If-Match", `"0x1"`), 412, "ConditionNotMet"},
		{"PUT", "/cont/b", large, with("If-Match", `"0x1"`), 412, "ConditionNotMet"},
		{"PUT", "/cont/b", small, with("If-None-Match", `*`), 409, "BlobAlreadyExists"},
		{"PUT", "/cont/b", small, with("If-Match", `*`, "If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"), 400, "MultipleConditionHeadersNotSupported"},
		{"PUT", "/cont/b", small, with("If-Match", `"a`), 412, "ConditionNotMet"},
		{"PUT", "/cont/b", small, with("If-Match", "Sun, 06 Nov 1994 08:49:37 GMT"), 412, "ConditionNotMet"},
		{"PUT", "/cont/b", small, with("If-Match", "1994-11-06T08:49:37Z"), 412, "ConditionNotMet"},
		{"PUT", "/cont/b", small, with("If-Match", `"a" "b"`), 412, "ConditionNotMet"},
		{"PUT", "/cont/b", small, with("If-Match", `"a",`), 412, "ConditionNotMet"},
		{"PUT", "/cont/b", small, with("If-None-Match", `"a`), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("If-None-Match", "not a date"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("If-None-Match", ", *"), 409, "BlobAlreadyExists"},
		{"PUT", "/cont/b", small, with("If-Unmodified-Since", "null, Sun, 06 Nov 1994 08:49:37 GMT"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("If-Match", `"a","b"`), 400, "MultipleConditionHeadersNotSupported"},
		{"PUT", "/cont/b", small, with("If-None-Match", `*, "a"`), 400, "MultipleConditionHeadersNotSupported"},
		{"PUT", "/cont/b", small, with("If-None-Match", "*", "If-Match", "null", "If-Unmodified-Since", "x"), 409, "BlobAlreadyExists"},
		{"PUT", "/cont/b", small, with("If-Unmodified-Since", "Fri, 06 Nov 2099 08:49:37 GMT, Fri, 06 Nov 2099 08:49:37 GMT"), 400, "InvalidHeaderValue"},
		{"GET", "/cont/b", nil, []string{"If-Match", `"a`}, 412, "ConditionNotMet"},
		{"GET", "/cont/b", nil, []string{"If-Match", "nul"}, 412, "ConditionNotMet"},
		{"GET", "/cont/b", nil, []string{"If-Match", "Sun, 06 Nov 1994 08:49:37 GMT"}, 412, "ConditionNotMet"},
		{"GET", "/cont/b", nil, []string{"If-None-Match", "*"}, 400, "UnsatisfiableCondition"},
		{"GET", "/cont/b", nil, []string{"If-Match", `"a"`, "If-None-Match", `"b"`, "x-ms-version", "2012-02-12"}, 400, "MultipleConditionHeadersNotSupported"},
		{"GET", "/cont/b", nil, []string{"x-ms-range-get-content-md5", "true"}, 400, "InvalidHeaderValue"},
		{"GET", "/cont/b", nil, []string{"Range", "bytes=0-1", "x-ms-range-get-content-md5", "1"}, 400, "InvalidHeaderValue"},
		{"GET", "/cont/b", nil, []string{"Range", "bytes=0-1", "x-ms-range-get-content-crc64", "yes"}, 400, "InvalidHeaderValue"},
		{"GET", "/cont/b", nil, []string{"Range", "bytes=0-1", "x-ms-range-get-content-md5", "true", "x-ms-range-get-content-crc64", "true"}, 400, "InvalidHeaderValue"},
		{"GET", "/cont/b", nil, []string{"Range", "bytes=1-0", "x-ms-range-get-content-md5", "true"}, 400, "InvalidHeaderValue"},
		{"GET", "/cont/long", nil, []string{"Range", "bytes=0-4194304", "x-ms-range-get-content-md5", "true"}, 400, "InvalidHeaderValue"},
		{"GET", "/cont/b", nil, []string{"Range", "bytes=3-"}, 416, "InvalidRange"},
		{"GET", "/cont/b", nil, []string{"x-ms-range", "bytes=99999999999999999999-", "Range", "bytes=0-1"}, 416, "InvalidRange"},
		{"PUT", "/cont/b", small, with("x-ms-version", "2008-99-99"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b", small, with("x-ms-version", ""), 400, "MissingRequiredHeader"},
		{"PUT", "/cont/b?a=%zz", small, block, 400, "InvalidQueryParameterValue"},
		{"PUT", "/none/b", small, block, 404, "ContainerNotFound"},
		{"PUT", "/UPPER/b", small, block, 400, "InvalidResourceName"},
		{"PUT", "/ab/b", small, block, 400, "OutOfRangeInput"},
		{"PUT", "/$other/b", small, block, 400, "InvalidResourceName"},
		{"PUT", "/$root/b", small, block, 404, "ContainerNotFound"},
		{"PUT", "/inroot", small, block, 404, "ContainerNotFound"},
		{"PUT", "/$root/in/root", small, block, 400, "InvalidUri"},
		{"PUT", "/in%2Froot", small, block, 400, "InvalidUri"},
		{"PUT", "/$logs?restype=container", nil, nil, 403, "InsufficientAccountPermissions"},
		{"PUT", "/$blobchangefeed/b", small, block, 403, "InsufficientAccountPermissions"},
		{"DELETE", "/$web/index.html", nil, nil, 404, "ContainerNotFound"},
		{"GET", "/$logs?restype=container&comp=list", nil, nil, 404, "ContainerNotFound"},
		{"GET", "/$logs?restype=container", nil, nil, 404, "ContainerNotFound"},
		{"GET", "/$root?restype=container&comp=acl", nil, nil, 404, "ContainerNotFound"},
		{"GET", "/$web/index.html", nil, nil, 404, "ContainerNotFound"},
		{"GET", "/$blobchangefeed/meta/segments.json?comp=blocklist", nil, nil, 404, "ContainerNotFound"},
		{"GET", "/inroot", nil, nil, 404, "ContainerNotFound"},
		{"PUT", "/cont/", small, block, 400, "InvalidUri"},
		{"PUT", "/cont/%ff", small, block, 400, "InvalidResourceName"},
		{"PUT", "/cont/a%00", small, block, 400, "InvalidResourceName"},
		{"PUT", "/cont/" + repeat("x", 1025), small, block, 400, "OutOfRangeInput"},
		{"PUT", "/cont/a%C2%85", small, block, 400, "InvalidResourceName"},
		{"PUT", "/cont/%7F", small, block, 400, "InvalidResourceName"},
		{"PUT", "/cont/%ED%A0%80", small, block, 400, "InvalidResourceName"},
		{"PUT", "/cont/" + repeat("a/", 254), small, block, 400, "InvalidResourceName"},
		{"PUT", "/cont/" + repeat("%F0%9F%98%80", 513), small, block, 400, "OutOfRangeInput"},
		{"PUT", "/-cont/b", small, block, 400, "InvalidResourceName"},
		{"PUT", "/cont-/b", small, block, 400, "InvalidResourceName"},
		{"PUT", "/con%2Ft/b", small, block, 400, "InvalidResourceName"},
		{"PUT", "/" + repeat("a", 64) + "/b", small, block, 400, "OutOfRangeInput"},
		{"PUT", "//b", small, block, 400, "InvalidUri"},
		{"PUT", "/cont/b?comp=block&blockid=AA==&snapshot=2011-03-09T01:42:34.9360000Z", small, nil, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/b?snapshot=2011-03-09T01:42:34.9360000Z", small, block, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/b?comp=snapshot&snapshot=2011-03-09T01:42:34.9360000Z", nil, nil, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/none?comp=snapshot", nil, nil, 404, "BlobNotFound"},
		{"PUT", "/cont/s?comp=snapshot", nil, nil, 404, "BlobNotFound"},
		{"PUT", "/none/b?comp=snapshot", nil, nil, 404, "ContainerNotFound"},
		{"PUT", "/cont/b?comp=snapshot", nil, []string{"If-Match", "x"}, 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=snapshot", nil, []string{"x-ms-meta-", "v"}, 400, "EmptyMetadataKey"},
		{"PUT", "/cont/b?comp=snapshot", nil, []string{"x-ms-lease-id", noLease}, 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/b?comp=block&blockid=AA==", small, []string{"x-ms-lease-id", "1"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=block&blockid=AA%0A==", small, nil, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/b?comp=block&blockid=AA", small, nil, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/b?comp=block&blockid=" + repeat("AAAA", 21) + "AAA=", small, nil, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/s?comp=block&blockid=AAAA", small, nil, 400, "InvalidBlobOrBlock"},
		{"PUT", "/cont/s?comp=block&blockid=AAAA", large, nil, 400, "InvalidBlobOrBlock"},
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
		{"PUT", "/cont/b?comp=block&blockid=AA==", large, []string{"x-ms-lease-id", noLease}, 412, "LeaseNotPresentWithBlobOperation"},
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
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList><Latest>AA==</Latest>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList><Latest>AA==</Committed></BlockList>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList><BlockList/></BlockList>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>x"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList><Latest>\xff</Latest></BlockList>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList><Latest>&id;</Latest></BlockList>"), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte(`<?xml version="1.0" encoding="utf-16"?><BlockList/>`), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte(`{"BlockList":[]}`), nil, 400, "InvalidXmlDocument"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList><Latest/></BlockList>"), nil, 400, "InvalidBlockList"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList><Latest>" + repeat("AAAA", 22) + "</Latest></BlockList>"), nil, 400, "InvalidBlockList"},
		{"PUT", "/cont/s?comp=blocklist", []byte("<BlockList><Latest>YWE=</Latest><Latest>AAAA</Latest></BlockList>"), nil, 400, "InvalidBlobOrBlock"},
		{"PUT", "/cont/s?comp=blocklist", []byte("<BlockList><Latest>YWE=</Latest><Uncommitted>YWE=</Uncommitted></BlockList>"), nil, 400, "InvalidBlockList"},
		{"PUT", "/cont/s?comp=blocklist", []byte("<BlockList><Committed>YWE=</Committed></BlockList>"), nil, 400, "InvalidBlockList"},
		{"PUT", "/cont/s?comp=blocklist", []byte("<BlockList><Latest>YWE=</Latest><Latest>YWI=</Latest></BlockList>"), nil, 400, "InvalidBlockList"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"Content-MD5", "x"}, 400, "InvalidMd5"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"x-ms-content-crc64", "AAAA"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"x-ms-meta-1a", "v"}, 400, "InvalidMetadata"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"x-ms-access-tier", "Warm"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"x-ms-lease-id", "1"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"Content-MD5", md5Of(small)}, 400, "Md5Mismatch"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"x-ms-blob-content-md5", "x"}, 400, "InvalidMd5"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"If-None-Match", "*"}, 409, "BlobAlreadyExists"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"If-Match", `"0x1"`}, 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList/>"), []string{"x-ms-lease-id", noLease}, 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/none/b?comp=blocklist", []byte("<BlockList/>"), nil, 404, "ContainerNotFound"},
		{"PUT", "/cont/b?comp=blocklist", []byte("<BlockList>" + repeat("<Latest>AA==</Latest>", 50_001) + "</BlockList>"), nil, 400, "BlockListTooLong"},
		{"PUT", "/cont/b?comp=blocklist", []byte(repeat(" ", 8<<20+1)), nil, 413, "RequestBodyTooLarge"},
		{"GET", "/cont/b?comp=blocklist&blocklisttype=none", nil, nil, 400, "InvalidQueryParameterValue"},
		{"GET", "/cont/b?comp=blocklist", nil, []string{"x-ms-lease-id", noLease}, 412, "LeaseNotPresentWithBlobOperation"},
		{"GET", "/cont/none?comp=blocklist", nil, nil, 404, "BlobNotFound"},
		{"PUT", "/cont/b?comp=lease", nil, nil, 400, "MissingRequiredHeader"},
		{"PUT", "/cont/b?comp=lease", nil, []string{"x-ms-lease-action", "hold"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=lease", nil, []string{"x-ms-lease-action", "acquire"}, 400, "MissingRequiredHeader"},
		{"PUT", "/cont/b?comp=lease", nil, acquired("14"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=lease", nil, acquired("61"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=lease", nil, acquired("-2"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=lease", nil, acquired("4294967311"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=lease", nil, acquired("15", "x-ms-proposed-lease-id", "k"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=lease", nil, acquired("15", "x-ms-version", "2011-08-18"), 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=lease", nil, []string{"x-ms-lease-action", "renew"}, 400, "MissingRequiredHeader"},
		{"PUT", "/cont/b?comp=lease", nil, []string{"x-ms-lease-action", "renew", "x-ms-lease-id", "k"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=lease", nil, []string{"x-ms-lease-action", "renew", "x-ms-lease-id", noLease}, 409, "LeaseIdMismatchWithLeaseOperation"},
		{"PUT", "/cont/b?comp=lease", nil, []string{"x-ms-lease-action", "change", "x-ms-lease-id", noLease}, 400, "MissingRequiredHeader"},
		{"PUT", "/cont/b?comp=lease", nil, []string{"x-ms-lease-action", "change", "x-ms-version", "2011-08-18"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=lease", nil, []string{"x-ms-lease-action", "break"}, 409, "LeaseNotPresentWithLeaseOperation"},
		{"PUT", "/cont/b?comp=lease", nil, []string{"x-ms-lease-action", "break", "x-ms-lease-break-period", "61"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=lease", nil, acquired("15", "If-Match", "x"), 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=lease&snapshot=2011-03-09T01:42:34.9360000Z", nil, acquired("15"), 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/none?comp=lease", nil, acquired("15"), 404, "BlobNotFound"},
		{"PUT", "/none/b?comp=lease", nil, acquired("15"), 404, "ContainerNotFound"},
		{"PUT", "/none?restype=container&comp=lease", nil, acquired("15"), 404, "ContainerNotFound"},
		{"PUT", "/cont?restype=container&comp=lease", nil, acquired("15", "If-Match", "*"), 400, "ConditionHeadersNotSupported"},
		{"PUT", "/cont?restype=container&comp=lease", nil, acquired("15", "x-ms-version", "2011-08-18"), 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/b?comp=immutabilityPolicies", nil, nil, 501, "NotImplemented"},
		{"PUT", "/cont/b?comp=nothing", small, block, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/b?restype=share", small, block, 400, "InvalidQueryParameterValue"},
		{"POST", "/cont/b", small, block, 405, "UnsupportedHttpVerb"},
		{"PATCH", "/cont/b?comp=metadata", small, block, 405, "UnsupportedHttpVerb"},
		{"GET", "/cont/b?comp=block", nil, nil, 405, "UnsupportedHttpVerb"},
		{"FOO", "/cont/b", small, block, 400, "InvalidHttpVerb"},
		{"put", "/cont/b", small, block, 400, "InvalidHttpVerb"},
		{"HEAD", "/?comp=list", nil, nil, 405, "UnsupportedHttpVerb"},
		{"PUT", "/?comp=list", nil, nil, 405, "UnsupportedHttpVerb"},
		{"POST", "/cont?restype=container", nil, nil, 405, "UnsupportedHttpVerb"},
		{"DELETE", "/cont/b?comp=metadata", nil, nil, 405, "UnsupportedHttpVerb"},
		{"MERGE", "/cont/b", small, block, 405, "UnsupportedHttpVerb"},
		{"GET", "/cont?comp=list", nil, nil, 400, "InvalidQueryParameterValue"},
		{"GET", "/?restype=container", nil, nil, 400, "InvalidQueryParameterValue"},
		{"GET", "/", nil, nil, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/b?restype=container", small, block, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont?restype=container&comp=nothing", nil, nil, 400, "InvalidQueryParameterValue"},
		{"GET", "/cont/b?comp=acl", nil, nil, 400, "InvalidQueryParameterValue"},
		{"GET", "/cont?restype=service&comp=properties", nil, nil, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/b?comp=metadata", nil, []string{"x-ms-meta-1a", "v"}, 400, "InvalidMetadata"},
		{"PUT", "/cont/b?comp=metadata", nil, []string{"x-ms-meta-a", repeat("v", 8<<10)}, 400, "MetadataTooLarge"},
		{"PUT", "/cont/b?comp=metadata", nil, []string{"If-Match", `"0x1"`}, 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=metadata", nil, []string{"If-None-Match", "*"}, 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=metadata", nil, []string{"x-ms-lease-id", noLease}, 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/b?comp=metadata", nil, []string{"x-ms-encryption-key", "secret"}, 400, "UnsupportedHeader"},
		{"PUT", "/cont/b?comp=metadata&snapshot=2011-03-09T01:42:34.9360000Z", nil, nil, 400, "InvalidQueryParameterValue"},
		{"PUT", "/cont/none?comp=metadata", nil, []string{"If-Match", `"0x1"`}, 404, "BlobNotFound"},
		{"PUT", "/none/b?comp=metadata", nil, nil, 404, "ContainerNotFound"},
		{"PUT", "/cont/b?comp=properties", nil, []string{"x-ms-blob-content-md5", "x"}, 400, "InvalidMd5"},
		{"PUT", "/cont/b?comp=properties", nil, []string{"x-ms-blob-content-length", "512"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=properties", nil, []string{"x-ms-sequence-number-action", "max"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=properties", nil, []string{"If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"}, 412, "ConditionNotMet"},
		{"PUT", "/cont/b?comp=properties", nil, []string{"x-ms-lease-id", noLease}, 412, "LeaseNotPresentWithBlobOperation"},
		{"PUT", "/cont/none?comp=properties", nil, nil, 404, "BlobNotFound"},
		{"GET", "/cont/none?comp=metadata", nil, nil, 404, "BlobNotFound"},
		{"PUT", "/cont?restype=container&comp=metadata", nil, []string{"x-ms-meta-", "v"}, 400, "EmptyMetadataKey"},
		{"PUT", "/cont?restype=container&comp=metadata", nil, []string{"If-Match", "*"}, 400, "ConditionHeadersNotSupported"},
		{"PUT", "/cont?restype=container&comp=metadata", nil, []string{"If-Modified-Since", "Fri, 06 Nov 2099 08:49:37 GMT"}, 412, "ConditionNotMet"},
		{"PUT", "/cont?restype=container&comp=metadata", nil, []string{"x-ms-lease-id", noLease}, 412, "LeaseNotPresentWithContainerOperation"},
		{"PUT", "/none?restype=container&comp=metadata", nil, nil, 404, "ContainerNotFound"},
		{"GET", "/cont/b?snapshot=2011-03-09T01:42:34.9360000Z", nil, nil, 404, "BlobNotFound"},
		{"HEAD", "/cont/b?snapshot=2011-03-09T01:42:34.9360000Z", nil, nil, 404, "BlobNotFound"},
		{"GET", "/cont/b?comp=blocklist&snapshot=2011-03-09T01:42:34.9360000Z", nil, nil, 404, "BlobNotFound"},
		{"GET", "/cont/b?comp=metadata&snapshot=2011-03-09T01:42:34.9360000Z", nil, nil, 404, "BlobNotFound"},
		{"DELETE", "/cont/b?snapshot=2011-03-09T01:42:34.9360000Z", nil, nil, 404, "BlobNotFound"},
		{"DELETE", "/cont/b?snapshot=2011-03-09T01:42:34.9360000Z", nil, []string{"x-ms-delete-snapshots", "only"}, 400, "InvalidQueryParameterValue"},
		{"GET", "/cont/b?snapshot=", nil, nil, 400, "InvalidQueryParameterValue"},
		{"GET", "/cont/b?snapshot=2011-03-09T01:42:34.936Z", nil, nil, 400, "InvalidQueryParameterValue"},
		{"GET", "/cont/b?snapshot=1800-03-09T01:42:34.9360000Z", nil, nil, 400, "InvalidQueryParameterValue"},
		{"GET", "/cont/b?snapshot=2011-13-09T01:42:34.9360000Z", nil, nil, 400, "InvalidQueryParameterValue"},
		{"GET", "/cont/b?versionid=2011-03-09T01:42:34.9360000Z", nil, nil, 501, "NotImplemented"},
		{"GET", "/cont/b", nil, []string{"x-ms-encryption-key", "k"}, 400, "UnsupportedHeader"},
		{"GET", "/cont/b", nil, []string{"x-ms-lease-id", noLease}, 412, "LeaseNotPresentWithBlobOperation"},
		{"GET", "/cont/none", nil, []string{"x-ms-lease-id", noLease}, 404, "BlobNotFound"},
		{"GET", "/none/b", nil, nil, 404, "ContainerNotFound"},
		{"GET", "/cont?restype=container&comp=block", nil, nil, 400, "InvalidQueryParameterValue"},
		{"POST", "/?restype=container&comp=batch", small, nil, 400, "InvalidInput"},
		{"POST", "/?comp=batch", small, nil, 400, "InvalidInput"},
		{"POST", "/?comp=batch", small, []string{"x-ms-version", "2018-03-28"}, 400, "InvalidQueryParameterValue"},
		{"POST", "/cont?restype=container&comp=batch", small, []string{"x-ms-version", "2019-12-12"}, 400, "InvalidQueryParameterValue"},
		{"POST", "/cont?restype=container&comp=batch", small, []string{"If-Match", "*"}, 400, "ConditionHeadersNotSupported"},
		{"GET", "/?restype=container&comp=list", nil, nil, 400, "InvalidQueryParameterValue"},
		{"GET", "/?comp=nothing", nil, nil, 400, "InvalidQueryParameterValue"},
		{"PUT", "/?restype=account&comp=properties", small, nil, 405, "UnsupportedHttpVerb"},
		{"DELETE", "/cont/b", nil, []string{"x-ms-delete-snapshots", "x"}, 400, "InvalidHeaderValue"},
		{"DELETE", "/cont/b", nil, []string{"x-ms-lease-id", noLease}, 412, "LeaseNotPresentWithBlobOperation"},
		{"DELETE", "/cont/b", nil, []string{"If-Match", "x"}, 412, "ConditionNotMet"},
		{"DELETE", "/cont/none", nil, []string{"If-Match", "x"}, 404, "BlobNotFound"},
		{"DELETE", "/cont/b", nil, []string{"x-ms-lease-id", "k"}, 400, "InvalidHeaderValue"},
		{"GET", "/cont/b", nil, []string{"x-ms-lease-id", "k"}, 400, "InvalidHeaderValue"},
		{"GET", "/cont/b?comp=blocklist", nil, []string{"x-ms-lease-id", "k"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=metadata", nil, []string{"x-ms-lease-id", "k"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=properties", nil, []string{"x-ms-lease-id", "k"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=properties", nil, []string{"x-ms-blob-sequence-number", "1"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont/b?comp=properties", nil, []string{"x-ms-blob-content-md5", "no hash"}, 400, "InvalidMd5"},
		{"GET", "/cont?restype=container", nil, []string{"x-ms-lease-id", "k"}, 400, "InvalidHeaderValue"},
		{"DELETE", "/cont?restype=container", nil, []string{"x-ms-lease-id", "k"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont2?restype=container", nil, []string{"x-ms-blob-public-access", "all"}, 400, "InvalidHeaderValue"},
		{"PUT", "/cont2?restype=container", nil, []string{"x-ms-default-encryption-scope", "s"}, 400, "UnsupportedHeader"},
		{"PUT", "/cont2?restype=container", nil, []string{"If-None-Match", "*"}, 400, "ConditionHeadersNotSupported"},
		{"PUT", "/Cont2?restype=container", nil, nil, 400, "InvalidResourceName"},
		{"PUT", "/c2?restype=container", nil, nil, 400, "OutOfRangeInput"},
		{"PUT", "/cont?restype=container", nil, nil, 409, "ContainerAlreadyExists"},
		{"PUT", "/cont2?restype=container", nil, []string{"x-ms-blob-public-access", "blob"}, 409, "PublicAccessNotPermitted"},
		{"PUT", "/cont2?restype=container", nil, []string{"x-ms-blob-public-access", "container"}, 409, "PublicAccessNotPermitted"},
		{"PUT", "/cont2?restype=container", nil, []string{"x-ms-meta-1", "x"}, 400, "InvalidMetadata"},
		{"PUT", "/cont2?restype=container", nil, []string{"x-ms-blob-public-access", "blob", "x-ms-meta-1", "x"}, 400, "InvalidMetadata"},
		{"PUT", "/Cont2?restype=container", nil, []string{"x-ms-blob-public-access", "blob"}, 400, "InvalidResourceName"},
		{"PUT", "/cont2?restype=container", nil, []string{"x-ms-blob-public-access", "all", "x-ms-meta-1", "x"}, 400, "InvalidHeaderValue"},
		{"PUT", "/a--b?restype=container", nil, nil, 400, "InvalidResourceName"},
		{"DELETE", "/cont?restype=container", nil, []string{"If-Match", "*"}, 400, "ConditionHeadersNotSupported"},
		{"DELETE", "/cont?restype=container", nil, []string{"If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"}, 412, "ConditionNotMet"},
		{"DELETE", "/cont?restype=container", nil, []string{"x-ms-lease-id", noLease}, 412, "LeaseNotPresentWithContainerOperation"},
		{"GET", "/none?restype=container", nil, nil, 404, "ContainerNotFound"},
	} {
		before := r.state()
		a := r.do(c.method, c.path, c.body, c.header...)
		require.Equal(t, c.status, a.status, "%s %.200s %v: %s", c.method, c.path, c.header, a.body)
		require.Equal(t, c.code, a.code(t), "%s %.200s %v", c.method, c.path, c.header)
		require.NotContains(t, string(a.body), "secret")
		for _, name := range detailsOf(c.code) {
			require.Contains(t, string(a.body), "<"+name+">", "%s %.200s %v", c.method, c.path, c.header)
		}
		require.Equal(t, before, r.state(), "%s %.200s %v", c.method, c.path, c.header)
	}
	r.requireBlob("/cont/b", []byte("old"))
	require.Equal(t, []string{"b", "long", "s"}, r.list(listPath+"&include=uncommittedblobs").names(), "a refused block stays")
}

// detailsOf are the elements beside the message of an error (protocol/blob.md 2.4).
func detailsOf(code string) []string {
	switch code {
	case "InvalidHeaderValue":
		return []string{"HeaderName", "HeaderValue"}
	case "MissingRequiredHeader", "UnsupportedHeader":
		return []string{"HeaderName"}
	case "InvalidQueryParameterValue":
		return []string{"QueryParameterName", "QueryParameterValue", "Reason"}
	case "MissingRequiredQueryParameter":
		return []string{"QueryParameterName"}
	case "RequestBodyTooLarge":
		return []string{"MaxLimit"}
	case "Md5Mismatch":
		return []string{"UserSpecifiedMd5", "ServerCalculatedMd5"}
	case "Crc64Mismatch":
		return []string{"UserSpecifiedCrc64", "ServerCalculatedCrc64"}
	}
	return nil
}

// A body that is not what its headers say changes nothing, inline or in chunks: shorter
// than its Content-Length, without one (411), or stalled until the request's time ends.
//
// Capability: Clients: Bad input gets the protocol's error and changes nothing.
func TestBrokenBodies(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.put("/cont/b", []byte("old"))
	before := r.state()
	line := func(request string, closeWrite bool) string {
		t.Helper()
		status, _, _ := strings.Cut(apitest.Raw(t, r.url, request, closeWrite), "\r\n")
		require.Equal(t, before, r.state(), "%.300s", request)
		return status
	}
	head := "PUT /acct/cont/b HTTP/1.1\r\nHost: x\r\nx-ms-version: " + testVersion + "\r\nx-ms-blob-type: BlockBlob\r\nConnection: close\r\n"
	block := strings.Replace(head, "/b HTTP", "/b?comp=block&blockid=AA== HTTP", 1)
	list := strings.Replace(head, "/b HTTP", "/b?comp=blocklist HTTP", 1)
	limited := func(request string) string {
		return strings.NewReplacer("/b HTTP", "/b?limit=50ms HTTP", "?comp", "?limit=50ms&comp").Replace(request)
	}
	for name, request := range map[string]string{"blob": head, "block": block, "list": list} {
		body := "<BlockList/>"
		require.Contains(t, line(request+"Content-Length: 100\r\n\r\n"+body, true), "400", name)
		require.Contains(t, line(request+"Content-Length: 100\r\n\r\n", true), "400", name)
		require.Contains(t, line(limited(request)+"Content-Length: 100\r\n\r\n"+body, false), "500", name)
		require.Contains(t, line(request+"\r\n", false), "411", name)
		require.Contains(t, line(request+"Transfer-Encoding: chunked\r\n\r\nc\r\n"+body+"\r\n0\r\n\r\n", false), "411", name)
		// What follows is HTTP's own.
		require.Contains(t, line(request+"Content-Length: -1\r\n\r\n"+body, false), "400 Bad Request", name)
		require.Contains(t, line(request+"Content-Length: ten\r\n\r\n"+body, false), "400 Bad Request", name)
		require.Contains(t, line(request+"Content-Length: 12\r\nContent-Length: 11\r\n\r\n"+body, false), "400 Bad Request", name)
		require.Contains(t, line(request+"Transfer-Encoding: gzip\r\n\r\n"+body, false), "501", name)
	}
	for _, request := range []string{head, block} {
		puts, abandoned := r.payload.puts.Load(), r.abandoned.Load()
		require.Contains(t, line(request+"Content-Length: 3000000\r\n\r\n"+repeat("x", 2_000_000), true), "400")
		require.Equal(t, puts+1, r.payload.puts.Load(), "the chunk that came whole stays, and nothing names it")
		require.Equal(t, abandoned+1<<20, r.abandoned.Load(), "it is counted")
	}
	require.Contains(t, line(list+"Content-Length: 100\r\n\r\n<BlockList>"+repeat(" ", 50), true), "400")
	// A body longer than its length is cut: the hash of the whole shows it.
	require.Contains(t, line(head+"Content-MD5: "+md5Of([]byte("new body"))+"\r\nContent-Length: 3\r\n\r\nnew body", false), "400")
	r.requireBlob("/cont/b", []byte("old"))
	require.Contains(t, apitest.Raw(t, r.url, head+"Expect: 100-continue\r\nContent-Length: 3\r\n\r\nnew", false), "100")
	r.requireBlob("/cont/b", []byte("new"))
	require.NotEqual(t, before, r.state(), "what changes something shows")
}

// A range that is none is as if it were not there (protocol/blob.md 8.1), in x-ms-range even
// where Range is good; one that ends before it begins, and several, are none.
func TestIgnoredRanges(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.put("/cont/b", []byte("123456789"))
	for _, text := range []string{"bytes=-2", "bytes=2-1", "bytes=0-1,3-4", "bytes=a-b", "bytes=", "bytes", "items=0-1", "bytes=0x0-1", "bytes=1 -2", "Bytes=0-1", "0-1"} {
		for _, header := range [][]string{{"Range", text}, {"x-ms-range", text}, {"x-ms-range", text, "Range", "bytes=0-1"}} {
			a := r.get("/cont/b", header...)
			require.Equal(t, http.StatusOK, a.status, "%v", header)
			require.Equal(t, "123456789", string(a.body), "%v", header)
			require.Empty(t, a.header.Get("Content-Range"))
		}
	}
	a := r.get("/cont/b", "Range", "bytes=9-")
	r.requireCode(a, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
	require.Equal(t, "bytes */9", a.header.Get("Content-Range"))
}

// A header that came twice is refused, where it would have to be chosen from.
func TestRepeatedHeaders(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	before := r.state()
	for _, header := range []string{"x-ms-blob-type: BlockBlob", "x-ms-access-tier: Hot", "Content-MD5: " + md5Of(nil), "x-ms-lease-id: " + noLease, "x-ms-version: " + testVersion} {
		got := apitest.Raw(t, r.url, "PUT /acct/cont/b HTTP/1.1\r\nHost: x\r\nx-ms-version: "+testVersion+
			"\r\nx-ms-blob-type: BlockBlob\r\n"+header+"\r\n"+header+"\r\nContent-Length: 0\r\n\r\n", true)
		name, _, _ := strings.Cut(header, ":")
		require.Contains(t, got, "<HeaderName>"+strings.ToLower(name)+"</HeaderName>")
		require.Equal(t, before, r.state(), header)
	}
}

// Metadata of one name in two cases is refused (protocol/blob.md 19.2). Before 2009-09-19 a
// name need not be an identifier, and is listed as what no element can be called.
func TestMetadataNames(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	before := r.state()
	require.Contains(t, apitest.Raw(t, r.url, "PUT /acct/cont/b HTTP/1.1\r\nHost: x\r\nx-ms-version: "+testVersion+
		"\r\nx-ms-blob-type: BlockBlob\r\nx-ms-meta-a: 1\r\nx-ms-meta-A: 2\r\nContent-Length: 0\r\n\r\n", true), "InvalidMetadata")
	require.Equal(t, before, r.state())
	require.Equal(t, http.StatusCreated, r.put("/cont/b", nil, "x-ms-version", "2009-07-17", "x-ms-meta-a-b", "v<").status)
	require.Equal(t, "v<", r.get("/cont/b").header.Get("x-ms-meta-a-b"))
	require.Contains(t, string(r.get(listPath+"&include=metadata").body), "<Metadata><x-ms-invalid-name>a-b</x-ms-invalid-name></Metadata>")
}

// An account that is addressed as a container learns that its restype is wrong, whatever
// the comp.
func TestAccountAsContainer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, path := range []string{"/?restype=container", "/?restype=container&comp=list", "/?comp=metadata&restype=Container"} {
		a := r.do(http.MethodGet, path, nil)
		r.requireCode(a, http.StatusBadRequest, "InvalidQueryParameterValue")
		require.Contains(t, string(a.body), "<QueryParameterName>restype</QueryParameterName><QueryParameterValue>container<", path)
	}
}
