package blobs

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tags reads the tags of a blob.
func (r *rig) tags(path string, header ...string) map[string]string {
	r.t.Helper()
	a := r.get(path+"?comp=tags", header...)
	require.Equal(r.t, http.StatusOK, a.status, "%s", a.body)
	return parsedTags(r.t, a.body)
}

func parsedTags(t testing.TB, doc []byte) map[string]string {
	var set struct {
		XMLName xml.Name                      `xml:"Tags"`
		Tags    []struct{ Key, Value string } `xml:"TagSet>Tag"`
	}
	require.NoError(t, xml.Unmarshal(doc, &set))
	out := map[string]string{}
	for _, tag := range set.Tags {
		out[tag.Key] = tag.Value
	}
	require.Len(t, out, len(set.Tags))
	return out
}

// Numbered cases of tags (protocol/blob.md 9.4): what is written by each way is read by each way.
//
// Capability: Blobs: Tags and tiers.
func TestTags(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	// 1: by Put Blob, as a form has them: a plus is a space.
	require.Equal(t, 201, r.put("/cont/b", []byte("x"), "x-ms-tags", "b=2&a+c=%2B%3A%2F&empty=&A=%20x%20").status)
	want := map[string]string{"b": "2", "a c": "+:/", "empty": "", "A": " x "}
	require.Equal(t, want, r.tags("/cont/b"))
	// 2: their number in GET and HEAD, since 2019-12-12.
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		require.Equal(t, "4", r.do(method, "/cont/b", nil).header.Get("x-ms-tag-count"))
		require.Empty(t, r.do(method, "/cont/b", nil, "x-ms-version", "2019-07-07").header.Get("x-ms-tag-count"))
	}
	// 3: in a listing, by include alone, behind Properties.
	require.Regexp(t, `<TagCount>4</TagCount></Properties><Tags><TagSet><Tag><Key>A</Key><Value> x </Value></Tag><Tag><Key>a c</Key>.*`+
		`</TagSet></Tags></Blob>`, string(r.get(listPath+"&include=tags").body))
	plain := string(r.get(listPath).body)
	require.Contains(t, plain, "<TagCount>4</TagCount>")
	require.NotContains(t, plain, "<Tags>")
	require.NotContains(t, string(r.get(listPath, "x-ms-version", "2019-07-07").body), "TagCount")
	// 4: what describes the blob leaves them, and their ETag stays with a change of them.
	before := r.do(http.MethodPut, "/cont/b?comp=metadata", nil, "x-ms-meta-k", "v")
	require.Equal(t, 200, before.status)
	require.Equal(t, want, r.tags("/cont/b"))
	set := r.do(http.MethodPut, "/cont/b?comp=tags", tagSet("<Key>k</Key><Value>v</Value>"))
	require.Equal(t, 204, set.status)
	require.Empty(t, set.body)
	require.Equal(t, map[string]string{"k": "v"}, r.tags("/cont/b"))
	head := r.do(http.MethodHead, "/cont/b", nil)
	require.Equal(t, before.header.Get("ETag"), head.header.Get("ETag"))
	require.Equal(t, "v", head.header.Get("x-ms-meta-k"))
	// 5: an empty set clears; no tags, no count.
	require.Equal(t, 204, r.do(http.MethodPut, "/cont/b?comp=tags", []byte("<Tags><TagSet></TagSet></Tags>"), "x-ms-content-crc64", "").status)
	require.Empty(t, r.tags("/cont/b"))
	require.Empty(t, r.do(http.MethodHead, "/cont/b", nil).header.Get("x-ms-tag-count"))
	require.NotContains(t, string(r.get(listPath+"&include=tags").body), "Tag")
	// 6: by Put Block List, and an overwrite without them clears them.
	require.Equal(t, 201, r.do(http.MethodPut, "/cont/b?comp=blocklist", []byte("<BlockList/>"), "x-ms-tags", "l=1").status)
	require.Equal(t, map[string]string{"l": "1"}, r.tags("/cont/b"))
	require.Equal(t, 201, r.do(http.MethodPut, "/cont/b?comp=blocklist", []byte("<BlockList/>")).status)
	require.Empty(t, r.tags("/cont/b"))
	require.Equal(t, 201, r.put("/cont/b", []byte("x"), "x-ms-tags", "a=1").status)
	require.Equal(t, 201, r.put("/cont/b", []byte("x")).status)
	require.Empty(t, r.tags("/cont/b"))
	// 7: with its MD5, and in UTF-16.
	doc := tagSet("<Key>m</Key><Value/>")
	require.Equal(t, 204, r.do(http.MethodPut, "/cont/b?comp=tags", doc, "Content-MD5", md5Of(doc)).status)
	require.Equal(t, map[string]string{"m": ""}, r.tags("/cont/b"))
	// 8: a leased blob needs the id, and takes it of a reader.
	require.Equal(t, 201, r.lease("/cont/b?", "acquire", "x-ms-lease-duration", "60", "x-ms-proposed-lease-id", leaseA).status)
	r.requireCode(r.do(http.MethodPut, "/cont/b?comp=tags", doc), 412, "LeaseIdMissing")
	r.requireCode(r.do(http.MethodPut, "/cont/b?comp=tags", doc, "x-ms-lease-id", leaseB), 412, "LeaseIdMismatchWithBlobOperation")
	require.Equal(t, 204, r.do(http.MethodPut, "/cont/b?comp=tags", doc, "x-ms-lease-id", leaseA).status)
	require.Len(t, r.tags("/cont/b", "x-ms-lease-id", leaseA), 1)
	r.requireCode(r.get("/cont/b?comp=tags", "x-ms-lease-id", leaseB), 412, "LeaseIdMismatchWithBlobOperation")
}

// The conditions of Get and Set Blob Tags, whose names are their own, since 2025-11-05 (protocol/blob.md 9.4, 16.1).
func TestConditionsOfTags(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	put := r.put("/cont/b", []byte("x"))
	etag, past, future := put.header.Get("ETag"), "Mon, 01 Jan 2001 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"
	for _, c := range []struct {
		name, value string
		read, write int
	}{
		{"x-ms-blob-if-match", etag, 200, 204},
		{"x-ms-blob-if-match", `"0x1"`, 412, 412},
		{"x-ms-blob-if-none-match", etag, 304, 412},
		{"x-ms-blob-if-none-match", `"0x1"`, 200, 204},
		{"x-ms-blob-if-modified-since", past, 200, 204},
		{"x-ms-blob-if-modified-since", future, 304, 412},
		{"x-ms-blob-if-unmodified-since", past, 412, 412},
		{"x-ms-blob-if-unmodified-since", future, 200, 204},
		// Those of HTTP are not taken.
		{"If-Match", `"0x1"`, 200, 204},
	} {
		for version, applies := range map[string]bool{"2025-11-05": true, "2026-12-06": true, "2025-07-05": false} {
			read, write := c.read, c.write
			if !applies {
				read, write = 200, 204
			}
			a := r.get("/cont/b?comp=tags", c.name, c.value, "x-ms-version", version)
			require.Equal(t, read, a.status, "%v %s: %s", c, version, a.body)
			a = r.do(http.MethodPut, "/cont/b?comp=tags", tagSet("<Key>k</Key><Value>v</Value>"), c.name, c.value, "x-ms-version", version)
			require.Equal(t, write, a.status, "%v %s: %s", c, version, a.body)
		}
	}
}

// Every operation that takes x-ms-if-tags is done if the condition holds, and 412 if not, under a condition of HTTP too
// (protocol/blob.md 16.1).
func TestIfTags(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, c := range []struct {
		request string
		body    string
		header  []string
		met     int
	}{
		{"GET /cont/b", "", nil, 200},
		{"HEAD /cont/b", "", nil, 200},
		{"GET /cont/b", "", []string{"If-Match", "*"}, 200},
		{"GET /cont/b", "", []string{"If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"}, 304},
		{"GET /cont/b?comp=metadata", "", nil, 200},
		{"GET /cont/b?comp=blocklist", "", nil, 200},
		{"GET /cont/b?comp=tags", "", nil, 200},
		{"PUT /cont/b", "x", []string{"x-ms-blob-type", "BlockBlob", "x-ms-tags", "k=1"}, 201},
		{"PUT /cont/b", string(content(50_000, 1)), []string{"x-ms-blob-type", "BlockBlob", "x-ms-tags", "k=1"}, 201},
		{"PUT /cont/b?comp=blocklist", "<BlockList/>", []string{"x-ms-tags", "k=1"}, 201},
		{"PUT /cont/b?comp=metadata", "", nil, 200},
		{"PUT /cont/b?comp=properties", "", nil, 200},
		{"PUT /cont/b?comp=tier", "", []string{"x-ms-access-tier", "Cool"}, 200},
		{"PUT /cont/b?comp=lease", "", []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15"}, 201},
		{"PUT /cont/b?comp=lease", "", []string{"x-ms-lease-action", "break", "x-ms-lease-break-period", "0"}, 202},
		{"PUT /cont/b?comp=tags", "<Tags><TagSet><Tag><Key>k</Key><Value>1</Value></Tag></TagSet></Tags>", nil, 204},
		{"DELETE /cont/b", "", nil, 202},
	} {
		method, path, _ := strings.Cut(c.request, " ")
		if r.do(http.MethodHead, "/cont/b", nil).status != 200 {
			require.Equal(t, 201, r.put("/cont/b", []byte("x"), "x-ms-tags", "k=1").status)
		}
		a := r.do(method, path, []byte(c.body), append(c.header, "x-ms-if-tags", "k='2'")...)
		require.Equal(t, 412, a.status, c.request)
		require.Equal(t, "ConditionNotMet", a.header.Get("x-ms-error-code"), c.request)
		require.Equal(t, c.met, r.do(method, path, []byte(c.body), append(c.header, "x-ms-if-tags", `"k" = '1' OR k='3'`)...).status, c.request)
	}
	require.Zero(t, r.abandoned.Load(), "a large body that is refused is not taken")
	require.Equal(t, 404, r.do(http.MethodDelete, "/cont/b", nil, "x-ms-if-tags", "k='1'").status)
	require.Equal(t, 412, r.put("/cont/b", nil, "x-ms-if-tags", "k='1'").status)
	require.Equal(t, 201, r.put("/cont/b", nil, "x-ms-if-tags", "k<>'1'").status)
}

// The condition and the write are one step: of many writers that take a token in the tags, each turn has one.
func TestIfTagsIsAtomic(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 201, r.put("/cont/b", nil, "x-ms-tags", "turn=0").status)
	for turn := range 5 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for range 8 {
			wg.Go(func() {
				a := r.put("/cont/b", nil, "x-ms-tags", fmt.Sprintf("turn=%d", turn+1), "x-ms-if-tags", fmt.Sprintf("turn='%d'", turn))
				mu.Lock()
				defer mu.Unlock()
				if a.status == 201 {
					won++
				}
			})
		}
		wg.Wait()
		require.Equal(t, 1, won)
	}
}

// A lease that is over needs no id, and a change of tags ends it, as every write does.
func TestTagsAfterALease(t *testing.T) {
	t.Parallel()
	r, at := shiftedRig(t)
	require.Equal(t, 201, r.put("/cont/b", nil).status)
	require.Equal(t, 201, r.lease("/cont/b?", "acquire", "x-ms-lease-duration", "15").status)
	at.Shift(16 * time.Second)
	require.Equal(t, 204, r.do(http.MethodPut, "/cont/b?comp=tags", []byte("<Tags><TagSet/></Tags>")).status)
	require.Equal(t, "available", r.do(http.MethodHead, "/cont/b", nil).header.Get("x-ms-lease-state"))
}
