package blobs

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// listed is a listing as a client reads it.
type listed struct {
	ServiceEndpoint string `xml:",attr"`
	ContainerName   string `xml:",attr"`
	Prefix          *string
	Marker          *string
	MaxResults      *string
	Delimiter       *string
	Containers      []listedContainer `xml:"Containers>Container"`
	Blobs           []listedBlob      `xml:"Blobs>Blob"`
	Prefixes        []listedName      `xml:"Blobs>BlobPrefix>Name"`
	NextMarker      string
}

type listedContainer struct {
	Name       string
	Properties listedProperties
	Metadata   *listedMetadata
}

type listedBlob struct {
	Name       listedName
	Snapshot   string
	URL        string `xml:"Url"`
	Properties listedProperties
	Metadata   *listedMetadata
}

type listedName struct {
	Encoded string `xml:",attr"`
	Text    string `xml:",chardata"`
}

type listedMetadata struct {
	Pairs []struct {
		XMLName xml.Name
		Value   string `xml:",chardata"`
	} `xml:",any"`
}

type listedProperties struct {
	LastModified  string `xml:"Last-Modified"`
	CreationTime  string `xml:"Creation-Time"`
	Etag          string
	Length        string `xml:"Content-Length"`
	ContentType   string `xml:"Content-Type"`
	MD5           string `xml:"Content-MD5"`
	BlobType      string
	AccessTier    string
	LeaseState    string
	LeaseStatus   string
	ServerEncrypt string `xml:"ServerEncrypted"`
}

func (r *rig) list(path string, header ...string) listed {
	r.t.Helper()
	a := r.get(path, header...)
	require.Equal(r.t, http.StatusOK, a.status, "%s", a.body)
	require.Equal(r.t, "application/xml", a.header.Get("Content-Type"))
	var l listed
	require.NoError(r.t, xml.Unmarshal(a.body, &l), "%s", a.body)
	return l
}

func (l listed) names() []string {
	var out []string
	for _, b := range l.Blobs {
		out = append(out, b.Name.Text)
	}
	for _, p := range l.Prefixes {
		out = append(out, ">"+p.Text)
	}
	for _, c := range l.Containers {
		out = append(out, c.Name)
	}
	return out
}

const listPath = "/cont?restype=container&comp=list"

// A listing says of a blob what Get Blob Properties says, in the elements of the
// version asked with.
func TestListBlobsProperties(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	body := content(50_000, 1)
	put := r.put("/cont/dir/b%20%26%3C1", body, "x-ms-meta-One", "<1>", "x-ms-meta-two", "", "x-ms-blob-content-type", "text/x", "x-ms-access-tier", "Cool")
	require.Equal(t, http.StatusCreated, put.status)
	l := r.list(listPath + "&include=metadata,,uncommittedblobs&include=copy%2Cdeleted&maxresults=7&prefix=dir")
	require.Equal(t, r.url+"/acct/", l.ServiceEndpoint)
	require.Equal(t, "cont", l.ContainerName)
	require.Equal(t, "7", *l.MaxResults)
	require.Equal(t, "dir", *l.Prefix)
	require.Nil(t, l.Marker)
	require.Nil(t, l.Delimiter)
	require.Empty(t, l.NextMarker)
	require.Len(t, l.Blobs, 1)
	b := l.Blobs[0]
	require.Equal(t, "dir/b &<1", b.Name.Text)
	require.Empty(t, b.URL)
	require.Equal(t, listedProperties{
		LastModified: put.header.Get("Last-Modified"), CreationTime: put.header.Get("Last-Modified"),
		Etag: put.header.Get("ETag")[1 : len(put.header.Get("ETag"))-1], Length: "50000", ContentType: "text/x", MD5: md5Of(body),
		BlobType: "BlockBlob", AccessTier: "Cool", LeaseState: "available", LeaseStatus: "unlocked", ServerEncrypt: "false",
	}, b.Properties)
	require.Len(t, b.Metadata.Pairs, 2)
	require.Equal(t, "one", b.Metadata.Pairs[0].XMLName.Local)
	require.Equal(t, "<1>", b.Metadata.Pairs[0].Value)

	old := r.list(listPath, "x-ms-version", "2012-02-12")
	require.Equal(t, r.url+"/acct/cont", old.ContainerName)
	require.Equal(t, r.url+"/acct/cont/dir/b%20&%3C1", old.Blobs[0].URL)
	require.Empty(t, old.Blobs[0].Properties.AccessTier)
	require.Empty(t, old.Blobs[0].Properties.CreationTime)
	require.Nil(t, old.Blobs[0].Metadata)
}

// include=copy shows the copy that a blob, or a snapshot, came by, as its properties do.
func TestListedCopies(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 201, r.put("/cont/from", []byte("hello")).status)
	require.Equal(t, 202, r.copy("/cont/to", "/cont/from").status)
	require.Equal(t, 201, r.do(http.MethodPut, "/cont/to?comp=snapshot", nil).status)
	head := r.do(http.MethodHead, "/cont/to", nil).header
	want := "<CopyId>" + head.Get("x-ms-copy-id") + "</CopyId><CopyStatus>success</CopyStatus><CopySource>" + head.Get("x-ms-copy-source") +
		"</CopySource><CopyProgress>5/5</CopyProgress><CopyCompletionTime>" + head.Get("x-ms-copy-completion-time") + "</CopyCompletionTime>"
	require.Equal(t, 1, strings.Count(string(r.get(listPath+"&include=copy").body), want))
	require.Equal(t, 2, strings.Count(string(r.get(listPath+"&include=copy,snapshots").body), want))
	require.NotContains(t, string(r.get(listPath+"&include=snapshots").body), "<Copy")
	r.requireCode(r.get(listPath+"&include=copy", "x-ms-version", "2011-08-18"), 400, "InvalidQueryParameterValue")
}

// Pages of any size hold every blob and prefix once, in order, and what was written
// between pages does not move them; names that XML cannot carry are encoded.
func TestListBlobsPages(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Empty(t, r.list(listPath).names())
	for i := range 7 {
		r.put(fmt.Sprintf("/cont/a/%d", i), nil)
		r.put(fmt.Sprintf("/cont/b%d", i), nil)
	}
	r.put("/cont/%EF%BF%BF%20%2B%F0%9F%98%80", nil)
	const odd = "\uffff +\U0001f600"
	for _, size := range []int{1, 2, 3, 5000, 1 << 40} {
		var names []string
		marker := ""
		for {
			l := r.list(listPath + "&delimiter=%2f&marker=" + marker + fmt.Sprintf("&maxresults=%d", size))
			require.LessOrEqual(t, len(l.names()), size)
			names = append(names, l.names()...)
			if l.NextMarker == "" {
				break
			}
			r.put("/cont/a/0x", nil)
			marker = l.NextMarker
		}
		require.ElementsMatch(t, []string{">a/", "b0", "b1", "b2", "b3", "b4", "b5", "b6", url.PathEscape(odd[:3]) + "%20%2B%F0%9F%98%80"}, names)
	}
	l := r.list(listPath + "&prefix=%EF%BF%BF")
	require.Equal(t, "true", l.Blobs[0].Name.Encoded)
	l = r.list(listPath+"&prefix=%EF%BF%BF", "x-ms-version", "2020-12-06")
	require.Equal(t, listedName{Text: "\ufffd +\U0001f600"}, l.Blobs[0].Name)
	l = r.list(listPath + "&startFrom=b5")
	require.Equal(t, []string{"b5", "b6"}, l.names()[:2])
	require.Equal(t, []string{"a/3"}, r.list(listPath+"&prefix=a/3&delimiter=/").names())
}

// endBefore ends a listing ahead of a name, on any page, with prefixes and snapshots too, from 2026-06-06 on; before, it is a
// parameter like any that the service does not know.
func TestListEndBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, name := range []string{"a/1", "a/2", "b", "b/1", "c", "\uff5e", "\U0001f600"} {
		require.Equal(t, http.StatusCreated, r.put("/cont/"+url.PathEscape(name), nil).status)
	}
	require.Equal(t, http.StatusCreated, r.do(http.MethodPut, "/cont/b?comp=snapshot", nil).status)
	all := []string{"a/1", "a/2", "b", "b/1", "c", "\U0001f600", "\uff5e"}
	for query, want := range map[string][]string{
		"endBefore=c":                     all[:4],
		"endBefore=b":                     all[:2],
		"endBefore=b%00":                  all[:3],
		"endBefore=":                      all,
		"endBefore=a":                     nil,
		"endBefore=%EF%BD%9E":             all[:6],
		"endBefore=%F0%9F%98%80":          all[:5],
		"endBefore=c&startFrom=a/2":       {"a/2", "b", "b/1"},
		"endBefore=b&startFrom=b":         nil,
		"endBefore=b&startFrom=c":         nil,
		"endBefore=c&prefix=b":            {"b", "b/1"},
		"endBefore=a&prefix=b":            nil,
		"endBefore=b/1&prefix=b":          {"b"},
		"endBefore=a/2&delimiter=/":       {">a/"},
		"endBefore=a/1&delimiter=/":       nil,
		"endBefore=b/1&delimiter=/":       {">a/", "b"},
		"endBefore=b/2&delimiter=/":       {">a/", ">b/", "b"},
		"endBefore=b/1&include=snapshots": {"a/1", "a/2", "b", "b"},
		"endBefore=b&include=snapshots":   {"a/1", "a/2"},
		"endBefore=c&include=&showonly=":  all[:4],
	} {
		for _, size := range []int{1, 2, 5000} {
			var names, prefixes []string
			for marker, more := "", true; more; more = marker != "" {
				l := r.list(fmt.Sprint(listPath, "&", query, "&maxresults=", size, "&marker=", marker), "Accept", "application/vnd.apache.arrow.stream,application/xml", "x-ms-version", "2026-06-06")
				marker = l.NextMarker
				for _, p := range l.Prefixes {
					prefixes = append(prefixes, ">"+p.Text)
				}
				l.Prefixes = nil
				names = append(names, l.names()...)
			}
			require.Equal(t, want, append(prefixes, names...), "%s in pages of %d", query, size)
		}
	}
	require.Equal(t, all, r.list(listPath+"&endBefore=b", "x-ms-version", "2026-04-06").names())
}

// A page ends near its bound of bytes and says where the next begins.
// It holds invariant 8.
func TestListBlobsBytes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const blobsMade = 600
	for i := range blobsMade {
		require.Equal(t, http.StatusCreated, r.put(fmt.Sprintf("/cont/%04d", i), nil, "x-ms-meta-a", repeat("v", 8000)).status)
	}
	first := r.list(listPath + "&include=metadata")
	require.NotEmpty(t, first.NextMarker)
	require.Less(t, len(first.Blobs), blobsMade)
	second := r.list(listPath + "&include=metadata&marker=" + first.NextMarker)
	require.Empty(t, second.NextMarker)
	require.Equal(t, blobsMade, len(first.Blobs)+len(second.Blobs))
}

// Containers are listed in order, those that live alone, in pages.
func TestListContainers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, name := range []string{"b-2", "b-1", "zzz"} {
		require.Equal(t, http.StatusCreated, r.do(http.MethodPut, "/"+name+"?restype=container", nil, "x-ms-meta-k", "v").status)
	}
	require.Equal(t, http.StatusAccepted, r.do(http.MethodDelete, "/zzz?restype=container", nil).status)
	l := r.list("/?comp=list&include=metadata,deleted,system")
	require.Equal(t, []string{"b-1", "b-2", "cont"}, l.names())
	require.Equal(t, r.url+"/acct/", l.ServiceEndpoint)
	require.Equal(t, r.get("/b-1?restype=container").header.Get("ETag"), l.Containers[0].Properties.Etag)
	require.Equal(t, "v", l.Containers[0].Metadata.Pairs[0].Value)
	require.Empty(t, l.Containers[2].Metadata.Pairs)
	l = r.list("?comp=list&prefix=b&maxresults=1")
	require.Equal(t, []string{"b-1"}, l.names())
	require.Nil(t, l.Containers[0].Metadata)
	l = r.list("/?comp=list&prefix=b&maxresults=1&marker=" + l.NextMarker)
	require.Equal(t, []string{"b-2"}, l.names())
	require.Empty(t, l.NextMarker)
}

// What a listing cannot answer is refused.
// It holds invariant 7.
func TestListRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, c := range []struct{ query, version, code string }{
		{"maxresults=0", "", "OutOfRangeQueryParameterValue"},
		{"maxresults=-1", "", "OutOfRangeQueryParameterValue"},
		{"maxresults=-99999999999999999999", "", "OutOfRangeQueryParameterValue"},
		{"maxresults=x", "", "InvalidQueryParameterValue"},
		{"prefix=%ff", "", "InvalidQueryParameterValue"},
		{"include=nothing", "", "InvalidQueryParameterValue"},
		{"include=metadata,permissions", "", "InvalidQueryParameterValue"},
	} {
		for _, path := range []string{listPath, "/?comp=list"} {
			r.requireCode(r.get(path+"&"+c.query), http.StatusBadRequest, c.code)
		}
	}
	for _, marker := range []string{"%21", "AA", "b5", "garbage"} { // None that was given. The service has two codes.
		r.requireCode(r.get(listPath+"&marker="+marker), http.StatusBadRequest, "InvalidQueryParameterValue")
		r.requireCode(r.get("/?comp=list&marker="+marker), http.StatusBadRequest, "OutOfRangeInput")
	}
	for _, more := range []string{"6000", "99999999999999999999"} { // As many as there may be.
		require.Equal(t, http.StatusOK, r.get(listPath+"&maxresults="+more).status)
	}
	for _, query := range []string{"delimiter=%ff", "showonly=files", "include=snapshots&delimiter=/", "startFrom=%ff", "endBefore=%ff"} {
		r.requireCode(r.get(listPath+"&"+query), http.StatusBadRequest, "InvalidQueryParameterValue")
	}
	r.requireCode(r.get(listPath+"&include=tags", "x-ms-version", "2019-07-07"), http.StatusBadRequest, "InvalidQueryParameterValue")
	r.requireCode(r.get("/none?restype=container&comp=list"), http.StatusNotFound, "ContainerNotFound")
	r.requireCode(r.do(http.MethodPut, listPath, nil), http.StatusMethodNotAllowed, "UnsupportedHttpVerb")
}
