package blobs

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/api/wire"
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
