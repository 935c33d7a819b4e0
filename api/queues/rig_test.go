package queues

import (
	"context"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/api/apitest"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/services/catalog"
	"antipode/services/queues"
	"antipode/stamp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a handler over a stamp of three nodes in memory, behind a real HTTP server: what a client sees of the
// service, without authorization.
type rig struct {
	t       testing.TB
	stamp   *stamp.Stamp
	handler *Handler
	url     string
	client  *http.Client
	account catalog.Account
	// secondary: requests are of -secondary.
	secondary bool
}

const testVersion = "2026-12-06"

// newRig starts a rig with queue "first". set changes the options.
func newRig(t testing.TB, set func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, client: &http.Client{Transport: &http.Transport{}}}
	r.account = catalog.Account{Name: "acct", Epoch: 1, Primary: "north"}
	r.stamp = apitest.NewStamp(t, vfs.NewCrashableMem(), r.account.Name, geo.Catalog, geo.Queue)
	writer := primary.New(r.stamp)
	o := Options{
		Stamp: r.stamp, Writer: writer, Names: &catalog.Containers{}, NameRest: time.Hour,
		Messages: queues.New(queues.Options{Stamp: r.stamp, Writer: writer, Clock: clock.System{}}),
	}
	if set != nil {
		set(&o)
	}
	r.handler = NewHandler(o)
	server := httptest.NewServer(r.serve())
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		server.Close()
	})
	r.url = server.URL
	require.Eventually(t, func() bool {
		status := r.do("PUT", "/first", "").status // 500 where a starved machine elects another leader meanwhile.
		return status == http.StatusCreated || status == http.StatusNoContent
	}, time.Minute, time.Millisecond)
	return r
}

// serve does what package api does around a handler; a query limit bounds the request.
func (r *rig) serve() http.Handler {
	ids := protocol.NewRequestIDs([32]byte{})
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		req := &protocol.Request{ID: ids.Next(), Account: &r.account}
		var err error
		if req.Target, err = protocol.ParseTarget(geo.Queue, "http", hr.Host, hr.RequestURI); err == nil {
			if req.Query, err = protocol.ParseQuery(req.RawQuery); err == nil {
				req.Version, err = protocol.ServiceVersion(geo.Queue, hr.Header.Get("x-ms-version"), true)
			}
			req.Secondary = r.secondary
		}
		if err != nil {
			protocol.WriteError(w, hr, protocol.BodyXML, req.ID, time.Now(), err)
			return
		}
		protocol.SetCommonHeaders(w.Header(), hr, geo.Queue, req.Version, req.ID, time.Now())
		if d, err := time.ParseDuration(req.Query.Get("limit")); err == nil {
			ctx, cancel := context.WithTimeout(hr.Context(), d)
			defer cancel()
			hr = hr.WithContext(ctx)
		}
		protocol.WatchSender(w, hr)
		req.HTTP = hr
		if err := r.handler.Serve(w, req, Lookup(req)); err != nil {
			if hr.ContentLength != 0 {
				w.Header().Set("Connection", "close")
			}
			protocol.WriteError(w, hr, protocol.BodyXML, req.ID, time.Now(), err)
			protocol.Linger(w, hr)
		}
	})
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// code is the error code, which header and body agree on.
func (a answer) code(t testing.TB) string {
	t.Helper()
	code := a.header.Get("x-ms-error-code")
	if a.body != "" && code != "" {
		var doc struct{ Code string }
		require.NoError(t, xml.Unmarshal([]byte(a.body), &doc))
		require.Equal(t, code, doc.Code)
	}
	return code
}

// message is a message as a client reads it.
type message struct {
	MessageID       string `xml:"MessageId"`
	InsertionTime   string
	ExpirationTime  string
	PopReceipt      string
	TimeNextVisible string
	DequeueCount    string
	MessageText     string
}

// list reads the messages of an answer.
func (a answer) list(t testing.TB) []message {
	t.Helper()
	require.Less(t, a.status, 300, "%s", a.body)
	var doc struct {
		XMLName      xml.Name  `xml:"QueueMessagesList"`
		QueueMessage []message `xml:"QueueMessage"`
	}
	require.NoError(t, xml.Unmarshal([]byte(a.body), &doc), "%s", a.body)
	return doc.QueueMessage
}

// do sends a request; header is name, value pairs.
func (r *rig) do(method, path, body string, header ...string) answer {
	r.t.Helper()
	hr, err := http.NewRequest(method, r.url+"/acct"+path, strings.NewReader(body))
	require.NoError(r.t, err)
	hr.Header.Set("x-ms-version", testVersion)
	for i := 0; i+1 < len(header); i += 2 {
		hr.Header[http.CanonicalHeaderKey(header[i])] = []string{header[i+1]}
	}
	resp, err := r.client.Do(hr)
	require.NoError(r.t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// state is everything that a request could change.
func (r *rig) state() map[geo.Service]apitest.State {
	r.t.Helper()
	return apitest.States(r.t, r.stamp, geo.Catalog, geo.Queue)
}

// put puts a message whose text is escaped already.
func (r *rig) put(path, text string, header ...string) answer {
	r.t.Helper()
	return r.do("POST", path, "<QueueMessage><MessageText>"+text+"</MessageText></QueueMessage>", header...)
}

// create makes a queue.
func (r *rig) create(name string) {
	r.t.Helper()
	require.Equal(r.t, http.StatusCreated, r.do("PUT", "/"+name, "").status)
}

// named is the path of a message with a receipt.
func named(queue string, m message, more string) string {
	return "/" + queue + "/messages/" + m.MessageID + "?popreceipt=" + url.QueryEscape(m.PopReceipt) + more
}

// requireCode requires a refusal by status and code.
func (r *rig) requireCode(a answer, status int, code string) {
	r.t.Helper()
	require.Equal(r.t, status, a.status, "%s", a.body)
	require.Equal(r.t, code, a.code(r.t))
}
