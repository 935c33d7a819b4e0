package blobs

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/auth"
	"antipode/geo"
)

// Each part is answered as the request that it is, in the order of the request, whatever becomes of the others
// (protocol/blob.md S8), at the account, at the container, and in the form of one SDK.
//
// Capability: Blobs: Batches.
func TestPartsOfABatch(t *testing.T) {
	t.Parallel()
	r := newBatchRig(t, nil)
	in := func(name string) auth.Resource { return auth.Resource{Container: name} }
	policies := "<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Expiry>2999-01-01</Expiry><Permission>d</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
	require.Equal(t, http.StatusCreated, r.do(http.MethodPut, "/other?restype=container", nil).status)
	require.Equal(t, http.StatusOK, r.do(http.MethodPut, "/cont?restype=container&comp=acl", []byte(policies)).status)
	const lease = "11111111-1111-4111-8111-111111111111"
	for _, path := range []string{"/?comp=batch", "/?restype=container&comp=batch", "/cont?restype=container&comp=batch"} {
		for _, name := range []string{"1", "2", "6", "7", "8", "9", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "a/b c", "sas"} {
			require.Equal(t, http.StatusCreated, r.put("/cont/"+strings.ReplaceAll(name, " ", "%20"), nil).status)
		}
		require.Equal(t, http.StatusCreated, r.do(http.MethodPut, "/cont/6?comp=lease", nil, "x-ms-lease-action", "acquire",
			"x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", lease).status)
		require.Equal(t, http.StatusCreated, r.do(http.MethodPut, "/cont/7?comp=lease", nil, "x-ms-lease-action", "acquire",
			"x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", lease).status)
		etag := r.get("/cont/9").header.Get("ETag")
		cases := []struct {
			sentPart
			want string
		}{
			0:  {deleting("/cont/none"), "404 BlobNotFound"},
			1:  {deleting("/cont/1"), "202"},
			2:  {deleting("/cont/2", "x-ms-delete-snapshots", "include"), "202"},
			3:  {deleting("/cont/1", "x-ms-delete-snapshots", "x"), "400 InvalidHeaderValue"},
			4:  {deleting("/cont/a%2Fb%20c"), "202"},
			5:  {deleting("/cont/1"), "404 BlobNotFound"}, // Behind 1.
			6:  {deleting("/cont/6"), "412 LeaseIdMissing"},
			7:  {deleting("/cont/7", "x-ms-lease-id", lease), "202"},
			8:  {deleting("/cont/8", "If-Match", `"0x1"`), "412 ConditionNotMet"},
			9:  {deleting("/cont/9", "If-Match", etag), "202"},
			10: {sentPart{method: "DELETE", path: "/cont/8"}, "401 NoAuthenticationInformation"},
			11: {sentPart{method: "DELETE", path: "/cont/11", key: []byte("another key")}, "403 AuthenticationFailed"},
			12: {deleting("/cont/12", "x-ms-date", "Sun, 06 Nov 1994 08:49:37 GMT"), "403 AuthenticationFailed"},
			13: {deleting("/cont/13").bySAS(t, in("cont"), "sr=c&sp=d"), "202"},
			14: {deleting("/cont/14").bySAS(t, in("other"), "sr=c&sp=d"), "403 AuthenticationFailed"},
			15: {deleting("/cont/15").bySAS(t, in("cont"), "sr=c&sp=rwl"), "403 AuthorizationPermissionMismatch"},
			16: {deleting("/cont/16").bySAS(t, auth.Resource{}, "ss=b&srt=o&sp=d"), "202"},
			17: {deleting("/cont/17").bySAS(t, auth.Resource{}, "ss=b&srt=sc&sp=d"), "403 AuthorizationResourceTypeMismatch"},
			18: {deleting("/cont/18").bySAS(t, in("cont"), "sr=c&si=p"), "202"},
			19: {deleting("/cont/19").bySAS(t, in("cont"), "sr=c&si=q"), "403 AuthenticationFailed"},
			20: {deleting("/cont/20", "x-ms-version", testVersion), "202"},
			21: {deleting("/cont/21", "x-ms-version", "2020-10-02"), "400 InvalidHeaderValue"},
			22: {deleting("/cont/22", "x-ms-if-tags", "a='b'"), "412 ConditionNotMet"},
			23: {deleting("/cont/sas").bySAS(t, auth.Resource{Container: "cont", Blob: "sas"}, "sr=b&sp=d"), "202"},
		}
		var parts []sentPart
		var want []string
		for i, c := range cases {
			c.header = append(c.header, "x-ms-client-request-id", fmt.Sprint("client-", i))
			parts, want = append(parts, c.sentPart), append(want, c.want)
		}
		if !strings.HasPrefix(path, "/cont") {
			parts = append(parts, deleting("/none/6"), deleting("/other/6"), deleting("/cont/none"))
			want = append(want, "404 ContainerNotFound", "404 BlobNotFound", "404 BlobNotFound")
		}
		got := r.batch(path, bodyOf(parts...))
		require.Equal(t, want, said(t, got), path)
		got = got[:len(cases)]
		ids := map[string]bool{}
		for i, p := range got {
			require.Equal(t, fmt.Sprint(i), p.contentID)
			require.Equal(t, testVersion, p.header.Get("x-ms-version"))
			require.Equal(t, fmt.Sprint("client-", i), p.header.Get("x-ms-client-request-id"))
			ids[p.header.Get("x-ms-request-id")] = true
			if p.status == http.StatusAccepted {
				require.Equal(t, "true", p.header.Get("x-ms-delete-type-permanent"))
				require.Empty(t, p.body)
			} else {
				require.Equal(t, "application/xml", p.header.Get("Content-Type"))
				require.Contains(t, string(p.body), p.header.Get("x-ms-request-id"))
			}
		}
		require.Len(t, ids, len(got))
		require.Equal(t, []string{"11", "12", "14", "15", "17", "19", "21", "22", "6", "8"}, r.list(listPath).names(), path)
		require.Equal(t, http.StatusOK, r.do(http.MethodPut, "/cont/6?comp=lease", nil, "x-ms-lease-action", "release", "x-ms-lease-id", lease).status)
	}
}

// The signature of a part is that of the whole request: what is altered in it is refused.
func TestAlteredParts(t *testing.T) {
	t.Parallel()
	r := newBatchRig(t, nil)
	require.Equal(t, http.StatusCreated, r.put("/cont/b", nil).status)
	before := r.state()
	signed := bodyOf(deleting("/cont/c", "If-Match", "*"))
	for _, altered := range [][2]string{
		{"/cont/c", "/cont/b"},
		{"/cont/c", "/cont/b?x="},

		{"if-match: *", `if-match: "x"`},
		{"DELETE ", "PUT "},
		{"/cont/c ", "/cont/c?snapshot=2011-03-09T01:42:34.9360000Z "},
	} {
		a := r.sendBatch("/?comp=batch", strings.Replace(signed, altered[0], altered[1], 1))
		if altered[0] == "DELETE " {
			r.requireCode(a, http.StatusBadRequest, "InvalidInput") // Put Blob has no place there.
			continue
		}
		require.Equal(t, []string{"403 AuthenticationFailed"}, said(t, partsOf(t, a)), altered)
	}
	require.Equal(t, before, r.state())
}

// A batch that is none is refused as a whole, and has no effect.
func TestRefusedBatches(t *testing.T) {
	t.Parallel()
	r := newBatchRig(t, nil)
	require.Equal(t, http.StatusCreated, r.put("/cont/b", nil).status)
	require.Equal(t, http.StatusCreated, r.put("/cont/acct-secondary/b", nil).status)
	good := bodyOf(deleting("/cont/b"))
	of := func(p sentPart) string { return bodyOf(deleting("/cont/b"), p) }
	line := func(request string, header ...string) string {
		return strings.TrimSuffix(good, "--b--\r\n") + "--b\r\n\r\n" + request + " HTTP/1.1\r\n" + strings.Join(header, "\r\n") + "\r\n\r\n--b--\r\n"
	}
	tier := sentPart{method: http.MethodPut, path: "/cont/b?comp=tier", header: []string{"x-ms-access-tier", "Cool"}, key: batchKey}
	for name, c := range map[string]struct {
		path, body string
		header     []string
		status     int
		code       string
	}{
		"nothing":               {"/?comp=batch", "", nil, 400, "InvalidInput"},
		"no part":               {"/?comp=batch", "--b--\r\n", nil, 400, "InvalidInput"},
		"no end of headers":     {"/?comp=batch", "--b\r\nContent-Type: application/http\r\n--b--\r\n", nil, 400, "InvalidInput"},
		"another boundary":      {"/?comp=batch", strings.ReplaceAll(good, "--b", "--x"), nil, 400, "InvalidInput"},
		"no boundary":           {"/?comp=batch", good, []string{"Content-Type", "multipart/mixed"}, 400, "InvalidInput"},
		"another type":          {"/?comp=batch", good, []string{"Content-Type", "application/xml"}, 400, "InvalidInput"},
		"no type":               {"/?comp=batch", good, []string{"Content-Type", ""}, 400, "InvalidInput"},
		"no request line":       {"/?comp=batch", line("x"), nil, 400, "InvalidInput"},
		"a header that is none": {"/?comp=batch", line("DELETE /acct/cont/b", "x"), nil, 400, "InvalidInput"},
		"a control character":   {"/?comp=batch", line("DELETE /acct/cont/b", "x-ms-a: \x01"), nil, 400, "InvalidInput"},
		"too many headers":      {"/?comp=batch", line("DELETE /acct/cont/b", strings.Repeat("a: b\r\n", 65)+"c: d"), nil, 400, "InvalidInput"},
		"headers without end":   {"/?comp=batch", "--b\r\n\r\nDELETE /acct/cont/b HTTP/1.1\r\n" + strings.Repeat("a: b\r\n", 600_000), nil, 400, "InvalidInput"},
		"a change set":          {"/?comp=batch", "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + strings.ReplaceAll(good, "--b", "--c") + "--b--\r\n", nil, 400, "InvalidInput"},
		"a blank in a name":     {"/?comp=batch", line("DELETE /acct/cont/a b"), nil, 400, "InvalidInput"},
		"a name that is none":   {"/?comp=batch", line("DELETE /acct/cont/%zz"), nil, 400, "InvalidInput"},
		"a query that is none":  {"/?comp=batch", line("DELETE /acct/cont/b?a=%zz"), nil, 400, "InvalidQueryParameterValue"},
		"a container":           {"/?comp=batch", of(sentPart{method: "DELETE", path: "/cont?restype=container", key: batchKey}), nil, 400, "InvalidInput"},
		"the account":           {"/?comp=batch", line("DELETE /acct/"), nil, 400, "InvalidInput"},
		"another operation":     {"/?comp=batch", of(sentPart{method: "GET", path: "/cont/b", key: batchKey}), nil, 400, "InvalidInput"},
		"a batch":               {"/?comp=batch", of(sentPart{method: "POST", path: "/?comp=batch", key: batchKey}), nil, 400, "InvalidInput"},
		"two kinds":             {"/?comp=batch", of(tier), nil, 400, "AllBatchSubRequestsShouldBeSameApi"},
		"two kinds, other way":  {"/?comp=batch", bodyOf(tier, deleting("/cont/b")), nil, 400, "AllBatchSubRequestsShouldBeSameApi"},
		"another container":     {"/cont?restype=container&comp=batch", of(deleting("/other/b")), nil, 400, "InvalidInput"},
		"the first decides":     {"/cont?restype=container&comp=batch", bodyOf(deleting("/cont/b"), tier, deleting("/other/b")), nil, 400, "AllBatchSubRequestsShouldBeSameApi"},
		"another account":       {"/?comp=batch", line("DELETE http://other.blob.localhost/cont/b"), nil, 400, "InvalidInput"},
		"another service":       {"/?comp=batch", line("DELETE /acct/cont/b", "Host: acct.queue.localhost"), nil, 400, "InvalidInput"},
		"two hosts":             {"/?comp=batch", line("DELETE /acct/cont/b", "Host: a", "Host: b"), nil, 400, "InvalidInput"},
		"the secondary":         {"/?comp=batch", line("DELETE /acct-secondary/cont/b"), nil, 403, "InsufficientAccountPermissions"},
		"the secondary's host":  {"/?comp=batch", line("DELETE /cont/b", "Host: acct-secondary.blob.localhost"), nil, 403, "InsufficientAccountPermissions"},
		"4 MiB and more":        {"/?comp=batch", good + strings.Repeat("x", 4<<20), nil, 413, "RequestBodyTooLarge"},
	} {
		before := r.state()
		a := r.sendBatch(c.path, c.body, c.header...)
		require.Equal(t, c.status, a.status, "%s: %s", name, a.body)
		require.Equal(t, c.code, a.code(t), name)
		require.Equal(t, before, r.state(), name)
	}
	before := r.state()
	a, err := r.try(http.MethodPost, "/?comp=batch", &endless{strings.NewReader(good)}, "Content-Type", "multipart/mixed; boundary=b")
	require.NoError(t, err)
	r.requireCode(a, http.StatusRequestEntityTooLarge, "RequestBodyTooLarge") // Of no length, in parts that do not end.
	require.Contains(t, string(a.body), "<MaxLimit>4194304<")
	require.Equal(t, before, r.state())
	all := int64(defaultInFlightBytesMax)
	held, ok := r.handler.inFlight.TryAdmit(all)
	require.True(t, ok, "not all is given back")
	r.handler.inFlight.Release(held)
}

// endless goes on with parts of a batch.
type endless struct{ in *strings.Reader }

func (e *endless) Read(p []byte) (int, error) {
	if e.in.Len() == 0 {
		e.in.Reset("--b\r\n\r\nDELETE /acct/cont/b HTTP/1.1\r\n\r\n")
	}
	return e.in.Read(p)
}

// The forms in which clients write a batch: paths without the account, without the first slash, with a question mark alone, as
// URIs; lines that end in line feeds; no Content-ID.
func TestFormsOfBatches(t *testing.T) {
	t.Parallel()
	r := newBatchRig(t, nil)
	named, unnamed := deleting("/cont/b"), deleting("/cont/b")
	unnamed.unnamed = true
	for name, body := range map[string]string{
		"as documented":     bodyOf(named),
		"without account":   bodyOf(unnamed),
		"a question mark":   strings.Replace(bodyOf(unnamed), "/cont/b ", "/cont/b? ", 1),
		"no first slash":    strings.Replace(bodyOf(named), "DELETE /", "DELETE ", 1),
		"an absolute URI":   strings.Replace(bodyOf(named), "DELETE /", "DELETE http://acct.blob.localhost:10000/", 1),
		"a host":            strings.Replace(bodyOf(named), "Content-Length", "Host: acct.blob.localhost\r\nContent-Length", 1),
		"line feeds":        strings.ReplaceAll(bodyOf(named), "\r\n", "\n"),
		"no Content-ID":     strings.Replace(bodyOf(named), "Content-ID: 0\r\n", "", 1),
		"blank lines":       strings.ReplaceAll(bodyOf(named), "--b--", "\r\n\r\n--b--"),
		"no length":         strings.Replace(bodyOf(named), "Content-Length: 0\r\n", "", 1),
		"a type of headers": strings.Replace(bodyOf(deleting("/cont/b", "content-type", "application/xml")), "content-type", "CONTENT-Type", 1),
	} {
		require.Equal(t, http.StatusCreated, r.put("/cont/b", nil).status)
		got := r.batch("/?comp=batch", body)
		require.Equal(t, []string{"202"}, said(t, got), "%s: %s", name, got[0].body)
		if name == "no Content-ID" {
			require.Empty(t, got[0].contentID)
		}
	}
}

// A change of a tier is a part like a deletion, which may leave out the length of its body.
//
// Capability: Blobs: Tags and tiers.
func TestTiersInABatch(t *testing.T) {
	t.Parallel()
	r := newBatchRig(t, nil)
	require.Equal(t, http.StatusCreated, r.put("/cont/b", nil).status)
	tier := func(path, tier string) sentPart {
		return sentPart{method: http.MethodPut, path: path + "?comp=tier", header: []string{"x-ms-access-tier", tier}, key: batchKey}
	}
	got := r.batch("/?comp=batch", bodyOf(tier("/cont/b", "Cool"), tier("/cont/none", "Cool"), tier("/cont/b", "x"), tier("/cont/b", "Cold")))
	require.Equal(t, []string{"200", "404 BlobNotFound", "400 InvalidHeaderValue", "200"}, said(t, got))
	require.Equal(t, "Cold", r.do(http.MethodHead, "/cont/b", nil).header.Get("x-ms-access-tier"), "that of the last part")
	noLength := strings.ReplaceAll(bodyOf(tier("/cont/b", "Cool")), "Content-Length: 0\r\n", "")
	require.Equal(t, []string{"200"}, said(t, r.batch("/?comp=batch", noLength)))
	require.Equal(t, "Cool", r.do(http.MethodHead, "/cont/b", nil).header.Get("x-ms-access-tier"))
}

// 256 deletions are a batch, and submitted as one; 257 are none, which is said by one part without Content-ID.
func TestBatchOf256(t *testing.T) {
	t.Parallel()
	r, w := newShakyRig(t)
	var parts []sentPart
	var names, want []string
	for i := range 256 {
		name := fmt.Sprintf("%03d", i)
		require.Equal(t, http.StatusCreated, r.put("/cont/"+name, []byte(name)).status)
		parts, names, want = append(parts, deleting("/cont/"+name)), append(names, name), append(want, "202")
	}
	before := r.state()
	got := r.batch("/?comp=batch", bodyOf(append(parts, deleting("/cont/none"))...))
	require.Equal(t, []string{"400 ExceedsMaxBatchRequestCount"}, said(t, got))
	require.Empty(t, got[0].contentID)
	require.Equal(t, testVersion, got[0].header.Get("x-ms-version"))
	require.Equal(t, before, r.state())
	require.Equal(t, names, r.list(listPath).names())

	lead := r.stamp.Leader(geo.FirstRange(geo.Blob))
	entries := lead.Machine.AppliedState().Index
	require.Equal(t, want, said(t, r.batch("/cont?restype=container&comp=batch", bodyOf(parts...))))
	require.Equal(t, []int64{1, 256}, []int64{w.groups.Load(), w.writes.Load()}, "submitted at once: TestCommandsOfOneCallerAreOneGroup")
	require.Less(t, lead.Machine.AppliedState().Index-entries, uint64(64), "few groups, though a slow machine makes several")
	require.Empty(t, r.list(listPath).names())
}

// Deletions in a batch leave nothing of blobs with blocks and lists of blocks, as they do alone.
func TestBatchLeavesNoBlocks(t *testing.T) {
	t.Parallel()
	r := newBatchRig(t, nil)
	empty := r.state()[geo.Blob].Rows
	var parts []sentPart
	for i := range 3 * restMax {
		path := fmt.Sprint("/cont/", i)
		require.Equal(t, http.StatusCreated, r.putBlock(path, "aa", []byte("one")).status)
		if i%2 == 0 {
			require.Equal(t, http.StatusCreated, r.commit(path, []string{"Laa"}).status)
			require.Equal(t, http.StatusCreated, r.putBlock(path, "bb", []byte("two")).status)
		}
		parts = append(parts, deleting(path))
	}
	for i, p := range r.batch("/?comp=batch", bodyOf(parts...)) {
		require.Equal(t, http.StatusAccepted, p.status, "%d: %s", i, p.body)
	}
	require.Equal(t, empty, r.state()[geo.Blob].Rows)
}

// Parts delete snapshots, with their blobs or alone, as single requests do.
//
// Capability: Blobs: Snapshots.
func TestSnapshotsInABatch(t *testing.T) {
	t.Parallel()
	r := newBatchRig(t, nil)
	var at []string
	for _, path := range []string{"/cont/a", "/cont/b", "/cont/c", "/cont/d"} {
		require.Equal(t, http.StatusCreated, r.put(path, nil).status)
		made := r.do(http.MethodPut, path+"?comp=snapshot", nil)
		require.Equal(t, http.StatusCreated, made.status)
		at = append(at, made.header.Get("x-ms-snapshot"))
	}
	of := func(name string, i int) string { return "/cont/" + name + "?snapshot=" + at[i] }
	got := r.batch("/?comp=batch", bodyOf(
		deleting("/cont/a"), deleting("/cont/b", "x-ms-delete-snapshots", "include"), deleting("/cont/c", "x-ms-delete-snapshots", "only"),
		deleting(of("d", 3)), deleting(of("d", 3)), deleting("/cont/d"), deleting(of("c", 3)),
	))
	require.Equal(t, []string{"409 SnapshotsPresent", "202", "202", "202", "404 BlobNotFound", "202", "404 BlobNotFound"}, said(t, got))
	require.Equal(t, []string{"a", "a", "c"}, r.list(listPath+"&include=snapshots").names())
}
