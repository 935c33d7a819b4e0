package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/apitest"
	"antipode/api/auth"
	"antipode/api/protocol"
	"antipode/api/routing"
	"antipode/api/tables"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/services/catalog"
)

// bodyRig is the table service of a location behind three front ends: the node that leads,
// one that does not, and a gateway. It has table things.
type bodyRig struct{ leader, follower, gateway *frontEnd }

func newBodyRig(t *testing.T) *bodyRig {
	stamp := apitest.NewStamp(t, vfs.NewCrashableMem(), "acct", geo.Catalog, geo.Table)
	rig := &bodyRig{}
	rig.leader = startFrontEnd(t, api.Options{Location: "north", Tables: &tables.Handler{
		Stamp: stamp, Writer: primary.New(stamp), Names: &catalog.Containers{}, InFlight: tables.NewInFlight(tables.InFlightBytesMax),
		Answers: protocol.NewInFlight(tables.AnswersBytesMax),
	}})
	rig.follower = startFrontEnd(t, api.Options{Location: "north", Leader: ledBy(rig.leader.url)})
	rig.gateway = startFrontEnd(t, api.Options{
		Locations: []geo.Location{"north"},
		Forward:   routing.NewForwarder("gateway", func(geo.Location, geo.Service) []string { return []string{host(rig.follower.url)} }, nil),
	})
	a := send(t, signed(t, http.MethodPost, rig.leader.url+"/acct/Tables", strings.NewReader(`{"TableName":"things"}`), "Accept", "application/json"))
	require.Equal(t, http.StatusCreated, a.status, a.body)
	return rig
}

func (rig *bodyRig) frontEnds() map[string]*frontEnd {
	return map[string]*frontEnd{"leader": rig.leader, "follower": rig.follower, "gateway": rig.gateway}
}

// wire is a connection on which requests are written byte for byte.
type wire struct {
	net.Conn
	in   *bufio.Reader
	host string
}

func dialWire(t *testing.T, url string) *wire {
	t.Helper()
	c, err := net.Dial("tcp", host(url))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return &wire{c, bufio.NewReader(c), host(url)}
}

// head writes the header of a signed request.
func (w *wire) head(t *testing.T, method, target string, headers ...string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+w.host+target, nil)
	require.NoError(t, err)
	r.Header.Set("x-ms-version", "2021-12-02")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodDelete {
		r.Header.Set("If-Match", "*")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	require.NoError(t, auth.SignSharedKeyLite(r, geo.Table, "acct", key, clock.System{}.Now()))
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, target, w.host)
	require.NoError(t, r.Header.Write(&b))
	_, err = io.WriteString(w, b.String()+"\r\n")
	require.NoError(t, err)
}

// request sends a whole request, in chunks where no length is given.
func (w *wire) request(t *testing.T, method, target, length, body string) {
	t.Helper()
	if length == "" {
		w.head(t, method, target, "Transfer-Encoding", "chunked")
	} else {
		w.head(t, method, target, "Content-Length", length)
	}
	_, err := io.WriteString(w, body)
	require.NoError(t, err)
}

// answer reads an answer. closes reports that the connection ends with it.
func (w *wire) answer(t *testing.T, method string) (status int, code string, closes bool) {
	t.Helper()
	resp, err := http.ReadResponse(w.in, &http.Request{Method: method})
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header.Get("x-ms-error-code"), resp.Close
}

const entityOf = "/acct/things(PartitionKey='p',RowKey='%s')"

// A body that was announced and does not come ends with the request's time: the request is
// answered and has no effect, whether its operation takes a body or not, and whether its
// length is known, at the leader, through another node and through a gateway.
func TestAnnouncedBodyIsAnswered(t *testing.T) {
	t.Parallel()
	rig := newBodyRig(t)
	for name, f := range rig.frontEnds() {
		row := fmt.Sprintf(entityOf, name)
		a := send(t, signed(t, http.MethodPut, rig.leader.url+row, strings.NewReader(`{"x":1}`)))
		require.Equal(t, http.StatusNoContent, a.status, a.body)
		var wg sync.WaitGroup
		for _, request := range []string{"GET /acct/Tables", "GET " + row, "DELETE " + row, "PUT " + row, "POST /acct/things", "DELETE /acct/Tables('things')"} {
			for _, length := range []string{"Content-Length", "Transfer-Encoding"} {
				method, target, _ := strings.Cut(request, " ")
				w := dialWire(t, f.url)
				w.head(t, method, target+"?timeout=1", length, map[string]string{"Content-Length": "100", "Transfer-Encoding": "chunked"}[length])
				wg.Go(func() {
					status, code, closes := w.answer(t, method)
					if status != http.StatusInternalServerError || code != "OperationTimedOut" || !closes {
						t.Errorf("%s %s %s: %d %s, closes %v", name, request, length, status, code, closes)
					}
				})
			}
		}
		wg.Wait()
		a = send(t, signed(t, http.MethodGet, rig.leader.url+row, nil, "Accept", "application/json"))
		require.Equal(t, http.StatusOK, a.status, "the entity is still there: %s", a.body)
	}
}

// The connection serves the next request after every answer to a request whose body came
// to its end: answers of success and of errors, operations that take a body and those that
// do not, of known and unknown length, with and without Expect.
func TestConnectionIsKept(t *testing.T) {
	t.Parallel()
	rig := newBodyRig(t)
	for name, f := range rig.frontEnds() {
		w := dialWire(t, f.url)
		row := fmt.Sprintf(entityOf, name)
		for _, step := range []struct {
			method, target, body, headers string
			status                        int
		}{
			{"PUT", row, `{"x":1}`, "", 204},
			{"POST", "/acct/things", `{"PartitionKey":"p","RowKey":"` + name + `"}`, "", 409},
			{"POST", "/acct/Tables", `{"TableName":"things"}`, "", 409},
			{"PUT", row, `{"x":2}`, "If-Match=W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\"", 412},
			{"PUT", row, `{`, "", 400},
			{"GET", row, "no use", "", 200},
			{"GET", "/acct/things(PartitionKey='p',RowKey='none')", "no use", "", 404},
			{"GET", "/acct/Tables", "no use", "", 200},
			{"DELETE", row, "no use", "", 204},
			{"DELETE", row, "no use", "", 404},
		} {
			for _, way := range []string{"length", "chunked", "expect"} {
				if step.status == http.StatusNoContent && step.method == http.MethodDelete && way != "length" {
					continue
				}
				headers := []string{"Content-Length", fmt.Sprint(len(step.body))}
				body := step.body
				switch way {
				case "chunked":
					headers = []string{"Transfer-Encoding", "chunked"}
					body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
				case "expect":
					headers = append(headers, "Expect", "100-continue")
				}
				if k, v, ok := strings.Cut(step.headers, "="); ok {
					headers = append(headers, k, v)
				}
				w.head(t, step.method, step.target, headers...)
				if way == "expect" {
					status, _, _ := w.answer(t, step.method)
					require.Equal(t, http.StatusContinue, status)
				}
				_, err := io.WriteString(w, body)
				require.NoError(t, err)
				status, code, closes := w.answer(t, step.method)
				require.Equal(t, step.status, status, "%s %s %s %s: %s", name, way, step.method, step.target, code)
				require.False(t, closes, "%s %s %s %s: %s", name, way, step.method, step.target, code)
			}
		}
	}
}

// A request that is refused before its body is read is answered at once, and the
// connection ends: nobody knows how much of the body will come.
func TestRefusedBeforeItsBody(t *testing.T) {
	t.Parallel()
	rig := newBodyRig(t)
	for name, f := range rig.frontEnds() {
		for _, headers := range [][]string{
			{"Content-Length", "5000000"},
			{"Content-Length", "1000"},
			{"Transfer-Encoding", "chunked"},
			{"Content-Length", "1000", "Expect", "100-continue"},
		} {
			w := dialWire(t, f.url)
			w.head(t, http.MethodPut, "/acct/things(", headers...)
			status, _, closes := w.answer(t, http.MethodPut)
			require.Equal(t, http.StatusBadRequest, status, "%s %v", name, headers)
			require.True(t, closes, "%s %v", name, headers)
			if name == "leader" && headers[1] == "1000" && len(headers) == 2 {
				_, err := w.in.ReadByte()
				require.ErrorIs(t, err, io.EOF, "%s %v", name, headers)
			}
		}
		w := dialWire(t, f.url)
		w.head(t, http.MethodDelete, fmt.Sprintf(entityOf, "x"), "Content-Length", "100000")
		status, code, closes := w.answer(t, http.MethodDelete)
		require.Equal(t, "413 RequestBodyTooLarge true", fmt.Sprint(status, " ", code, " ", closes), name)
	}
}

// Bodies of 4 MiB that are announced and never come hold no memory: inserts of the same
// account go on beside them.
func TestAnnouncedBodiesHoldNothing(t *testing.T) {
	t.Parallel()
	rig := newBodyRig(t)
	for i := range 64 {
		w := dialWire(t, rig.leader.url)
		w.head(t, http.MethodPost, "/acct/things", "Content-Length", fmt.Sprint(4<<20))
		if i%2 == 0 {
			_, err := io.WriteString(w, `{"PartitionKey":"p",`)
			require.NoError(t, err)
		}
	}
	for i := range 20 {
		w := dialWire(t, rig.leader.url)
		body := fmt.Sprintf(`{"PartitionKey":"q","RowKey":"%d","x":"%s"}`, i, strings.Repeat("x", 20000))
		w.head(t, http.MethodPost, "/acct/things", "Content-Length", fmt.Sprint(len(body)))
		_, err := io.WriteString(w, body)
		require.NoError(t, err)
		status, code, _ := w.answer(t, http.MethodPost)
		require.Equal(t, http.StatusCreated, status, code)
	}
}

// A body that breaks off, and one with a broken chunk, is the client's mistake, also through other front ends: an answer of an
// unknown outcome would have it sent again. Nothing happened.
func TestBrokenBodyIsRefused(t *testing.T) {
	t.Parallel()
	rig := newBodyRig(t)
	for name, f := range rig.frontEnds() {
		row := fmt.Sprintf(entityOf, name)
		for _, c := range []struct{ method, target, length, body string }{
			{http.MethodPut, row, "100", `{"x":1}`},
			{http.MethodPut, row, "100", ""},
			{http.MethodPut, row, "", "5\r\n{\"x\":\r\nzz\r\n"},
			{http.MethodPut, row, "", "7\r\n{\"x\":1}\r\n"},
			{http.MethodPost, "/acct/things", "100", `{"PartitionKey":"p","RowKey":"` + name + `"}`},
			{http.MethodPost, "/acct/$batch", "100", "--b--"},
			{http.MethodDelete, "/acct/Tables('things')", "100", "no use"},
			{http.MethodGet, row, "100", "no use"},
		} {
			for _, closes := range []bool{false, true} {
				if broken := strings.Contains(c.body, "zz"); !closes && !broken {
					continue // It is waited for.
				}
				w := dialWire(t, f.url)
				w.request(t, c.method, c.target, c.length, c.body)
				if closes {
					require.NoError(t, w.Conn.(*net.TCPConn).CloseWrite())
				}
				status, code, ends := w.answer(t, c.method)
				require.Equal(t, "400 InvalidInput true", fmt.Sprint(status, " ", code, " ", ends), "%s: %v", name, c)
			}
		}
		a := send(t, signed(t, http.MethodGet, rig.leader.url+row, nil, "Accept", "application/json"))
		require.Equal(t, http.StatusNotFound, a.status, a.body)
	}
}

// A client that closes its side of the connection behind a whole request gets the answer: with a body and without, of known
// and of unknown length.
func TestHalfClosedConnectionIsAnswered(t *testing.T) {
	t.Parallel()
	rig := newBodyRig(t)
	for name, f := range rig.frontEnds() {
		row := fmt.Sprintf(entityOf, name)
		for _, c := range []struct {
			method, target, length, body string
			status                       int
		}{
			{http.MethodPut, row, "7", `{"x":1}`, http.StatusNoContent},
			{http.MethodPut, row, "", "7\r\n{\"x\":1}\r\n0\r\n\r\n", http.StatusNoContent},
			{http.MethodGet, row, "0", "", http.StatusOK},
			{http.MethodGet, "/acct/things()", "6", "no use", http.StatusOK},
			{http.MethodDelete, row, "0", "", http.StatusNoContent},
		} {
			w := dialWire(t, f.url)
			w.request(t, c.method, c.target, c.length, c.body)
			require.NoError(t, w.Conn.(*net.TCPConn).CloseWrite())
			status, code, _ := w.answer(t, c.method)
			require.Equal(t, c.status, status, "%s: %v: %s", name, c, code)
		}
	}
}

// The context of a request ends soon after its client has left, on the other side of a gateway
// and of a hop to the leader too, with a body and without: what it asked for is not worked
// on for nobody.
func TestLeavingClientEndsRequest(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for name, body := range map[string]string{"none": "", "of an operation that takes none": "no use", "batch": "--b--\r\n"} {
		begun, ended := make(chan struct{}), make(chan struct{})
		leader := stub(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			close(begun)
			<-r.Context().Done()
			close(ended)
		})
		follower := startFrontEnd(t, api.Options{Location: "north", Leader: ledBy(leader)})
		gateway := startFrontEnd(t, api.Options{
			Locations: []geo.Location{"north"},
			Forward:   routing.NewForwarder("gateway", func(geo.Location, geo.Service) []string { return []string{host(follower.url)} }, nil),
		})
		w := dialWire(t, gateway.url)
		method, target := http.MethodGet, "/acct/things()"
		if name == "batch" {
			method, target = http.MethodPost, "/acct/$batch"
		}
		w.head(t, method, target, "Content-Length", fmt.Sprint(len(body)))
		_, err := io.WriteString(w, body)
		require.NoError(t, err)
		<-begun
		require.NoError(t, w.Close())
		all.Go(func() { <-ended })
	}
	all.Wait()
}
