package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/apitest"
	"antipode/api/auth"
	"antipode/api/blobs"
	"antipode/api/protocol"
	"antipode/api/queues"
	"antipode/api/routing"
	"antipode/api/tables"
	realdirectory "antipode/directory"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/services/catalog"
	messages "antipode/services/queues"
	"antipode/stamp"
	"antipode/stamp/ranges"
)

// countingStamp counts the reads of the catalog.
type countingStamp struct {
	*stamp.Stamp
	reads atomic.Int64
}

func (s *countingStamp) Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error {
	if r == geo.FirstRange(geo.Catalog) {
		s.reads.Add(1)
	}
	return s.Stamp.Read(ctx, r, f)
}

// agreeingPeer is the directory of another location that reserves every account.
type agreeingPeer struct{ realdirectory.Peer }

func (agreeingPeer) Reserve(context.Context, catalog.Account) error { return nil }

func (agreeingPeer) Announce(context.Context, catalog.Account) error { return nil }

func (agreeingPeer) Prepare(context.Context, catalog.Account) error { return nil }

// resolveRig is a location whose directory reads account acct from the catalog. It has table
// tbl with an entity and container cont with a blob.
type resolveRig struct {
	stamp *countingStamp
	urls  map[geo.Service]string
}

func newResolveRig(t *testing.T) *resolveRig {
	t.Helper()
	s := &countingStamp{Stamp: apitest.NewStamp(t, vfs.NewCrashableMem(), "acct", geo.Catalog, geo.Table, geo.Blob, geo.Queue)}
	d, writer := realdirectory.NewDirectory(s, "south"), primary.New(s)
	d.SetPeer(agreeingPeer{})
	_, err := d.Create(t.Context(), "acct", key, key)
	require.NoError(t, err)
	f := newFrontEnd(t, api.Options{
		Location: "north", Directory: d,
		Tables: &tables.Handler{
			Stamp: s, Writer: writer, Names: d.Containers(),
			InFlight: protocol.NewInFlight(tables.InFlightBytesMax), Answers: protocol.NewInFlight(tables.AnswersBytesMax),
		},
		Blobs: blobs.NewHandler(blobs.Options{Stamp: s, Writer: writer, Payload: s, Names: d.Containers(), Logger: apitest.Quiet()}),
		Queues: queues.NewHandler(queues.Options{
			Stamp: s, Writer: writer, Names: d.Containers(),
			Messages: messages.New(messages.Options{Stamp: s, Writer: writer, Clock: clock.System{}}),
		}),
	})
	rig := &resolveRig{stamp: s, urls: map[geo.Service]string{}}
	for _, service := range []geo.Service{geo.Table, geo.Blob, geo.Queue} {
		l := httptest.NewServer(f.Handler(service))
		t.Cleanup(l.Close)
		rig.urls[service] = l.URL
	}
	for _, c := range []coded{
		table("POST /acct/Tables", `{"TableName":"tbl"}`), table("POST /acct/tbl", `{"PartitionKey":"p","RowKey":"r"}`),
		blob("PUT /acct/cont?restype=container", ""), blob("PUT /acct/cont/there", "x", "x-ms-blob-type", "BlockBlob"),
		queue("PUT /acct/que", ""),
	} {
		rig.require(t, c, http.StatusCreated)
	}
	return rig
}

// require sends a request and returns how often the catalog was read for it.
func (rig *resolveRig) require(t *testing.T, c coded, status int) (reads int64) {
	t.Helper()
	before := rig.stamp.reads.Load()
	a := c.send(t, rig.urls)
	require.Equal(t, status, a.status, "%s: %s", c.request, a.body)
	return rig.stamp.reads.Load() - before
}

// A request reads its account and its container in one read of the catalog. The table of a
// batch is known only from its body, so it takes a second one.
//
// Capability: The house: A request is read once.
func TestOneReadOfTheCatalog(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	const batch = "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
		"GET http://127.0.0.1/acct/tbl(PartitionKey='p',RowKey='r') HTTP/1.1\r\nAccept: application/json\r\n\r\n\r\n--b--\r\n"
	const entity = "/acct/tbl(PartitionKey='p',RowKey='r')"
	for _, step := range []struct {
		coded
		status int
		reads  int64
	}{
		{table("GET "+entity, ""), 200, 1},
		{table("POST /acct/tbl", `{"PartitionKey":"p","RowKey":"s"}`), 201, 1},
		{table("PUT "+entity, `{"x":1}`), 204, 1},
		{table("GET /acct/tbl()", ""), 200, 1},
		{table("GET /acct/Tables('tbl')", ""), 200, 1},
		{table("GET /acct/none(PartitionKey='p',RowKey='r')", ""), 404, 1},
		{table("DELETE "+entity, ""), 204, 1},
		{table("POST /acct/$batch", batch, "Content-Type", "multipart/mixed; boundary=b"), 202, 2},
		{table("POST /acct/Tables", `{"TableName":"other"}`), 201, 1},
		{table("DELETE /acct/Tables('other')", ""), 204, 1},
		{blob("GET /acct/cont/there", ""), 200, 1},
		{blob("HEAD /acct/cont/there", ""), 200, 1},
		{blob("PUT /acct/cont/new", "x", "x-ms-blob-type", "BlockBlob"), 201, 1},
		{blob("PUT /acct/cont/new?comp=block&blockid=AA==", "x"), 201, 1},
		{blob("PUT /acct/cont/new?comp=blocklist", `<BlockList><Latest>AA==</Latest></BlockList>`), 201, 1},
		{blob("GET /acct/cont?restype=container&comp=list", ""), 200, 1},
		{blob("GET /acct/cont?restype=container", ""), 200, 1},
		{blob("GET /acct/none/there", ""), 404, 1},
		{blob("POST /acct/?comp=batch", blobParts("DELETE /acct/cont/none", "DELETE /acct/none/b"), "Content-Type", batchType), 202, 2},
		{blob("POST /acct/cont?restype=container&comp=batch", blobParts("DELETE /acct/cont/none"), "Content-Type", batchType), 202, 1},
		{blob("PUT /acct/cont?restype=container&comp=metadata", "", "x-ms-meta-a", "b"), 200, 1},
		{blob("DELETE /acct/cont/new", ""), 202, 1},
		{blob("DELETE /acct/cont?restype=container", ""), 202, 1},
	} {
		require.Equal(t, step.reads, rig.require(t, step.coded, step.status), step.request)
	}
}

// heldBody is a body of which nothing is sent before release is closed.
type heldBody struct {
	io.Reader
	// asked is closed when the server asks for the body.
	asked   chan struct{}
	release chan struct{}
	once    sync.Once
}

func (b *heldBody) Read(p []byte) (int, error) {
	b.once.Do(func() { close(b.asked) })
	<-b.release
	return b.Reader.Read(p)
}

// An upload whose container is deleted and made again before its body has come is refused, and
// is stored in neither: it was resolved to the first one (R8).
//
// Capability: The house: A request is read once.
func TestUploadIntoAContainerMadeAgain(t *testing.T) {
	t.Parallel()
	remove, again := blob("DELETE /acct/cont?restype=container", ""), blob("PUT /acct/cont?restype=container", "")
	for name, c := range map[string]struct {
		upload, remove, again coded
		code                  string
	}{
		"blob":           {blob("PUT /acct/cont/late", "x", "x-ms-blob-type", "BlockBlob"), remove, again, "ContainerNotFound"},
		"blob in chunks": {blob("PUT /acct/cont/late", strings.Repeat("x", 1<<20), "x-ms-blob-type", "BlockBlob"), remove, again, "ContainerNotFound"},
		"block list":     {blob("PUT /acct/cont/late?comp=blocklist", "<BlockList></BlockList>"), remove, again, "ContainerNotFound"},
		"entity": {
			table("POST /acct/tbl", `{"PartitionKey":"p","RowKey":"late"}`),
			table("DELETE /acct/Tables('tbl')", ""), table("POST /acct/Tables", `{"TableName":"tbl"}`), "TableNotFound",
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig := newResolveRig(t)
			body := &heldBody{Reader: strings.NewReader(c.upload.body), asked: make(chan struct{}), release: make(chan struct{})}
			upload := c.upload.signed(t, rig.urls)
			upload.Body = io.NopCloser(body)
			upload.Header.Set("Expect", "100-continue") // The body is read when the server asks for it.
			var a answer
			var sent sync.WaitGroup
			sent.Go(func() { a = send(t, upload) })
			<-body.asked
			require.Less(t, c.remove.send(t, rig.urls).status, 300)
			require.Equal(t, http.StatusCreated, c.again.send(t, rig.urls).status)
			before := apitest.States(t, rig.stamp.Stamp, c.upload.service)
			close(body.release)
			sent.Wait()
			require.Equal(t, http.StatusNotFound, a.status, a.body)
			require.Equal(t, c.code, a.code)
			require.Equal(t, before, apitest.States(t, rig.stamp.Stamp, c.upload.service), "nothing was stored in either")
		})
	}
}

// askedDirectory records which container was to be read with the account.
type askedDirectory struct {
	directory
	asked string
}

func (d *askedDirectory) Resolve(ctx context.Context, name geo.Account, s geo.Service, container func(*catalog.Account) string) (*catalog.Account, *catalog.Found, []catalog.CORSRule, error) {
	a, found, rules, err := d.directory.Resolve(ctx, name, s, container)
	if err == nil {
		d.asked = container(a)
	}
	return a, found, rules, err
}

// bySAS signs a request for table tbl by a shared access signature, in place of a key.
func bySAS(params string) func(r *http.Request) {
	return func(r *http.Request) {
		r.Header.Del("Authorization")
		target := protocol.Target{Service: geo.Table, Account: "acct"}
		values, _ := url.ParseQuery("sv=2019-02-02&tn=tbl" + params)
		signed, err := auth.SignSAS(target, auth.Resource{Container: "tbl"}, values, key)
		if err != nil {
			panic(err) // The parameters are the test's own.
		}
		r.RequestURI += "?" + signed
	}
}

// The container is read together with the account only on the node that serves the request, and
// only if the request is signed with the account's key and needs the container.
//
// Capability: The house: A request is read once.
func TestContainerIsReadWhereItIsUsed(t *testing.T) {
	t.Parallel()
	elsewhere := stub(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	const entity = "/acct/tbl(PartitionKey='p',RowKey='r')"
	for name, c := range map[string]struct {
		request string
		change  func(o *api.Options)
		spoil   func(r *http.Request)
		want    string
	}{
		"served here":             {request: "GET " + entity, want: "tbl"},
		"through the secondary":   {request: "GET /mirror-secondary/tbl()", want: "tbl"},
		"a table's own row":       {request: "GET /acct/Tables('tbl')", want: "tbl"},
		"a change of the table":   {request: "DELETE /acct/Tables('tbl')"},
		"a new table":             {request: "POST /acct/Tables"},
		"a batch":                 {request: "POST /acct/$batch"},
		"the policies of a table": {request: "GET /acct/tbl?comp=acl", want: "tbl"},
		"no operation":            {request: "PUT /acct/tbl"},
		"not signed":              {request: "GET " + entity, spoil: func(r *http.Request) { r.Header.Del("Authorization") }},
		"signed for something else": {request: "GET " + entity, spoil: func(r *http.Request) {
			r.Header.Set("x-ms-date", clock.System{}.Now().Add(time.Second).UTC().Format(http.TimeFormat))
		}},
		"forwarded to the leader":       {request: "GET " + entity, change: func(o *api.Options) { o.Leader = ledBy(elsewhere) }},
		"forwarded to another location": {request: "GET /mirror/tbl()"},
		"a policy, at every node": {
			request: "GET " + entity, change: func(o *api.Options) { o.Leader = ledBy(elsewhere) }, spoil: bySAS("&si=p"), want: "tbl",
		},
		"a policy of a batch": {request: "POST /acct/$batch", spoil: bySAS("&si=p"), want: "tbl"},
		"no policy":           {request: "POST /acct/$batch", spoil: bySAS("&sp=r&se=2999-01-01")},
		"a policy, not signed": {request: "GET " + entity, spoil: func(r *http.Request) {
			bySAS("&si=p")(r)
			r.RequestURI = strings.Replace(r.RequestURI, "si=p", "si=q", 1)
		}},
		"led by this node": {request: "GET " + entity, change: func(o *api.Options) { o.Leader = ledHere }, want: "tbl"},
		"without a leader at the moment": {request: "GET " + entity, change: func(o *api.Options) {
			o.Leader, o.Leaderless = ledNowhere, func(geo.RangeID) bool { return true }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &askedDirectory{directory: directory{"acct": "north", "mirror": "south"}, asked: "nothing was asked"}
			o := api.Options{Location: "north", Directory: d, Forward: routing.NewForwarder("test", at(elsewhere), nil)}
			if c.change != nil {
				c.change(&o)
			}
			f := newFrontEnd(t, o)
			method, target, _ := strings.Cut(c.request, " ")
			r := signed(t, method, "http://127.0.0.1"+target, nil)
			r.RequestURI = target
			if c.spoil != nil {
				c.spoil(r)
			}
			record(f.Handler(geo.Table), r) // There is no handler behind it: what it answers does not matter.
			require.Equal(t, c.want, d.asked)
		})
	}
}

// rotatedDirectory has an account whose keys are changed while it is read: the query runs once with
// the old account, and again with the new one.
type rotatedDirectory struct {
	directory
	oldKey, newKey []byte
	// asked are the containers that were asked for.
	asked []string
}

func (d *rotatedDirectory) Resolve(ctx context.Context, name geo.Account, s geo.Service, container func(*catalog.Account) string) (*catalog.Account, *catalog.Found, []catalog.CORSRule, error) {
	a, _, rules, err := d.directory.Resolve(ctx, name, s, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	old := *a
	old.Key1, old.Key2 = d.oldKey, d.oldKey
	a.Key1, a.Key2 = d.newKey, d.newKey
	d.asked = append(d.asked, container(&old), container(a))
	return a, nil, rules, nil
}

// A signature is compared with the keys of the account that the request is served with, even if it
// was compared with others before.
func TestSignatureOfTheAccountAsReadLast(t *testing.T) {
	t.Parallel()
	other := []byte("fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210")
	for name, c := range map[string]struct {
		oldKey, newKey []byte
		asked          []string
		refused        bool
	}{
		"the key is gone": {key, other, []string{"tbl", ""}, true},
		"the key is new":  {other, key, []string{"", "tbl"}, false},
		"the key stays":   {key, key, []string{"tbl", "tbl"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := &rotatedDirectory{directory: directory{"acct": "north"}, oldKey: c.oldKey, newKey: c.newKey}
			f := newFrontEnd(t, api.Options{Location: "north", Directory: d})
			r := signed(t, "GET", "http://127.0.0.1/acct/tbl()", nil)
			r.RequestURI = "/acct/tbl()"
			w := record(f.Handler(geo.Table), r) // There is no handler behind it: a request that it would get fails otherwise.
			require.Equal(t, c.refused, w.Code == http.StatusForbidden, w.Code)
			require.Equal(t, c.asked, d.asked)
		})
	}
}
