package tables

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/api/apitest"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/primary"
	"antipode/services/catalog"
	"antipode/stamp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a handler over a stamp of three nodes in memory, behind a real HTTP server:
// what a client sees of the service, without authorization. Its account is acct, its
// table tbl.
type rig struct {
	t      *testing.T
	stamp  *stamp.Stamp
	url    string
	client *http.Client
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, stamp: apitest.NewStamp(t, vfs.NewCrashableMem(), "acct", geo.Catalog, geo.Table)}
	r = r.with(func(*Handler) {})
	a := r.do(http.MethodPost, "/acct/Tables", `{"TableName":"tbl"}`)
	require.Equal(t, http.StatusCreated, a.status, a.body)
	return r
}

// with serves the rig's stamp by a handler that change has changed.
func (r *rig) with(change func(h *Handler)) *rig {
	h := &Handler{
		Stamp: r.stamp, Writer: primary.New(r.stamp), NameRest: time.Hour, Names: &catalog.Containers{},
		InFlight: protocol.NewInFlight(InFlightBytesMax), Answers: protocol.NewInFlight(AnswersBytesMax),
	}
	change(h)
	server := httptest.NewServer(serve(h))
	client := &http.Client{Transport: &http.Transport{}}
	r.t.Cleanup(func() {
		client.CloseIdleConnections()
		server.Close()
	})
	return &rig{t: r.t, stamp: r.stamp, url: server.URL, client: client}
}

// serve does what package api does around a handler.
func serve(h *Handler) http.Handler {
	ids := protocol.NewRequestIDs([32]byte{})
	account := catalog.Account{Name: "acct", Epoch: 1, Primary: "north"}
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		req := &protocol.Request{HTTP: hr, ID: ids.Next(), At: time.Now(), Account: &account}
		var err error
		if req.Target, err = protocol.ParseTarget(geo.Table, "http", hr.Host, hr.RequestURI); err == nil {
			if req.Query, err = protocol.ParseQuery(req.RawQuery); err == nil {
				req.Version, err = protocol.ServiceVersion(geo.Table, hr.Header.Get("x-ms-version"), true)
			}
		}
		protocol.SetCommonHeaders(w.Header(), hr, geo.Table, req.Version, req.ID, req.At)
		if err == nil {
			err = h.Serve(w, req, Lookup(req))
		}
		if err != nil {
			if hr.ContentLength != 0 {
				w.Header().Set("Connection", "close")
			}
			kind := protocol.BodyTableJSON
			if AtomErrors(req.Version, true, hr.Header.Get("Accept"), req.Query.Get("$format")) {
				kind = protocol.BodyTableAtom
			}
			protocol.WriteError(w, hr, kind, req.ID, req.At, err)
			protocol.Linger(w, hr)
		}
	})
}

// received is what came back.
type received struct {
	status  int
	header  http.Header
	body    string
	request *http.Request
}

// failureOf is the code and the message, without the lines about the request, of an error.
func failureOf(t *testing.T, body string) (code, message string) {
	t.Helper()
	if strings.HasPrefix(body, "<") {
		var doc struct {
			XMLName xml.Name `xml:"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata error"`
			Code    string   `xml:"code"`
			Message string   `xml:"message"`
		}
		require.NoError(t, xml.Unmarshal([]byte(body), &doc), body)
		return doc.Code, doc.Message
	}
	var doc struct {
		Error struct {
			Code    string
			Message struct{ Value string }
		} `json:"odata.error"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &doc), body)
	message, _, _ = strings.Cut(doc.Error.Message.Value, "\nRequestId:")
	return doc.Error.Code, message
}

// do sends a request; headers are name, value pairs over the usual ones, and an empty
// value sends none.
func (r *rig) do(method, target, body string, headers ...string) received {
	r.t.Helper()
	hr, err := http.NewRequest(method, r.url+target, strings.NewReader(body))
	if err != nil { // What is no URL goes out as it is.
		hr, err = http.NewRequest(method, r.url, strings.NewReader(body))
		require.NoError(r.t, err)
		hr.URL.Opaque = target
	}
	hr.Header.Set("x-ms-version", "2019-02-02")
	hr.Header.Set("Accept", "application/json;odata=nometadata")
	if body != "" {
		hr.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		hr.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			hr.Header.Del(headers[i])
		}
	}
	resp, err := r.client.Do(hr)
	require.NoError(r.t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
	return received{resp.StatusCode, resp.Header, string(b), hr}
}

// rows are the entities of a table as their keys and a property v, in order.
func (r *rig) rows(table string) []string {
	r.t.Helper()
	a := r.do(http.MethodGet, "/acct/"+table+"()?$select=PartitionKey,RowKey,v", "")
	require.Equal(r.t, http.StatusOK, a.status, a.body)
	require.Empty(r.t, a.header.Get("x-ms-continuation-NextPartitionKey"))
	var doc struct{ Value []map[string]any }
	require.NoError(r.t, json.Unmarshal([]byte(a.body), &doc))
	rows := []string{}
	for _, e := range doc.Value {
		row := e["PartitionKey"].(string) + "/" + e["RowKey"].(string)
		if v, ok := e["v"].(string); ok {
			row += "=" + v
		}
		rows = append(rows, row)
	}
	return rows
}

// heads are the last numbers of the table range's streams: a request that is refused
// moves none.
func (r *rig) heads() map[geo.Stream]geo.Head { return r.state()[geo.Table].Heads }

// state is everything that a request could change.
func (r *rig) state() map[geo.Service]apitest.State {
	r.t.Helper()
	return apitest.States(r.t, r.stamp, geo.Catalog, geo.Table)
}
