package blobs

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fault is a header, or a parameter, that makes a request a bad one.
type fault struct{ name, value, code string }

// Every operation finds what is wrong with a request in one order (protocol/blob.md 2.6): what
// is not built, what it alone has, then the groups of headers, then the body, then the names.
// Each request has all faults of an operation that are left, and is answered with the first.
//
// Capability: The house: A request is read once.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.BodyBytesMax = 10 })
	var (
		snapshot   = fault{"?snapshot", "x", "InvalidQueryParameterValue"}
		unbuilt    = fault{"x-ms-encryption-key", "k", "UnsupportedHeader"}
		refused    = fault{"If-Match", "*", "ConditionHeadersNotSupported"}
		lease      = fault{"x-ms-lease-id", "x", "InvalidHeaderValue"}
		date       = fault{"If-Modified-Since", "null, Sun, 06 Nov 1994 08:49:37 GMT", "InvalidHeaderValue"}
		tag        = fault{"If-None-Match", "*", "UnsatisfiableCondition"}
		ifTags     = fault{"x-ms-if-tags", "x", "InvalidHeaderValue"}
		tags       = fault{"x-ms-tags", "x", "InvalidTag"}
		tier       = fault{"x-ms-access-tier", "x", "InvalidHeaderValue"}
		metadata   = fault{"x-ms-meta-", "v", "EmptyMetadataKey"}
		storedMD5  = fault{"x-ms-blob-content-md5", "x", "InvalidMd5"}
		crc        = fault{"x-ms-content-crc64", "x", "InvalidHeaderValue"}
		contentMD5 = fault{"Content-MD5", "x", "InvalidMd5"}
		long       = fault{"", repeat("x", 11), "RequestBodyTooLarge"}
		none       = fault{"", "", "ContainerNotFound"}
	)
	bodies := map[string]string{"PUT /none/b": "x", "PUT /none/b?comp=block": "x", "PUT /none/b?comp=appendblock": "x", "PUT /none/b?comp=blocklist": "<BlockList/>", "PUT /none/b?comp=tags": "<Tags><TagSet/></Tags>"}
	for request, faults := range map[string][]fault{
		"PUT /none/b": {
			snapshot, unbuilt,
			{"x-ms-blob-type", "x", "InvalidHeaderValue"},
			{"x-ms-blob-content-length", "1", "InvalidHeaderValue"},
			lease, date, ifTags, tier, metadata, tags, crc, storedMD5, long, none,
		},
		"PUT /none/b?comp=block": {
			snapshot, unbuilt, {"?blockid", "x", "InvalidQueryParameterValue"}, lease, contentMD5, long, none,
		},
		"PUT /none/b?comp=blocklist": {
			snapshot, unbuilt, lease, date, ifTags, tier, metadata, tags, storedMD5, contentMD5, {"", "x", "InvalidXmlDocument"}, none,
		},
		"PUT /none/b?comp=appendblock": {
			snapshot, unbuilt, lease, date, ifTags,
			{"x-ms-blob-condition-appendpos", "x", "InvalidHeaderValue"},
			{"x-ms-blob-condition-maxsize", "x", "InvalidHeaderValue"},
			contentMD5, long, none,
		},
		"PUT /none/b?comp=copy": {
			snapshot,
			{"x-ms-copy-source-authorization", "x", "UnsupportedHeader"},
			unbuilt,
			{"x-ms-seal-blob", "x", "InvalidHeaderValue"},
			{"x-ms-rehydrate-priority", "x", "InvalidHeaderValue"},
			{"x-ms-source-lease-id", "x", "UnsupportedHeader"},
			{"x-ms-source-if-tags", "x", "InvalidHeaderValue"},
			lease, date, ifTags,
			{"x-ms-copy-source", "", "MissingRequiredHeader"},
			{"x-ms-source-if-modified-since", date.value, "InvalidHeaderValue"},
			tier, metadata, tags, none,
		},
		"PUT /none/b?comp=copy&": {snapshot, unbuilt, {"?copyid", "x", "InvalidQueryParameterValue"}, lease, none},
		"PUT /none/b?comp=appendblock&": {
			snapshot,
			{"x-ms-source-encryption-key", "x", "UnsupportedHeader"},
			unbuilt,
			{"x-ms-source-range", "x", "InvalidHeaderValue"},
			{"x-ms-source-content-md5", "x", "InvalidHeaderValue"},
			{"x-ms-source-content-crc64", "x", "InvalidHeaderValue"},
			lease, date, ifTags,
			{"x-ms-source-if-modified-since", date.value, "InvalidHeaderValue"},
			{"x-ms-blob-condition-appendpos", "x", "InvalidHeaderValue"},
			{"x-ms-blob-condition-maxsize", "x", "InvalidHeaderValue"},
			none,
		},
		"PUT /none/b?&": {
			snapshot,
			{"x-ms-source-encryption-key", "x", "UnsupportedHeader"},
			unbuilt,
			{"x-ms-copy-source-blob-properties", "x", "InvalidHeaderValue"},
			{"x-ms-source-content-md5", "x", "InvalidHeaderValue"},
			{"x-ms-copy-source-tag-option", "x", "InvalidHeaderValue"},
			{"x-ms-source-if-tags", "x", "InvalidHeaderValue"},
			lease, date, ifTags,
			{"x-ms-source-if-modified-since", date.value, "InvalidHeaderValue"},
			tier, metadata, tags, storedMD5, none,
		},
		"PUT /none/b?comp=seal": {
			snapshot, unbuilt, lease, date, {"x-ms-blob-condition-appendpos", "x", "InvalidHeaderValue"}, none,
		},
		"PUT /none/b?comp=metadata": {snapshot, unbuilt, lease, date, ifTags, metadata, none},
		"PUT /none/b?comp=properties": {
			snapshot, unbuilt, {"x-ms-sequence-number-action", "max", "InvalidHeaderValue"}, lease, date, ifTags, storedMD5, none,
		},
		"PUT /none/b?comp=snapshot": {snapshot, unbuilt, lease, date, ifTags, metadata, none},
		"DELETE /none/b": {
			snapshot, unbuilt,
			{"x-ms-delete-snapshots", "x", "InvalidHeaderValue"},
			{"x-ms-access-tier-if-modified-since", date.value, "InvalidHeaderValue"},
			lease, date, ifTags, none,
		},
		"PUT /none/b?comp=tier": {snapshot, unbuilt, {"x-ms-rehydrate-priority", "x", "InvalidHeaderValue"}, lease, ifTags, tier, none},
		"GET /none/b?comp=tags": {
			snapshot, unbuilt, lease, {"x-ms-blob-if-none-match", "*", "UnsatisfiableCondition"}, ifTags, none,
		},
		"PUT /none/b?comp=tags": {
			snapshot, unbuilt, lease,
			{"x-ms-blob-if-match", `"a","b"`, "MultipleConditionHeadersNotSupported"},
			ifTags, contentMD5,
			{"", "x", "InvalidXmlDocument"},
			none,
		},
		"GET /none/b": {
			snapshot, unbuilt, {"x-ms-range-get-content-md5", "true", "InvalidHeaderValue"}, lease, tag, ifTags, none,
		},
		"GET /none/b?comp=metadata":  {snapshot, unbuilt, lease, tag, ifTags, none},
		"GET /none/b?comp=blocklist": {snapshot, unbuilt, {"?blocklisttype", "x", "InvalidQueryParameterValue"}, lease, ifTags, none},
		"PUT /none?restype=container": {
			refused, {"x-ms-default-encryption-scope", "s", "UnsupportedHeader"}, {"x-ms-blob-public-access", "x", "InvalidHeaderValue"}, metadata,
		},
		"PUT /none?restype=container&comp=metadata": {refused, lease, date, metadata, none},
		"DELETE /none?restype=container":            {refused, lease, date, none},
		"GET /none?restype=container":               {lease, none},
	} {
		for len(faults) > 0 {
			method, path, _ := strings.Cut(request, " ")
			path, query, _ := strings.Cut(path, "?")
			sent := map[string]string{"x-ms-blob-type": "BlockBlob"}
			switch {
			case strings.HasSuffix(request, "=tier"):
				sent["x-ms-access-tier"] = "Cool"
			case strings.HasSuffix(request, "=copy&"):
				sent["x-ms-copy-action"], sent["x-ms-blob-type"] = "abort", ""
			case strings.HasSuffix(request, "=copy"), strings.HasSuffix(request, "&"):
				sent["x-ms-copy-source"] = "http://localhost/acct/none/b"
			}
			body := bodies[request]
			for i := len(faults) - 1; i >= 0; i-- {
				switch f := faults[i]; {
				case f.name == "" && f.value != "":
					body = f.value
				case strings.HasPrefix(f.name, "?"):
					query = f.name[1:] + "=" + f.value + "&" + query
				case f.name != "":
					sent[f.name] = f.value
				}
			}
			if !strings.Contains(query, "copyid=") {
				query += "&copyid=" + noLease
			}
			if !strings.Contains(query, "blockid=") {
				query += "&blockid=AAAA"
			}
			var header []string
			for name, value := range sent {
				header = append(header, name, value)
			}
			a := r.do(method, path+"?"+query, []byte(body), header...)
			require.Equal(t, faults[0].code, a.code(t), "%s with %v: %s", request, faults, a.body)
			if faults[0].code == "InvalidHeaderValue" {
				require.Contains(t, strings.ToLower(string(a.body)), "<headername>"+strings.ToLower(faults[0].name)+"<", request)
			}
			faults = faults[1:]
		}
	}
}

// A header that the row of an operation does not take is not read, be it well-formed or not.
func TestUntakenHeadersAreNotRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	bad := []string{"If-Match", `"a","b"`, "If-Modified-Since", "x", "x-ms-access-tier", "x", "x-ms-blob-content-md5", "x"}
	conditions := bad[:4]
	require.Equal(t, http.StatusCreated, r.put("/cont/b", nil).status)
	require.Equal(t, http.StatusCreated, r.do(http.MethodPut, "/cont/b?comp=block&blockid=AAAA", []byte("x"), append(bad, "x-ms-meta-", "v")...).status)
	require.Equal(t, http.StatusOK, r.get("/cont/b?comp=blocklist", bad...).status)
	require.Equal(t, http.StatusOK, r.get(listPath, append(bad, "x-ms-lease-id", "x")...).status)
	require.Equal(t, http.StatusOK, r.get("/cont?restype=container", conditions...).status)
	require.Equal(t, http.StatusOK, r.get("/cont/b?comp=metadata", append(bad[4:], "x-ms-meta-", "v", "Content-MD5", "x")...).status)
	require.Equal(t, http.StatusCreated, r.do(http.MethodPut, "/cont2?restype=container", nil, "x-ms-lease-id", "x", "Content-MD5", "x").status)
}
