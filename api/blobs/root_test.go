package blobs

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/auth"
	"antipode/services/storageerr"
)

const (
	rootPath = "/$root?restype=container"
	listRoot = rootPath + "&comp=list"
)

// Numbered cases of the root container (protocol/blob.md 1.2, 1.3, C1 to C10): it is made, described, leased and deleted
// as any other, and its blobs have two paths.
func TestRootContainer(t *testing.T) {
	t.Parallel()
	r := newBatchRig(t, func(o *Options) { o.NameRest = 0 })
	// 1: before it is made, nothing is in it, by either path.
	for _, path := range []string{"/$root/b", "/b"} {
		r.requireCode(r.put(path, []byte("x")), 404, "ContainerNotFound")
		r.requireCode(r.get(path), 404, "ContainerNotFound")
	}
	r.requireCode(r.get(listRoot), 404, "ContainerNotFound")
	// 2: it is made once, as any other, with metadata.
	made := r.do(http.MethodPut, rootPath, nil, "x-ms-meta-k", "v")
	require.Equal(t, 201, made.status, "%s", made.body)
	r.requireCode(r.do(http.MethodPut, "/%24root?restype=container", nil), 409, "ContainerAlreadyExists")
	got := r.get(rootPath)
	require.Equal(t, "v", got.header.Get("x-ms-meta-k"))
	require.Equal(t, made.header.Get("ETag"), got.header.Get("ETag"))
	require.Equal(t, 200, r.do(http.MethodPut, rootPath+"&comp=metadata", nil, "x-ms-meta-k", "w").status)
	require.Equal(t, "w", r.get(rootPath+"&comp=metadata").header.Get("x-ms-meta-k"))
	// 3: a blob that is written by one path is read by the other, whatever its size.
	for i, body := range [][]byte{[]byte("x"), content(50_000, 1)} {
		paths := []string{"/b", "/$root/b", "/%24root/%62"}
		require.Equal(t, 201, r.put(paths[i], body).status)
		for _, path := range paths {
			r.requireBlob(path, body)
			require.Equal(t, r.get("/b").header.Get("ETag"), r.do(http.MethodHead, path, nil).header.Get("ETag"))
		}
	}
	r.requireCode(r.get("/none"), 404, "BlobNotFound")
	r.requireCode(r.get("/cont/b"), 404, "BlobNotFound")
	// 4: a name may be one that no container has, as that of the container itself, but has no slash, however it is written.
	for _, path := range []string{"/$root/$root", "/$logs", "/a", "/UPPER.txt", "/cont", "/%24root/%E2%82%AC%20%2B"} {
		require.Equal(t, 201, r.put(path, []byte(path)).status, path)
	}
	r.requireBlob("/$root", []byte("/$root/$root"))
	r.requireBlob("/$root/cont", []byte("/cont"))
	r.requireBlob("/%E2%82%AC%20%2B", []byte("/%24root/%E2%82%AC%20%2B"))
	for _, path := range []string{"/$root/a/b", "/$root/a%2Fb", "/a%2Fb", `/$root/a%5Cb`, `/a%5Cb`, "/$root//a", "/$root/a/", "/$root/", "/a/"} {
		for _, method := range []string{http.MethodPut, http.MethodGet, http.MethodDelete} {
			r.requireCode(r.do(method, path, nil, "x-ms-blob-type", "BlockBlob"), 400, "InvalidUri")
		}
	}
	// 5: it is listed, with what is in it; ahead of the other containers. In the URLs of old listings it has no name.
	l := r.list(listRoot)
	require.Equal(t, "$root", l.ContainerName)
	require.Equal(t, []string{"$logs", "$root", "UPPER.txt", "a", "b", "cont", "€ +"}, l.names())
	require.Equal(t, []string{">$", "UPPER.txt", "a", "b", "cont", "€ +"}, sortedPrefixes(r.list(listRoot+"&delimiter=$")))
	require.Equal(t, []string{"b", "cont"}, r.list(listRoot+"&startFrom=b&endBefore=d").names())
	old := r.list(listRoot, "x-ms-version", "2012-02-12")
	require.Equal(t, r.url+"/acct/UPPER.txt", old.Blobs[2].URL)
	require.Equal(t, []string{"$root", "cont"}, r.list("/?comp=list").names())
	require.Equal(t, []string{"$root"}, r.list("/?comp=list&prefix=%24r").names())
	require.Equal(t, []string{"$root", "cont"}, r.list("/?comp=list&include=system", "x-ms-version", "2021-02-12").names())
	// 6: blocks, snapshots, tags, tiers, properties and appends.
	require.Equal(t, 201, r.do(http.MethodPut, "/blocks?comp=block&blockid=AAAA", []byte("one")).status)
	require.Equal(t, 201, r.do(http.MethodPut, "/$root/blocks?comp=blocklist", []byte("<BlockList><Latest>AAAA</Latest></BlockList>")).status)
	r.requireBlob("/blocks", []byte("one"))
	require.Contains(t, string(r.get("/blocks?comp=blocklist").body), "<Name>AAAA</Name>")
	kept := r.do(http.MethodPut, "/blocks?comp=snapshot", nil)
	require.Equal(t, 201, kept.status, "%s", kept.body)
	require.Equal(t, 201, r.put("/blocks", []byte("two")).status)
	r.requireBlob("/$root/blocks?snapshot="+kept.header.Get("x-ms-snapshot"), []byte("one"))
	require.Equal(t, 204, r.do(http.MethodPut, "/b?comp=tags", tagSet("<Key>k</Key><Value>v</Value>")).status)
	require.Equal(t, map[string]string{"k": "v"}, r.tags("/$root/b"))
	require.Equal(t, 200, r.do(http.MethodPut, "/b?comp=tier", nil, "x-ms-access-tier", "Cool").status)
	require.Equal(t, 200, r.do(http.MethodPut, "/b?comp=properties", nil, "x-ms-blob-content-type", "text/x").status)
	require.Equal(t, 200, r.do(http.MethodPut, "/$root/b?comp=metadata", nil, "x-ms-meta-k", "v").status)
	head := r.do(http.MethodHead, "/b", nil)
	require.Equal(t, "text/x v Cool", strings.Join([]string{
		head.header.Get("Content-Type"), head.header.Get("x-ms-meta-k"), head.header.Get("x-ms-access-tier"),
	}, " "))
	require.Equal(t, 201, r.do(http.MethodPut, "/log", nil, "x-ms-blob-type", "AppendBlob").status)
	require.Equal(t, 201, r.do(http.MethodPut, "/$root/log?comp=appendblock", []byte("line")).status)
	r.requireBlob("/log", []byte("line"))
	// 7: leases, of a blob by both paths, and of the container.
	held := r.do(http.MethodPut, "/b?comp=lease", nil, "x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1")
	require.Equal(t, 201, held.status, "%s", held.body)
	r.requireCode(r.put("/$root/b", []byte("y")), 412, "LeaseIdMissing")
	release := []string{"x-ms-lease-action", "release", "x-ms-lease-id", held.header.Get("x-ms-lease-id")}
	require.Equal(t, 200, r.do(http.MethodPut, "/$root/b?comp=lease", nil, release...).status)
	held = r.do(http.MethodPut, rootPath+"&comp=lease", nil, "x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1")
	require.Equal(t, 201, held.status, "%s", held.body)
	r.requireCode(r.do(http.MethodDelete, rootPath, nil), 412, "LeaseIdMissing")
	release[3] = held.header.Get("x-ms-lease-id")
	require.Equal(t, 200, r.do(http.MethodPut, rootPath+"&comp=lease", nil, release...).status)
	// 8: stored access policies.
	policy := []byte("<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>")
	require.Equal(t, 200, r.do(http.MethodPut, rootPath+"&comp=acl", policy).status)
	require.Contains(t, string(r.get(rootPath+"&comp=acl").body), "<Id>p</Id>")
	// 9: batches, by key and by signature, of the account and of the container; a part with a slash is refused by itself.
	root := auth.Resource{Container: "$root"}
	parts := r.batch("/?comp=batch", bodyOf(
		deleting("/a"), deleting("/$root/UPPER.txt"), deleting("/$root/a/b"), deleting("/$root/none"),
		deleting("/log").bySAS(t, root, "sr=c&sp=d"),
		deleting("/cont").bySAS(t, auth.Resource{Container: "$root", Blob: "cont"}, "sr=b&sp=d"),
		deleting("/$logs").bySAS(t, auth.Resource{Container: "$root", Blob: "none"}, "sr=b&sp=d"),
	))
	require.Equal(t, "202, 202, 400 InvalidUri, 404 BlobNotFound, 202, 202, 403 AuthenticationFailed", saidOf(t, parts))
	parts = r.batch(rootPath+"&comp=batch", bodyOf(deleting("/$logs"), deleting("/$root/$root")))
	require.Equal(t, "202, 202", saidOf(t, parts))
	require.Equal(t, []string{"b", "blocks", "€ +"}, r.list(listRoot).names())
	// 10: information of the account by its path.
	require.Equal(t, "Standard_RAGRS", r.get("/$root?restype=account&comp=properties").header.Get("x-ms-sku-name"))
	// 11: it is deleted with what is in it, and a new one is empty.
	require.Equal(t, 202, r.do(http.MethodDelete, rootPath, nil).status)
	r.requireCode(r.get("/b"), 404, "ContainerNotFound")
	require.Equal(t, []string{"cont"}, r.list("/?comp=list").names())
	require.Equal(t, 201, r.do(http.MethodPut, rootPath, nil).status)
	r.requireCode(r.get("/b"), 404, "BlobNotFound")
	require.Empty(t, r.list(listRoot).names())
}

// sortedPrefixes are the names of a listing, prefixes first.
func sortedPrefixes(l listed) []string {
	blobs, prefixes := l, l
	blobs.Prefixes, prefixes.Blobs = nil, nil
	return append(prefixes.names(), blobs.names()...)
}

// saidOf is the status and the code of each part.
func saidOf(t *testing.T, parts []gotPart) string {
	t.Helper()
	var said []string
	for _, p := range parts {
		said = append(said, strings.TrimSpace(fmt.Sprint(p.status, " ", p.code(t))))
	}
	return strings.Join(said, ", ")
}

// Numbered cases of $web (protocol/blob.md 1.3): clients make it and use it as any other, with slashes in names, and it is
// listed without being asked for.
func TestWebContainer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const web = "/$web?restype=container"
	// 1: it is there once a client makes it.
	r.requireCode(r.get("/$web/index.html"), 404, "ContainerNotFound")
	r.requireCode(r.put("/$web/index.html", []byte("x")), 404, "ContainerNotFound")
	require.Equal(t, 201, r.do(http.MethodPut, web, nil).status)
	// 2: pages in folders.
	require.Equal(t, 201, r.put("/$web/index.html", []byte("<html>"), "x-ms-blob-content-type", "text/html").status)
	require.Equal(t, 201, r.put("/%24web/css%2Fa.css", []byte("a{}")).status)
	r.requireBlob("/$web/css/a.css", []byte("a{}"))
	require.Equal(t, "text/html", r.get("/$web/index.html").header.Get("Content-Type"))
	require.Equal(t, []string{"css/a.css", "index.html"}, r.list(web+"&comp=list").names())
	require.Equal(t, []string{">css/", "index.html"}, sortedPrefixes(r.list(web+"&comp=list&delimiter=/")))
	// 3: listed with include=system and without it, in every version.
	for _, include := range []string{"", "&include=system"} {
		require.Equal(t, []string{"$web", "cont"}, r.list("/?comp=list"+include).names())
	}
	require.Equal(t, []string{"$web", "cont"}, r.list("/?comp=list", "x-ms-version", "2009-09-19").names())
	// 4: between $root and the others, and page by page.
	require.Equal(t, 201, r.do(http.MethodPut, rootPath, nil).status)
	require.Equal(t, 201, r.do(http.MethodPut, "/0-a?restype=container", nil).status)
	var names []string
	for marker, more := "", true; more; more = marker != "" {
		l := r.list("/?comp=list&maxresults=1&marker=" + marker)
		names, marker = append(names, l.names()...), l.NextMarker
	}
	require.Equal(t, []string{"$root", "$web", "0-a", "cont"}, names)
	// 5: deleted as any other, and its name rests.
	require.Equal(t, 202, r.do(http.MethodDelete, web, nil).status)
	r.requireCode(r.get("/$web/index.html"), 404, "ContainerNotFound")
	r.requireCode(r.do(http.MethodPut, web, nil), 409, "ContainerBeingDeleted")
}

// Numbered cases of the containers that the service alone makes: $logs and $blobchangefeed (protocol/blob.md 1.3,
// protocol/service.md 6). They are not there, and nothing that a client sends makes one or writes in it.
func TestReservedContainers(t *testing.T) {
	t.Parallel()
	r := newBatchRig(t, nil)
	before := r.state()
	for _, path := range []string{"/$logs", "/$blobchangefeed"} {
		box := path + "?restype=container"
		// 1: what writes in one, or would make it, is refused before its headers are read.
		for _, request := range []string{
			"PUT " + box, "DELETE " + box, "PUT " + box + "&comp=metadata", "PUT " + box + "&comp=acl", "PUT " + box + "&comp=lease",
			"PUT " + path + "/a/b", "PUT " + path + "/a?comp=block&blockid=AAAA", "PUT " + path + "/a?comp=blocklist",
			"PUT " + path + "/a?comp=metadata", "PUT " + path + "/a?comp=properties", "PUT " + path + "/a?comp=tags",
			"PUT " + path + "/a?comp=tier", "PUT " + path + "/a?comp=snapshot", "PUT " + path + "/a?comp=lease",
			"PUT " + path + "/a?comp=appendblock", "PUT " + path + "/a?comp=seal",
		} {
			method, target, _ := strings.Cut(request, " ")
			a := r.do(method, target, []byte("x"), "x-ms-blob-type", "BlockBlob", "x-ms-meta-", "x")
			r.requireCode(a, 403, "InsufficientAccountPermissions")
			var doc struct{ Message string }
			require.NoError(t, xml.Unmarshal(a.body, &doc))
			require.True(t, strings.HasPrefix(doc.Message, storageerr.ReservedContainer.Message), request)
		}
		// So are copies to one.
		for _, query := range []string{"", "?comp=block&blockid=AAAA", "?comp=appendblock"} {
			for _, kind := range [][]string{nil, {"x-ms-blob-type", "BlockBlob"}, {"x-ms-requires-sync", "true"}} {
				r.requireCode(r.copyFrom(path+"/a"+query, "no URL", kind...), 403, "InsufficientAccountPermissions")
			}
		}
		// 2: reads find that there is none.
		for _, target := range []string{box, box + "&comp=metadata", box + "&comp=acl", box + "&comp=list", path + "/a", path + "/a?comp=blocklist", path + "/a?comp=tags"} {
			r.requireCode(r.get(target), 404, "ContainerNotFound")
		}
		require.Equal(t, 404, r.do(http.MethodHead, path+"/a", nil).status)
	}
	// 3: a client may delete what is in $logs, but not in the other.
	r.requireCode(r.do(http.MethodDelete, "/$logs/blob/2026/11/30/1700/000000.log", nil), 404, "ContainerNotFound")
	r.requireCode(r.do(http.MethodDelete, "/$blobchangefeed/meta/segments.json", nil), 403, "InsufficientAccountPermissions")
	// 4: of a batch, each part is refused by itself.
	parts := r.batch("/?comp=batch", bodyOf(deleting("/$logs/a"), deleting("/$blobchangefeed/a"), deleting("/cont/none")))
	require.Equal(t, "404 ContainerNotFound, 403 InsufficientAccountPermissions, 404 BlobNotFound", saidOf(t, parts))
	parts = r.batch("/$blobchangefeed?restype=container&comp=batch", bodyOf(deleting("/$blobchangefeed/a")))
	require.Equal(t, "403 InsufficientAccountPermissions", saidOf(t, parts))
	// 5: other names with a dollar sign are none, and these are listed by no include.
	for _, path := range []string{"/$other", "/$logs2", "/$LOGS", "/a$b"} {
		r.requireCode(r.do(http.MethodPut, path+"?restype=container", nil), 400, "InvalidResourceName")
	}
	require.Equal(t, []string{"cont"}, r.list("/?comp=list&include=system,metadata").names())
	require.Equal(t, before, r.state())
}
