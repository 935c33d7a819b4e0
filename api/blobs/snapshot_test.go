package blobs

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// snap makes a snapshot of a blob and returns the path of it.
func (r *rig) snap(path string, header ...string) string {
	r.t.Helper()
	a := r.do(http.MethodPut, path+"?comp=snapshot", nil, header...)
	require.Equal(r.t, 201, a.status, a.body)
	return path + "?snapshot=" + url.QueryEscape(a.header.Get("x-ms-snapshot"))
}

// A snapshot is read, with ranges and conditions that are its, while the blob goes on: inline, in chunks, in blocks with its
// block list. Its headers are the blob's without a lease. It goes alone, and leaves the others (protocol/blob.md 14).
//
// Capability: Blobs: Snapshots.
func TestSnapshotsOfEachKind(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	block := func(path, id string, body []byte, header ...string) {
		query := "?comp=block&blockid=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(id)))
		require.Equal(t, 201, r.do(http.MethodPut, path+query, body, header...).status)
	}
	list := func(path string, ids ...string) {
		text := ""
		for _, id := range ids {
			text += "<Latest>" + base64.StdEncoding.EncodeToString([]byte(id)) + "</Latest>"
		}
		require.Equal(t, 201, r.do(http.MethodPut, path+"?comp=blocklist", []byte("<BlockList>"+text+"</BlockList>")).status)
	}
	small, large := content(9, 1), content(3<<20+5, 2)
	require.Equal(t, 201, r.put("/cont/small", small, "x-ms-meta-k", "v", "Content-Type", "a/b").status)
	require.Equal(t, 201, r.put("/cont/large", large).status)
	block("/cont/listed", "i1", small)
	block("/cont/listed", "i2", large)
	list("/cont/listed", "i2", "i1")
	for path, want := range map[string][]byte{"/cont/small": small, "/cont/large": large, "/cont/listed": append(append([]byte(nil), large...), small...)} {
		require.Equal(t, 201, r.lease(path+"?", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", leaseA).status)
		before := r.do(http.MethodHead, path, nil)
		snap, second := r.snap(path), r.snap(path, "x-ms-lease-id", leaseA)
		r.requireCode(r.do(http.MethodPut, path+"?comp=snapshot", nil, "x-ms-lease-id", leaseB), 412, "LeaseIdMismatchWithBlobOperation")
		block(path, "i3", []byte("uncommitted"), "x-ms-lease-id", leaseA)
		if path == "/cont/listed" {
			a := r.get(snap + "&comp=blocklist&blocklisttype=all")
			require.Contains(t, string(a.body), "<CommittedBlocks><Block><Name>aTI=</Name>")
			require.Contains(t, string(a.body), "<UncommittedBlocks></UncommittedBlocks>")
			r.requireCode(r.do(http.MethodPut, path+"?comp=blocklist", []byte("<BlockList><Latest>aTM=</Latest></BlockList>")), 412, "LeaseIdMissing")
			a = r.do(http.MethodPut, path+"?comp=blocklist", []byte("<BlockList><Latest>aTM=</Latest></BlockList>"), "x-ms-lease-id", leaseA)
			require.Equal(t, 201, a.status)
		} else {
			require.Equal(t, 201, r.put(path, []byte("over"), "x-ms-lease-id", leaseA).status)
		}
		r.requireBlob(snap, want)
		r.requireBlob(second, want)
		a := r.get(snap, "x-ms-range", "bytes=3-6")
		require.Equal(t, 206, a.status)
		require.Equal(t, want[3:7], a.body)
		a = r.do(http.MethodHead, snap, nil)
		require.Equal(t, before.header.Get("ETag"), a.header.Get("ETag"))
		require.Equal(t, before.header.Get("Last-Modified"), a.header.Get("Last-Modified"))
		require.Equal(t, before.header.Get("x-ms-meta-k"), a.header.Get("x-ms-meta-k"))
		require.Equal(t, before.header.Get("Content-Type"), a.header.Get("Content-Type"))
		require.Equal(t, "leased", before.header.Get("x-ms-lease-state"))
		require.Empty(t, a.header.Get("x-ms-lease-state")+a.header.Get("x-ms-lease-status")+a.header.Get("x-ms-lease-duration"))
		require.Equal(t, 304, r.get(snap, "If-None-Match", before.header.Get("ETag")).status)
		r.requireCode(r.get(snap, "If-Match", r.do(http.MethodHead, path, nil).header.Get("ETag")), 412, "ConditionNotMet")

		r.requireCode(r.do(http.MethodDelete, path, nil, "x-ms-lease-id", leaseA), 409, "SnapshotsPresent")
		a = r.do(http.MethodDelete, snap, nil)
		require.Equal(t, 202, a.status, "the lease does not protect it")
		require.Equal(t, "true", a.header.Get("x-ms-delete-type-permanent"))
		r.requireCode(r.get(snap), 404, "BlobNotFound")
		r.requireBlob(second, want)
		r.requireCode(r.do(http.MethodDelete, path, nil, "x-ms-delete-snapshots", "only"), 412, "LeaseIdMissing")
		require.Equal(t, 202, r.do(http.MethodDelete, path, nil, "x-ms-delete-snapshots", "only", "x-ms-lease-id", leaseA).status)
		r.requireCode(r.get(second), 404, "BlobNotFound")
		require.Equal(t, 200, r.get(path).status)
		r.snap(path)
		require.Equal(t, 202, r.do(http.MethodDelete, path, nil, "x-ms-delete-snapshots", "include", "x-ms-lease-id", leaseA).status)
		r.requireCode(r.get(path), 404, "BlobNotFound")
	}
	require.Zero(t, r.abandoned.Load())
}

// Metadata that is given is the snapshot's, which then has an ETag of its time; none given is the blob's.
func TestMetadataOfSnapshot(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 201, r.put("/cont/b", []byte("x"), "x-ms-meta-k", "v").status)
	tag := r.do(http.MethodHead, "/cont/b", nil).header.Get("ETag")
	plain, named := r.snap("/cont/b"), r.snap("/cont/b", "x-ms-meta-other", "w")
	a := r.get(plain + "&comp=metadata")
	require.Equal(t, []string{"v", ""}, []string{a.header.Get("x-ms-meta-k"), a.header.Get("x-ms-meta-other")})
	require.Equal(t, tag, a.header.Get("ETag"))
	a = r.get(named + "&comp=metadata")
	require.Equal(t, []string{"", "w"}, []string{a.header.Get("x-ms-meta-k"), a.header.Get("x-ms-meta-other")})
	require.NotEqual(t, tag, a.header.Get("ETag"))
	require.Equal(t, tag, r.do(http.MethodHead, "/cont/b", nil).header.Get("ETag"), "the blob keeps it")
}

// A listing has the snapshots of a blob ahead of it, oldest first, without elements of leases, in pages of any size, and
// without the item the blobs alone.
func TestListSnapshots(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	var want []string
	for _, name := range []string{"a", "b", "c"} {
		require.Equal(t, 201, r.put("/cont/"+name, []byte(name)).status)
		for range 3 {
			if name != "b" {
				at, err := url.ParseQuery(r.snap("/cont/" + name)[len("/cont/a?"):])
				require.NoError(t, err)
				want = append(want, name+" "+at.Get("snapshot"))
			}
		}
		want = append(want, name+" ")
	}
	for _, size := range []int{1, 2, 3, 5000} {
		var got []string
		for marker := ""; ; {
			l := r.list(fmt.Sprintf("%s&include=snapshots&maxresults=%d&marker=%s", listPath, size, marker))
			require.LessOrEqual(t, len(l.Blobs), size)
			for _, b := range l.Blobs {
				got = append(got, b.Name.Text+" "+b.Snapshot)
				require.Equal(t, b.Snapshot == "", b.Properties.LeaseState != "", b)
			}
			if marker = l.NextMarker; marker == "" {
				break
			}
		}
		require.Equal(t, want, got, size)
	}
	l := r.list(listPath)
	require.Len(t, l.Blobs, 3)
	r.requireCode(r.get("/?comp=list&marker=AgAAAAAAAAABYQ"), 400, "OutOfRangeInput")
	a := r.get(listPath+"&include=snapshots&prefix=a", "x-ms-version", "2009-09-19")
	require.Contains(t, string(a.body), "/cont/a?snapshot="+url.QueryEscape(want[0][2:])+"</Url>")
}
