package blobs

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/apitest"
	"antipode/stamp/extent"
)

// create makes an append blob.
func (r *rig) create(path string, header ...string) answer {
	r.t.Helper()
	return r.do(http.MethodPut, path, nil, append([]string{"x-ms-blob-type", "AppendBlob"}, header...)...)
}

// append appends a block.
func (r *rig) append(path string, body []byte, header ...string) answer {
	r.t.Helper()
	return r.do(http.MethodPut, path+"?comp=appendblock", body, header...)
}

// Blocks inline and in chunks are read as they were appended, whole and by ranges that cross them, with the hash of the range;
// every append answers where it begins, and a read how many there are.
//
// Capability: Blobs: Append blobs.
func TestAppendBlocks(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, http.StatusCreated, r.create("/cont/a").status)
	require.Empty(t, r.get("/cont/a").body)
	r.requireCode(r.get("/cont/a", "x-ms-range", "bytes=0-"), http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
	var want []byte
	sizes := []int{1, 16 << 10, 16<<10 + 1, 3<<20 + 7, 5, 4 << 20, 2}
	for i, n := range sizes {
		body := content(n, byte(i))
		a := r.append("/cont/a", body, "x-ms-blob-condition-appendpos", strconv.Itoa(len(want)))
		require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
		require.Equal(t, strconv.Itoa(len(want)), a.header.Get("x-ms-blob-append-offset"))
		require.Equal(t, strconv.Itoa(i+1), a.header.Get("x-ms-blob-committed-block-count"))
		want = append(want, body...)
		head := r.do(http.MethodHead, "/cont/a", nil)
		require.Equal(t, a.header.Get("ETag"), head.header.Get("ETag"))
		require.Equal(t, strconv.Itoa(len(want)), head.header.Get("Content-Length"))
	}
	r.requireBlob("/cont/a", want)
	for _, s := range [][2]int{{0, 0}, {0, 1}, {1, 16 << 10}, {16 << 10, 16<<10 + 1}, {32 << 10, 1 << 20}, {1 << 20, 5 << 20}, {len(want) - 2, len(want) - 1}, {7, len(want) + 9}} {
		end := min(s[1]+1, len(want))
		header := []string{"x-ms-range", fmt.Sprintf("bytes=%d-%d", s[0], s[1])}
		if end-s[0] <= hashBytesMax {
			header = append(header, "x-ms-range-get-content-md5", "true")
		}
		a := r.get("/cont/a", header...)
		require.Equal(t, http.StatusPartialContent, a.status, "%s", a.body)
		require.True(t, bytes.Equal(want[s[0]:end], a.body), "range %v", s)
		require.Equal(t, strconv.Itoa(len(sizes)), a.header.Get("x-ms-blob-committed-block-count"))
		if len(header) > 2 {
			require.Equal(t, md5Of(want[s[0]:end]), a.header.Get("Content-MD5"))
		}
	}
	require.Equal(t, 1+len(sizes), r.rows("/cont/a"))
	require.Equal(t, http.StatusCreated, r.put("/cont/a", []byte("block blob")).status)
	require.Equal(t, 1, r.rows("/cont/a"), "the blocks are dropped")
	r.requireBlob("/cont/a", []byte("block blob"))
}

// appendCase is one request at an append blob in a state, and its answer.
type appendCase struct {
	at       string // the blob: see TestAppendCases
	request  string // verb and what follows the blob's path
	body     string
	header   []string
	status   int
	code     string
	contains []string // headers of the answer, as name=value; with ! those that it has not
}

// The conformance cases of append blobs, numbered, by status, code and headers: protocol/blob.md B8, B17, B19, 8, 10, 17, 18. Refused
// ones change nothing.
//
// Capability: Blobs: Append blobs.
func TestAppendCases(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 201, r.create("/cont/empty").status)
	require.Equal(t, 201, r.create("/cont/five", "x-ms-blob-content-type", "text/x", "x-ms-blob-content-md5", "AQID", "x-ms-meta-k", "v").status)
	require.Equal(t, 201, r.append("/cont/five", []byte("hello")).status)
	require.Equal(t, 201, r.create("/cont/sealed").status)
	require.Equal(t, 201, r.append("/cont/sealed", []byte("hello")).status)
	require.Equal(t, 200, r.do(http.MethodPut, "/cont/sealed?comp=seal", nil).status)
	require.Equal(t, 201, r.create("/cont/leased").status)
	require.Equal(t, 201, r.lease("/cont/leased?", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", leaseA).status)
	require.Equal(t, 201, r.put("/cont/block", []byte("hello")).status)
	require.Equal(t, 201, r.put("/cont/cool", []byte("hello"), "x-ms-access-tier", "Cool").status)
	require.Equal(t, 201, r.putBlock("/cont/staged", "aa", []byte("hello")).status)
	type list = []string
	const app, one, seal = "PUT ?comp=appendblock", "x", "PUT ?comp=seal"
	make0, old := list{"x-ms-blob-type", "AppendBlob"}, list{"x-ms-version", "2014-02-14"}
	long := repeat("x", 20<<10)
	for i, c := range []appendCase{
		// Put Blob.
		{"new", "PUT ", "", make0, 201, "", list{"!Content-MD5", "!x-ms-content-crc64", "x-ms-request-server-encrypted=false"}},
		{"new", "PUT ", "", append(list{"If-None-Match", "*"}, make0...), 409, "BlobAlreadyExists", nil},
		{"new2", "PUT ", one, make0, 400, "InvalidHeaderValue", nil},
		{"new2", "PUT ", long, make0, 400, "InvalidHeaderValue", nil},
		{"new2", "PUT ", "", append(list{"x-ms-blob-content-length", "0"}, make0...), 400, "InvalidHeaderValue", nil},
		{"new2", "PUT ", "", append(list{"x-ms-access-tier", "Hot"}, make0...), 400, "InvalidHeaderValue", nil},
		{"new2", "PUT ", "", append(list{"x-ms-version", "2014-02-14"}, make0...), 400, "InvalidHeaderValue", nil},
		{"new2", "PUT ", "", list{"x-ms-blob-type", "appendblob"}, 400, "InvalidHeaderValue", nil},
		{"new2", "PUT ", "", append(list{"x-ms-blob-content-md5", "no hash"}, make0...), 400, "InvalidMd5", nil},
		{"new2", "PUT ", "", append(list{"x-ms-lease-id", leaseA}, make0...), 412, "LeaseNotPresentWithBlobOperation", nil},
		{"new2", "PUT ", "", append(list{"If-Match", "*"}, make0...), 412, "ConditionNotMet", nil},
		{"leased", "PUT ", "", make0, 412, "LeaseIdMissing", nil},
		{"none/", "PUT ", "", make0, 201, "", nil},
		{"new3", "PUT ", "", append(list{"Content-MD5", "x", "Content-Type", "text/y"}, make0...), 201, "", nil}, // It has no body to compare.
		{"new3", "HEAD ", "", nil, 200, "", list{"Content-Type=text/y", "!Content-MD5", "x-ms-blob-type=AppendBlob", "x-ms-blob-committed-block-count=0", "Content-Length=0"}},
		{"cool", "PUT ", "", make0, 201, "", nil},
		{"cool", "HEAD ", "", nil, 200, "", list{"!x-ms-access-tier", "!x-ms-access-tier-inferred"}},
		{"staged", "PUT ", "", make0, 201, "", nil},
		{"staged", app, one, nil, 201, "", list{"x-ms-blob-append-offset=0", "x-ms-blob-committed-block-count=1"}},
		// Append Block.
		{"missing", app, one, nil, 404, "BlobNotFound", nil},
		{"missing", app, long, nil, 404, "BlobNotFound", nil},
		{"block", app, one, nil, 409, "InvalidBlobType", nil},
		{"block", app, long, nil, 409, "InvalidBlobType", nil},
		{"five", app, "", nil, 400, "InvalidHeaderValue", nil},
		{"five", app, one, old, 400, "InvalidQueryParameterValue", nil},
		{"five", app, repeat("x", 4<<20+1), list{"x-ms-version", "2021-12-02"}, 413, "RequestBodyTooLarge", nil},
		{"five", app, one, list{"x-ms-blob-condition-appendpos", "4"}, 412, "AppendPositionConditionNotMet", nil},
		{"five", app, long, list{"x-ms-blob-condition-appendpos", "6"}, 412, "AppendPositionConditionNotMet", nil},
		{"five", app, one, list{"x-ms-blob-condition-appendpos", "-1"}, 400, "InvalidHeaderValue", nil},
		{"five", app, one, list{"x-ms-blob-condition-appendpos", "18446744073709551616"}, 400, "InvalidHeaderValue", nil},
		{"five", app, one, list{"x-ms-blob-condition-appendpos", "five"}, 400, "InvalidHeaderValue", nil},
		{"five", app, one, list{"x-ms-blob-condition-maxsize", "5"}, 412, "MaxBlobSizeConditionNotMet", nil},
		{"five", app, long, list{"x-ms-blob-condition-maxsize", "20484"}, 412, "MaxBlobSizeConditionNotMet", nil},
		{"five", app, one, list{"x-ms-blob-condition-maxsize", "+6"}, 400, "InvalidHeaderValue", nil},
		{"five", app, one, list{"If-Match", `"0x1"`}, 412, "ConditionNotMet", nil},
		{"five", app, one, list{"If-None-Match", "*"}, 412, "ConditionNotMet", nil},
		{"five", app, one, list{"If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"}, 412, "ConditionNotMet", nil},
		{"five", app, one, list{"Content-MD5", md5Of([]byte("y"))}, 400, "Md5Mismatch", nil},
		{"five", app, long, list{"Content-MD5", md5Of([]byte("y"))}, 400, "Md5Mismatch", nil},
		{"five", app, one, list{"x-ms-content-crc64", "AAAAAAAAAAA="}, 400, "Crc64Mismatch", nil},
		{"five", app, one, list{"x-ms-lease-id", leaseA}, 412, "LeaseNotPresentWithBlobOperation", nil},
		{"five", app, one, list{"x-ms-if-tags", "a='b'"}, 412, "ConditionNotMet", nil},
		{"five", app, one, list{"x-ms-structured-body", "XSM/1.0; properties=crc64"}, 400, "UnsupportedHeader", nil},
		{"leased", app, one, nil, 412, "LeaseIdMissing", nil},
		{"leased", app, long, nil, 412, "LeaseIdMissing", nil},
		{"leased", app, one, list{"x-ms-lease-id", leaseB}, 412, "LeaseIdMismatchWithBlobOperation", nil},
		{"leased", app, one, list{"x-ms-lease-id", leaseA}, 201, "", list{"x-ms-blob-append-offset=0"}},
		{"sealed", app, one, nil, 409, "BlobIsSealed", nil},
		{"sealed", app, long, nil, 409, "BlobIsSealed", nil},
		{"sealed", app, one, list{"x-ms-version", "2015-02-21"}, 409, "BlobIsSealed", nil},
		{"sealed", app, one, list{"If-Match", `"0x1"`}, 412, "ConditionNotMet", nil},
		{"five", app, one, list{"Content-MD5", md5Of([]byte("x"))}, 201, "", list{"x-ms-blob-append-offset=5", "x-ms-blob-committed-block-count=2", "Content-MD5=" + md5Of([]byte("x"))}},
		{"five", app, "yz", list{"x-ms-blob-condition-appendpos", "6", "x-ms-blob-condition-maxsize", "8"}, 201, "", list{"x-ms-blob-append-offset=6", "x-ms-blob-committed-block-count=3", "!Content-MD5"}},
		{"five", "GET ", "", nil, 200, "", list{
			"Content-Length=8", "Content-MD5=AQID", "x-ms-meta-k=v", "x-ms-blob-type=AppendBlob", "Content-Type=text/x", "x-ms-blob-committed-block-count=3", "!x-ms-blob-sealed", "!x-ms-access-tier",
		}},
		// Append Blob Seal.
		{"missing", seal, "", nil, 404, "BlobNotFound", nil},
		{"block", seal, "", nil, 409, "InvalidBlobType", nil},
		{"five", seal, "", list{"x-ms-version", "2019-07-07"}, 400, "InvalidQueryParameterValue", nil},
		{"five", seal, "", list{"x-ms-blob-condition-appendpos", "7"}, 412, "AppendPositionConditionNotMet", nil},
		{"five", seal, "", list{"x-ms-blob-condition-appendpos", "x"}, 400, "InvalidHeaderValue", nil},
		{"five", seal, "", list{"If-Match", `"0x1"`}, 412, "ConditionNotMet", nil},
		{"leased", seal, "", nil, 412, "LeaseIdMissing", nil},
		{"sealed", seal, "", nil, 200, "", list{"x-ms-blob-sealed=true"}},
		{"sealed", seal, "", list{"x-ms-blob-condition-appendpos", "5"}, 200, "", list{"x-ms-blob-sealed=true"}},
		{"sealed", seal, "", list{"x-ms-blob-condition-appendpos", "4"}, 412, "AppendPositionConditionNotMet", nil},
		{"five", seal, "", list{"x-ms-blob-condition-appendpos", "8", "x-ms-blob-condition-maxsize", "x"}, 200, "", list{"x-ms-blob-sealed=true"}},
		{"five", "HEAD ", "", nil, 200, "", list{"x-ms-blob-sealed=true", "x-ms-blob-committed-block-count=3"}},
		{"five", "HEAD ", "", list{"x-ms-version", "2019-07-07"}, 200, "", list{"!x-ms-blob-sealed"}},
		{"five", "PUT ?comp=metadata", "", list{"x-ms-meta-a", "b"}, 200, "", nil},
		{"five", "PUT ?comp=properties", "", list{"x-ms-blob-content-type", "text/z"}, 200, "", nil},
		{"five", "GET ", "", nil, 200, "", list{"Content-Length=8", "!Content-MD5", "x-ms-meta-a=b", "Content-Type=text/z", "x-ms-blob-sealed=true"}},
		// What only a block blob has.
		{"five", "PUT ?comp=block&blockid=AAAA", one, nil, 409, "InvalidBlobType", nil},
		{"five", "PUT ?comp=block&blockid=AAAA", long, nil, 409, "InvalidBlobType", nil},
		{"five", "PUT ?comp=blocklist", "<BlockList/>", nil, 409, "InvalidBlobType", nil},
		{"five", "PUT ?comp=blocklist", "<BlockList/>", list{"If-None-Match", "*"}, 409, "InvalidBlobType", nil},
		{"five", "GET ?comp=blocklist", "", nil, 409, "InvalidBlobType", nil},
		{"five", "GET ?comp=blocklist&blocklisttype=all", "", list{"x-ms-lease-id", leaseB}, 409, "InvalidBlobType", nil},
		// Versions without append blobs.
		{"five", "GET ", "", old, 409, "FeatureVersionMismatch", nil},
		{"five", "GET ", "", append(list{"If-Match", `"0x1"`}, old...), 409, "FeatureVersionMismatch", nil},
		{"five", "HEAD ", "", old, 409, "FeatureVersionMismatch", nil},
		{"five", "GET ?comp=metadata", "", old, 409, "FeatureVersionMismatch", nil},
		{"five", "PUT ?comp=metadata", "", old, 409, "FeatureVersionMismatch", nil},
		{"five", "PUT ?comp=properties", "", old, 409, "FeatureVersionMismatch", nil},
		{"five", "PUT ", one, append(list{"x-ms-blob-type", "BlockBlob"}, old...), 409, "FeatureVersionMismatch", nil},
		{"five", "PUT ?comp=lease", "", append(list{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15"}, old...), 409, "FeatureVersionMismatch", nil},
		{"five", "DELETE ", "", old, 409, "FeatureVersionMismatch", nil},
		{"five", "GET ", "", list{"x-ms-version", "2015-02-21"}, 200, "", list{"x-ms-blob-type=AppendBlob"}},
		// Replacement and the end.
		{"sealed", "PUT ", "", make0, 201, "", nil},
		{"sealed", app, one, nil, 201, "", list{"x-ms-blob-append-offset=0"}},
		{"five", "PUT ", "block", list{"x-ms-blob-type", "BlockBlob"}, 201, "", nil},
		{"five", "GET ", "", nil, 200, "", list{"x-ms-blob-type=BlockBlob", "!x-ms-blob-committed-block-count", "!x-ms-blob-sealed"}},
		{"empty", "DELETE ", "", nil, 202, "", nil},
		{"empty", "GET ", "", nil, 404, "BlobNotFound", nil},
	} {
		c.run(r, i+1)
		if c.status >= 300 {
			require.Equal(t, c.code == "Md5Mismatch" && len(c.body) > 1, r.abandoned.Swap(0) > 0, "chunks that nothing names: case %d", i+1)
		}
	}
}

// run requires the answer of the case, and of a refusal that it changed nothing.
func (c *appendCase) run(r *rig, number int) answer {
	t := r.t
	t.Helper()
	verb, rest, _ := strings.Cut(c.request, " ")
	name := fmt.Sprintf("case %d: %s of %s %v", number, c.request, c.at, c.header)
	before := r.state()
	a := r.do(verb, "/cont/"+url.PathEscape(c.at)+rest, []byte(c.body), c.header...)
	require.Equal(t, c.status, a.status, "%s: %s", name, a.body)
	require.Equal(t, c.code, a.header.Get("x-ms-error-code"), "%s: %s", name, a.body)
	for _, want := range c.contains {
		want, absent := strings.CutPrefix(want, "!")
		header, value, _ := strings.Cut(want, "=")
		if absent {
			require.Empty(t, a.header.Values(header), "%s: %s", name, header)
		} else {
			require.Equal(t, value, a.header.Get(header), "%s: %s", name, header)
		}
	}
	if c.status >= 300 {
		require.Equal(t, before, r.state(), name)
	}
	return a
}

// A large block that would be refused is not taken: its chunks would stay.
//
// Capability: Blobs: Append blobs.
func TestLargeAppendThatIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 201, r.create("/cont/a").status)
	for _, header := range [][]string{
		{"x-ms-blob-condition-appendpos", "1"}, {"x-ms-blob-condition-maxsize", "1"}, {"If-Match", `"0x1"`}, {"x-ms-lease-id", leaseA},
	} {
		require.Equal(t, 412, r.append("/cont/a", content(3<<20, 1), header...).status)
	}
	require.Zero(t, r.payload.puts.Load())
	require.Zero(t, r.abandoned.Load())
}

// A body that ends before its length appends nothing; a retry of an append that succeeded appends again, unless it has the
// position.
func TestRetriedAppend(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 201, r.create("/cont/a").status)
	head := "PUT /acct/cont/a?comp=appendblock HTTP/1.1\r\nHost: x\r\nx-ms-version: " + testVersion + "\r\nConnection: close\r\nContent-Length: "
	require.Contains(t, apitest.Raw(t, r.url, head+"100\r\n\r\nhello", true), "400")
	require.Contains(t, apitest.Raw(t, r.url, head+"2000000\r\n\r\n"+repeat("x", 1_500_000), true), "400")
	require.Contains(t, apitest.Raw(t, r.url, head+"104857601\r\n\r\n", false), "413", "100 MiB and a byte")
	require.Contains(t, apitest.Raw(t, r.url, head+"104857600\r\n\r\n", true), "400", "100 MiB, which do not come")
	r.requireBlob("/cont/a", []byte{})
	for range 2 {
		require.Equal(t, 201, r.append("/cont/a", []byte("twice")).status)
	}
	at := []string{"x-ms-blob-condition-appendpos", "10"}
	require.Equal(t, 201, r.append("/cont/a", []byte("once"), at...).status)
	r.requireCode(r.append("/cont/a", []byte("once"), at...), 412, "AppendPositionConditionNotMet")
	r.requireBlob("/cont/a", []byte("twicetwiceonce"))
}

// Of appends at once none is lost, none is there twice, each is where its answer says, and those of one client are in the
// order in which it sent them; a reader meanwhile sees a beginning of what there is at the end.
func TestConcurrentAppends(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 201, r.create("/cont/a").status)
	const clients, each = 8, 25
	type placed struct {
		offset int
		body   []byte
	}
	answers := make([][]placed, clients)
	var seen [][]byte
	var writers, reader sync.WaitGroup
	stop := make(chan struct{})
	reader.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if a, err := r.try(http.MethodGet, "/cont/a", nil); err == nil && a.status == http.StatusOK && a.err == nil {
				seen = append(seen, a.body)
			}
		}
	})
	for c := range clients {
		writers.Go(func() {
			for i := range each {
				body := fmt.Appendf(nil, "<%d.%d>", c, i)
				if i%5 == 0 {
					body = append(body, content(20<<10, byte(c*each+i))...) // In a chunk.
				}
				a, err := r.try(http.MethodPut, "/cont/a?comp=appendblock", bytes.NewReader(body))
				if err != nil || a.status != http.StatusCreated {
					t.Errorf("append: %v %d %s", err, a.status, a.body)
					return
				}
				offset, err := strconv.Atoi(a.header.Get("x-ms-blob-append-offset"))
				if err != nil {
					t.Error(err)
				}
				answers[c] = append(answers[c], placed{offset, body})
			}
		})
	}
	writers.Wait()
	close(stop)
	reader.Wait()
	whole := r.get("/cont/a")
	require.Equal(t, strconv.Itoa(clients*each), whole.header.Get("x-ms-blob-committed-block-count"))
	total := 0
	for c, list := range answers {
		require.Len(t, list, each)
		last := -1
		for i, p := range list {
			require.Greater(t, p.offset, last, "client %d, block %d", c, i)
			require.True(t, bytes.Equal(p.body, whole.body[p.offset:p.offset+len(p.body)]), "client %d, block %d", c, i)
			last = p.offset
			total += len(p.body)
		}
	}
	require.Len(t, whole.body, total, "blocks do not overlap, so all of it is theirs")
	require.NotEmpty(t, seen)
	for _, s := range seen {
		require.True(t, bytes.HasPrefix(whole.body, s))
	}
}

// A blob that is replaced while it is read breaks off; one that grows, or is sealed, is read as it was.
func TestAppendedWhileRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	var want []byte
	fill := func() {
		require.Equal(t, 201, r.create("/cont/a").status)
		want = nil
		for i := range 80 { // 80 blocks inline are more than one window.
			body := content(16<<10, byte(i))
			if i == 0 {
				body = content(20<<10, 99)
			}
			require.Equal(t, 201, r.append("/cont/a", body).status)
			want = append(want, body...)
		}
	}
	var during func()
	r.payload.onRead = func(extent.Ref, int64) error {
		if during != nil {
			during()
			during = nil
		}
		return nil
	}
	fill()
	during = func() {
		require.Equal(t, 201, r.append("/cont/a", []byte("more")).status)
		require.Equal(t, 200, r.do(http.MethodPut, "/cont/a?comp=seal", nil).status)
	}
	r.requireBlob("/cont/a", want)
	r.requireBlob("/cont/a", append(want, "more"...))
	fill()
	during = func() { require.Equal(t, 201, r.put("/cont/a", []byte("new")).status) }
	a := r.get("/cont/a")
	require.Error(t, a.err)
	require.Less(t, len(a.body), len(want))
	require.True(t, bytes.Equal(want[:len(a.body)], a.body))
	r.requireBlob("/cont/a", []byte("new"))
}

// A listing has the type, and no tier, of an append blob, whether it is sealed since 2019-12-12, and what is in it in any version.
func TestListedAppendBlobs(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 201, r.create("/cont/a").status)
	require.Equal(t, 201, r.append("/cont/a", []byte("hello")).status)
	require.Equal(t, 201, r.create("/cont/b").status)
	require.Equal(t, 200, r.do(http.MethodPut, "/cont/b?comp=seal", nil).status)
	require.Equal(t, 201, r.put("/cont/c", nil).status)
	for version, seals := range map[string]int{testVersion: 1, "2019-12-12": 1, "2019-07-07": 0, "2014-02-14": 0} {
		doc := string(r.get(listPath, "x-ms-version", version).body)
		require.Equal(t, 2, strings.Count(doc, "<BlobType>AppendBlob</BlobType>"), version)
		require.Equal(t, 1, strings.Count(doc, "<BlobType>BlockBlob</BlobType>"), version)
		require.Equal(t, seals, strings.Count(doc, "<Sealed>true</Sealed>"), version)
		require.Equal(t, seals, strings.Count(doc, "<Sealed>"), version)
		tiers := 1
		if version < "2017-04-17" {
			tiers = 0
		}
		require.Equal(t, tiers, strings.Count(doc, "<AccessTier>"), version)
		require.Equal(t, tiers, strings.Count(doc, "<AccessTierInferred>"), version)
		require.Contains(t, doc, "<Content-Length>5</Content-Length>")
	}
}

// A snapshot of an append blob is read as it was, after appends, a seal and a replacement by another append blob, and keeps its
// blob from becoming a block blob (protocol/blob.md B8).
//
// Capability: Blobs: Snapshots.
func TestSnapshotOfAppendBlob(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 201, r.create("/cont/a").status)
	want := content(50<<10, 1)
	for i := range 5 {
		require.Equal(t, 201, r.append("/cont/a", want[i*10<<10:(i+1)*10<<10]).status)
	}
	a := r.do(http.MethodPut, "/cont/a?comp=snapshot", nil)
	require.Equal(t, 201, a.status)
	at := "/cont/a?snapshot=" + url.QueryEscape(a.header.Get("x-ms-snapshot"))
	requireSnapshot := func() {
		t.Helper()
		r.requireBlob(at, want)
		part := r.get(at, "x-ms-range", "bytes=10000-30000")
		require.True(t, bytes.Equal(want[10000:30001], part.body))
		head := r.do(http.MethodHead, at, nil)
		require.Equal(t, "5", head.header.Get("x-ms-blob-committed-block-count"))
		require.Equal(t, "AppendBlob", head.header.Get("x-ms-blob-type"))
		require.Empty(t, head.header.Get("x-ms-blob-sealed"))
	}
	requireSnapshot()
	require.Equal(t, 201, r.append("/cont/a", content(20<<10, 2)).status)
	require.Equal(t, 200, r.do(http.MethodPut, "/cont/a?comp=seal", nil).status)
	requireSnapshot()
	r.requireCode(r.put("/cont/a", []byte("x")), 409, "SnapshotsPresent")
	r.requireCode(r.put("/cont/a", content(20<<10, 2)), 409, "SnapshotsPresent")
	r.requireCode(r.get(at, "x-ms-version", "2014-02-14"), 409, "FeatureVersionMismatch")
	require.Equal(t, 201, r.create("/cont/a").status)
	require.Equal(t, 201, r.append("/cont/a", []byte("new")).status)
	requireSnapshot()
	r.requireBlob("/cont/a", []byte("new"))
	require.Equal(t, 202, r.do(http.MethodDelete, at, nil).status)
	require.Equal(t, 2, r.rows("/cont/a"), "the blocks of the snapshot are dropped")
	require.Equal(t, 201, r.put("/cont/a", []byte("x")).status)
}
