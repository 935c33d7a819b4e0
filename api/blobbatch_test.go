package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/apitest"
	"antipode/api/auth"
	"antipode/api/blobs"
	"antipode/api/protocol"
	"antipode/api/routing"
	"antipode/geo"
	"antipode/primary"
	"antipode/services/catalog"
)

// deletionBy is the request line of a part that deletes a blob by a shared access signature for on.
func deletionBy(t *testing.T, path string, on auth.Resource, params string) string {
	t.Helper()
	values, err := url.ParseQuery("se=2999-01-01&" + params)
	require.NoError(t, err)
	signed, err := auth.SignSAS(protocol.Target{Service: geo.Blob, Account: "acct"}, on, values, key)
	require.NoError(t, err)
	return "DELETE /acct" + path + "?" + signed
}

var (
	statusLine = regexp.MustCompile(`HTTP/1\.1 (\d+)`)
	codeLine   = regexp.MustCompile(`x-ms-error-code: (\w+)`)
)

// partsSaid is the status and the code of each part of an answer to a batch.
func partsSaid(body string) (out []string) {
	for _, part := range strings.Split(body, "Content-Type: application/http")[1:] {
		said := statusLine.FindStringSubmatch(part)[1]
		if code := codeLine.FindStringSubmatch(part); code != nil {
			said += " " + code[1]
		}
		out = append(out, said)
	}
	return out
}

// A batch is authorized as any request, whatever its parts may do; a signature for it permits no part, and one of a part only
// what that asks for. A part is taken to come from where its batch did.
//
// Capability: Blobs: Batches.
func TestAccessToBlobBatches(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	const (
		ofAccount = "POST /acct/?comp=batch"
		ofBox     = "POST /acct/cont?restype=container&comp=batch"
		everyDay  = "sv=2024-08-04&ss=b&srt=o&sp=d"
	)
	box := auth.Resource{Container: "cont"}
	own := deletionBy(t, "/cont/none", auth.Resource{}, everyDay)
	send := func(request, sas string, lines ...string) coded {
		c := blob(request, blobParts(lines...), "Content-Type", batchType)
		if sas != "" {
			c = c.by(sas)
		}
		return c
	}
	for name, c := range map[string]struct {
		coded
		status int
		// said is the code of a refusal, or what the parts say.
		said string
	}{
		"by a key":                       {send(ofAccount, "", own), 202, "404 BlobNotFound"},
		"unsigned":                       {blob(ofAccount, blobParts(own), "Content-Type", batchType, "Authorization", "-"), 401, "NoAuthenticationInformation"},
		"of another body":                {blob(ofAccount, blobParts(own), "Content-Type", batchType, "Authorization", "SharedKey acct:AAAA"), 403, "AuthenticationFailed"},
		"of the account":                 {send(ofAccount, "sv=2024-08-04&ss=b&srt=s&sp=y", own), 202, "404 BlobNotFound"},
		"of the account to read":         {send(ofAccount, "sv=2024-08-04&ss=b&srt=sco&sp=rlact", own), 403, "AuthorizationPermissionMismatch"},
		"of another service":             {send(ofAccount, "sv=2024-08-04&ss=q&srt=sco&sp=d", own), 403, "AuthorizationServiceMismatch"},
		"of a container":                 {send(ofBox, ofContainer+"w", own), 202, "404 BlobNotFound"},
		"of a container to read":         {send(ofBox, ofContainer+"rlact", own), 403, "AuthorizationPermissionMismatch"},
		"of a container for the account": {send(ofAccount, ofContainer+"d", own), 403, "AuthenticationFailed"},
		"of a blob":                      {send(ofBox, "sv=2024-08-04&sr=b&sp=d", own), 403, "AuthenticationFailed"},
		"parts without":                  {send(ofBox, ofContainer+"d", "DELETE /acct/cont/there"), 202, "401 NoAuthenticationInformation"},
		"parts of other containers": {
			send(ofAccount, "", deletionBy(t, "/cont/none", box, ofContainer+"d"), deletionBy(t, "/other/none", box, ofContainer+"d")),
			202, "404 BlobNotFound, 403 AuthenticationFailed",
		},
		"parts that may not": {
			send(ofAccount, "", deletionBy(t, "/cont/there", box, ofContainer+"w"), deletionBy(t, "/cont/there", auth.Resource{}, "sv=2024-08-04&ss=b&srt=c&sp=d")),
			202, "403 AuthorizationPermissionMismatch, 403 AuthorizationResourceTypeMismatch",
		},
		"parts from here": {
			send(ofAccount, "", deletionBy(t, "/cont/none", auth.Resource{}, everyDay+"&sip=127.0.0.1&spr=https,http")), 202, "404 BlobNotFound",
		},
		"parts from elsewhere": {
			send(ofAccount, "", deletionBy(t, "/cont/there", auth.Resource{}, everyDay+"&sip=10.0.0.1"), deletionBy(t, "/cont/there", auth.Resource{}, everyDay+"&spr=https")),
			202, "403 AuthorizationSourceIPMismatch, 403 AuthorizationProtocolMismatch",
		},
	} {
		a := c.send(t, rig.urls)
		require.Equal(t, c.status, a.status, "%s: %s", name, a.body)
		if a.status == http.StatusAccepted {
			require.Equal(t, c.said, strings.Join(partsSaid(a.body), ", "), "%s: %s", name, a.body)
		} else {
			require.Equal(t, c.said, a.code, name)
		}
	}
	rig.require(t, blob("GET /acct/cont/there", ""), 200)
	rig.require(t, send(ofBox, ofContainer+"d", deletionBy(t, "/cont/there", box, ofContainer+"d")), 202)
	rig.require(t, blob("GET /acct/cont/there", ""), 404)
}

// Whichever node gets a batch, the leader of the blobs runs it, and counts it as one request; a gateway passes it on. On
// -secondary it is refused as a whole.
//
// Capability: Blobs: Batches.
func TestAnyNodeServesBlobBatches(t *testing.T) {
	t.Parallel()
	stamp := apitest.NewStamp(t, vfs.NewCrashableMem(), "acct", geo.Catalog, geo.Blob)
	var nodes [3]*frontEnd
	var urls [3]string
	leads := map[geo.RangeID]int{geo.FirstRange(geo.Catalog): 1, geo.FirstRange(geo.Blob): 2}
	for i := range nodes {
		nodes[i] = newFrontEnd(t, api.Options{
			Location: "north", Directory: directory{"acct": "north", "mirror": "south"},
			Leader: func(r geo.RangeID, _ geo.Service) (string, bool) { return host(urls[leads[r]]), leads[r] == i },
			Blobs: blobs.NewHandler(blobs.Options{
				Stamp: stamp, Writer: primary.New(stamp), Payload: stamp, Names: &catalog.Containers{}, Logger: apitest.Quiet(),
			}),
		})
		l := httptest.NewServer(nodes[i].Handler(geo.Blob))
		t.Cleanup(l.Close)
		urls[i] = l.URL
	}
	gateway := newFrontEnd(t, api.Options{
		Locations: []geo.Location{"north"},
		Forward:   routing.NewForwarder("gateway", func(geo.Location, geo.Service) []string { return []string{host(urls[0])} }, nil),
	})
	l := httptest.NewServer(gateway.Handler(geo.Blob))
	t.Cleanup(l.Close)
	to := func(i int) map[geo.Service]string { return map[geo.Service]string{geo.Blob: append(urls[:], l.URL)[i]} }
	require.Equal(t, 201, blob("PUT /acct/cont?restype=container", "").send(t, to(1)).status)
	nodes[1].requireCounted(t, "CreateContainer 201")
	for i := range 4 {
		var lines, want []string
		for n := range 10 {
			path := fmt.Sprint("/cont/", n)
			require.Equal(t, 201, blob("PUT /acct"+path, "x", "x-ms-blob-type", "BlockBlob").send(t, to(2)).status)
			nodes[2].requireCounted(t, "PutBlob 201")
			lines, want = append(lines, deletionBy(t, path, auth.Resource{}, "sv=2024-08-04&ss=b&srt=o&sp=d")), append(want, "202")
		}
		a := blob("POST /acct/?comp=batch", blobParts(lines...), "Content-Type", batchType, "Expect", "100-continue").send(t, to(i))
		require.Equal(t, 202, a.status, a.body)
		require.Equal(t, want, partsSaid(a.body))
		nodes[2].requireCounted(t, "BlobBatch 202")
		a = blob("POST /mirror-secondary/?comp=batch", blobParts(lines...), "Content-Type", batchType).send(t, to(i))
		require.Equal(t, "403 InsufficientAccountPermissions", fmt.Sprint(a.status, " ", a.code), a.body)
		nodes[i%3].requireCounted(t, "WriteOnSecondary 403")
	}
}
