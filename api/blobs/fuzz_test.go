package blobs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// requireRow requires that an error is one of the protocol's.
func requireRow(t *testing.T, err error) {
	t.Helper()
	_, known := storageerr.Of(err)
	require.True(t, known, "%v", err)
}

// Any range header gives a part of the blob or InvalidRange, and the part, written as a
// range, is read as the same part.
func FuzzParseSpan(f *testing.F) {
	f.Add("bytes=0-", "bytes=1-2", "2011-08-18", uint64(10))
	f.Add("bytes=18446744073709551616-18446744073709551617", "", "", uint64(1<<63))
	f.Add("", "bytes=0-0,2-3", "2009-09-19", uint64(0))
	f.Fuzz(func(t *testing.T, preferred, plain, version string, length uint64) {
		h := http.Header{}
		h.Set("X-Ms-Range", preferred)
		h.Set("Range", plain)
		s, err := parseRange(h, protocol.Version(version)).of(length)
		if err != nil {
			require.ErrorIs(t, err, storageerr.InvalidRange)
			return
		}
		require.LessOrEqual(t, s.off, s.end)
		require.LessOrEqual(t, s.end, length)
		if !s.ranged {
			require.Equal(t, span{0, length, false}, s)
			return
		}
		require.Less(t, s.off, s.end)
		asked := parseRange(http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", s.off, s.end-1)}}, protocol.Version(version))
		again, err := asked.of(length)
		require.NoError(t, err)
		require.Equal(t, s, again)
		hash, err := parseRangeHash(http.Header{headerRangeMD5: {"true"}}, asked)
		require.NoError(t, err)
		require.Equal(t, rangeHash{md5: true, text: "true"}, hash)
		if hash.check(s) == nil {
			require.LessOrEqual(t, s.end-s.off, uint64(hashBytesMax))
		}
	})
}

// Any x-ms-tags gives tags that a blob can have, and that are the same written again, or a row of the protocol; so does any body
// of Set Blob Tags.
func FuzzTags(f *testing.F) {
	f.Add("k=v&a+b=%2B")
	f.Add("=&a=b&a=c")
	f.Add("<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>")
	f.Add("<Tags><TagSet/></Tags>")
	f.Fuzz(func(t *testing.T, text string) {
		if tags, err := parseTags(text); err != nil {
			requireRow(t, err)
		} else {
			again := url.Values{}
			for _, p := range tags {
				again.Set(p.Name, p.Value)
			}
			got, err := parseTags(again.Encode())
			require.NoError(t, err)
			require.Equal(t, tags, got)
		}
		tags, err := parseTagSet([]byte(text))
		if err != nil {
			requireRow(t, err)
			return
		}
		got, err := parseTagSet(appendTags(nil, tags))
		require.NoError(t, err)
		require.Len(t, got, len(tags))
		for i := range tags {
			require.Equal(t, tags[i], got[i])
		}
	})
}

// Any path gives a resource whose names, escaped again, are the same resource, or a row
// of the protocol.
func FuzzParseResource(f *testing.F) {
	for _, raw := range []string{"/cont/a%2Fb", "/cont//a/", "/b", "//b", "/cont", "/cont/%5C", "/%24root/x", "/cont/%zz", ""} {
		f.Add(raw, "")
	}
	f.Add("/cont", "container")
	f.Fuzz(func(t *testing.T, raw, restype string) {
		if raw != "" && raw[0] != '/' {
			return // protocol.Target gives no other.
		}
		r, err := parseResource(raw, restype)
		if err == nil {
			err = r.validate()
		}
		if err != nil {
			requireRow(t, err)
			return
		}
		if r.blob == "" {
			return
		}
		again, err := parseResource("/"+url.PathEscape(r.container)+"/"+url.PathEscape(r.blob), "")
		require.NoError(t, err)
		require.NoError(t, again.validate())
		require.Equal(t, r, again)
	})
}

// The body of a batch gives parts that are deletions or changes of tiers of blobs of the account, or a row of the protocol. What is
// authorized of it was signed: nothing here is.
func FuzzBlobBatch(f *testing.F) {
	part := "--b\r\nContent-Type: application/http\r\nContent-ID: 1\r\n\r\n"
	for _, body := range []string{
		bodyOf(deleting("/cont/b"), deleting("/cont/a%2Fb", "If-Match", "*")),
		part + "PUT /cont/b?comp=tier HTTP/1.1\r\nx-ms-access-tier: Cool\r\n\r\n--b--",
		part + "DELETE acct/cont/b?sv=2020-02-10&sr=c&sp=d&se=2999-01-01&sig=x HTTP/1.1\r\nHost: acct.blob.x\r\n\r\n--b--",
		part + "DELETE http://acct.blob.x/acct-secondary/b\n\n--b--",
	} {
		f.Add(body, "/")
		f.Add(body, "/cont")
	}
	f.Fuzz(func(t *testing.T, body, resource string) {
		if resource == "" || resource[0] != '/' {
			return // protocol.Target gives no other.
		}
		hr := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		target := protocol.Target{
			Service: geo.Blob, Account: "acct", PathStyle: true, RawPath: "/acct" + resource, Resource: resource, Base: "http://x/acct/",
		}
		h := NewHandler(Options{})
		c := &call{Handler: h, ctx: t.Context(), r: &protocol.Request{
			HTTP: hr, Target: target, Version: testVersion, ID: "e8b35952-52b3-4038-ad06-240c1e08b578", At: time.Now(), Account: &catalog.Account{Name: "acct"},
		}, asked: operation.Match{Operation: operation.Named(geo.Blob, "BlobBatch")}}
		c.res, _ = parseResource(resource, restypeContainer)
		c.bodyHold = h.inFlight.Hold(c.r)
		defer c.bodyHold.Release()
		parts, err := c.readBatch("b")
		if err != nil {
			requireRow(t, err)
			return
		}
		require.NotEmpty(t, parts)
		require.LessOrEqual(t, len(parts), partsMax)
		for _, p := range parts {
			require.Equal(t, operation.Blob, p.asked.On)
			require.Equal(t, parts[0].asked.Name, p.asked.Name)
			require.Equal(t, geo.Account("acct"), p.r.SignedAs())
			require.False(t, p.r.Secondary)
			if c.res.container != "" {
				require.Equal(t, c.res.container, p.asked.Container)
			}
			err := c.authorize(p)
			requireRow(t, err)
			p.fail(err)
		}
		w := httptest.NewRecorder()
		c.w = w
		c.answerBatch(parts)
		a := answer{header: w.Header(), body: w.Body.Bytes()}
		a.header.Set("x-ms-request-id", c.r.ID)
		got := partsOf(t, a)
		require.Len(t, got, len(parts))
		for i, p := range got {
			require.Equal(t, parts[i].contentID, p.contentID)
			require.GreaterOrEqual(t, p.status, 400)
		}
	})
}

// What is a lease id has 32 hexadecimal digits and little else.
func FuzzParseLeaseID(f *testing.F) {
	for _, id := range []string{noLease, "{" + noLease + "}", "(" + noLease, strings.ReplaceAll(noLease, "-", ""), "", "x"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		named, err := parseLeaseID(http.Header{headerLeaseID: {id}}, headerLeaseID)
		if err != nil {
			require.ErrorIs(t, err, storageerr.InvalidHeaderValue)
			return
		}
		require.Equal(t, id != "", named != nil)
		if digits := strings.Trim(id, "{}()[]"); named != nil {
			require.Contains(t, []int{32, 36}, len(digits))
			require.Equal(t, strings.ToLower(strings.ReplaceAll(digits, "-", "")), strings.ReplaceAll(named.String(), "-", ""))
		}
	})
}

// Any query gives a page within its bounds, or a row of the protocol.
func FuzzParsePage(f *testing.F) {
	for _, q := range []string{"maxresults=5&prefix=a&marker=AWE&include=metadata,copy", "maxresults=-1", "maxresults=99999999999999999999", "include=,&delimiter=/&startfrom=a", "include=snapshots&marker=AgAAAAAAAAABYQ"} {
		f.Add(q, "2026-12-06")
	}
	f.Fuzz(func(t *testing.T, raw, version string) {
		query, err := protocol.ParseQuery(raw)
		if err != nil {
			return
		}
		c := &call{r: &protocol.Request{Query: query, Version: protocol.Version(version)}, res: resource{container: "cont"}}
		c.r.Account = &catalog.Account{}
		asked, err := c.parseListBlobs()
		if err != nil {
			requireRow(t, err)
			return
		}
		require.Positive(t, asked.itemsMax)
		require.LessOrEqual(t, asked.itemsMax, wire.PageItemsMax)
		if from := asked.From; query.Get("marker") != "" {
			require.Equal(t, query.Get("marker"), newMarker(from))
		}
	})
}
