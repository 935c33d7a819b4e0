package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/accounts"
	"antipode/api/apitest"
	"antipode/api/protocol"
	"antipode/api/routing"
	"antipode/api/tables"
	"antipode/geo"
	"antipode/primary"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/ranges"
)

// Three nodes, of which one leads the catalog and one the tables, answer every request
// alike; the leader of what it is about serves it, and counts it, once. What needs no range
// is served where it came in.
func TestAnyNodeServes(t *testing.T) {
	t.Parallel()
	stamp := apitest.NewStamp(t, vfs.NewCrashableMem(), "acct", geo.Catalog, geo.Table)
	var nodes [3]*frontEnd
	leads := map[geo.RangeID]int{geo.FirstRange(geo.Catalog): 1, geo.FirstRange(geo.Table): 2}
	for i := range nodes {
		nodes[i] = startFrontEnd(t, api.Options{
			Location: "north",
			Leader: func(r geo.RangeID, _ geo.Service) (string, bool) {
				return host(nodes[leads[r]].url), leads[r] == i
			},
			Accounts: &accounts.Handler{Stamp: stamp, Writer: primary.New(stamp)},
			Tables: &tables.Handler{
				Stamp: stamp, Writer: primary.New(stamp), Names: &catalog.Containers{}, InFlight: protocol.NewInFlight(tables.InFlightBytesMax), Answers: protocol.NewInFlight(tables.AnswersBytesMax),
			},
		})
	}
	const batch = "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
		"GET http://127.0.0.1/acct/things(PartitionKey='p',RowKey='a;b') HTTP/1.1\r\nAccept: application/json\r\n\r\n\r\n--b--\r\n"
	for _, step := range []struct {
		method, target, body string
		status               int
		op                   string
		leader               int
	}{
		{"POST", "/acct/Tables", `{"TableName":"things"}`, 201, "CreateTable", 1},
		{"GET", "/acct/Tables", "", 200, "QueryTables", 1},
		{"GET", "/acct/Tables('things')", "", 200, "QueryTable", 1},
		{"GET", "/acct/%54ables%28'things'%29", "", 200, "QueryTable", 1},
		{"POST", insert, `{"PartitionKey":"p","RowKey":"a;b"}`, 201, "InsertEntity", 2},
		{"MERGE", "/acct/things(PartitionKey='p',RowKey='a;b')", `{"x":1}`, 204, "MergeEntity", 2},
		{"PUT", "/acct/things(PartitionKey='it''s',RowKey='a%2Bb+c')", `{"x":1}`, 204, "UpdateEntity", 2},
		{"GET", "/acct/things(PartitionKey='it%27%27s',RowKey='a%2bb%2Bc')", "", 200, "QueryEntity", 2},
		{"GET", "/acct/things()?$filter=PartitionKey%20eq%20'it''s'&x=1;y=2", "", 200, "QueryEntities", 2},
		{"GET", "/acct//things", "", 400, "Unknown", -1},
		{"POST", "/acct/$batch", batch, 202, "EntityGroupTransaction", 2},
		{"DELETE", "/acct/things(PartitionKey='p',RowKey='none')", "", 404, "DeleteEntity", 2},
		{"GET", "/acct/?comp=properties&restype=service", "", 200, "GetTableServiceProperties", 1},
		{"DELETE", "/acct/Tables('things')", "", 204, "DeleteTable", 1},
		{"GET", "/acct/Tables('things')", "", 404, "QueryTable", 1},
	} {
		for i, n := range nodes {
			if i != 0 && (step.op == "CreateTable" || step.op == "InsertEntity" || step.op == "DeleteTable") {
				continue // Once is enough.
			}
			headers := []string{"Accept", "application/json", "x-ms-client-request-id", "mine"}
			if step.op == "EntityGroupTransaction" {
				headers = append(headers, "Content-Type", "multipart/mixed; boundary=b")
			}
			if step.method == "DELETE" {
				headers = append(headers, "If-Match", "*")
			}
			if i == 0 && step.body != "" {
				headers = append(headers, "Expect", "100-continue")
			}
			a := send(t, signed(t, step.method, n.url+step.target, strings.NewReader(step.body), headers...))
			require.Equal(t, step.status, a.status, "%s %s: %s", step.method, step.target, a.body)
			require.Equal(t, "mine", a.header.Get("x-ms-client-request-id"))
			require.NotEmpty(t, a.header.Get("x-ms-request-id"))
			serves := step.leader
			if serves < 0 {
				serves = i
			}
			nodes[serves].requireCounted(t, fmt.Sprint(step.op, " ", step.status))
			for _, other := range nodes {
				other.requireCounted(t)
			}
		}
	}
}

// While a range has no leader a request waits for one, with its body unread, and is then
// answered 503 ServerBusy with Retry-After: after 5 s, or when its own time is over.
func TestNoLeader(t *testing.T) {
	t.Parallel()
	for target, within := range map[string]time.Duration{
		insert: 5 * time.Second, insert + "?timeout=2": 2 * time.Second, insert + "?timeout=10000000000": 5 * time.Second,
		insert + "?timeout=99999999999999999999": 5 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFrontEnd(t, api.Options{Location: "north", Leader: ledNowhere})
			start, body := time.Now(), strings.NewReader("untouched")
			w := f.record(t, http.MethodPost, target, body)
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
			require.Equal(t, "ServerBusy", w.Header().Get("x-ms-error-code"))
			require.Equal(t, "1", w.Header().Get("Retry-After"))
			require.Equal(t, within, time.Since(start))
			require.Equal(t, map[string]int{"NoLeader 503": 1}, f.counts)
			require.Equal(t, len("untouched"), body.Len())
		})
	}
}

// Where no leader is to be expected a request is refused at once; where one may come, not.
func TestLeaderless(t *testing.T) {
	t.Parallel()
	for leaderless, waits := range map[bool]time.Duration{true: 0, false: 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := newFrontEnd(t, api.Options{
				Location: "north", Leader: ledNowhere, Leaderless: func(geo.RangeID) bool { return leaderless },
			})
			start := time.Now()
			w := f.record(t, http.MethodGet, "/acct/things(PartitionKey='p',RowKey='r')", nil)
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
			require.Equal(t, "ServerBusy", w.Header().Get("x-ms-error-code"))
			require.Equal(t, "1", w.Header().Get("Retry-After"))
			require.Equal(t, waits, time.Since(start))
			require.Equal(t, map[string]int{"NoLeader 503": 1}, f.counts)
		})
	}
}

// A request is refused by who does not lead, without a word of its body being read, and
// sent to who does as soon as that is known; so it is after a node that cannot be reached.
func TestAskedAgain(t *testing.T) {
	t.Parallel()
	other := startFrontEnd(t, api.Options{Location: "north", Leader: ledNowhere})
	var got atomic.Pointer[string]
	leader := stub(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err == nil {
			got.Store(new(string(b)))
		}
		w.WriteHeader(http.StatusNoContent)
	})
	believed := []string{other.url, "http://" + deadEnd(t), "http://", other.url, leader}
	var asked atomic.Int32
	f := startFrontEnd(t, api.Options{Location: "north", Leader: func(geo.RangeID, geo.Service) (string, bool) {
		return host(believed[asked.Add(1)-1]), false
	}})
	a := send(t, signed(t, http.MethodPost, f.url+insert, strings.NewReader("the body")))
	require.Equal(t, http.StatusNoContent, a.status, a.body)
	require.Equal(t, "the body", *got.Load())
	require.EqualValues(t, len(believed), asked.Load())
	other.requireCounted(t) // A refused hop is no request.
	f.requireCounted(t)
}

// Here after all: a request that waited is served by the node itself once it leads.
func TestLeadsMeanwhile(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	f := startFrontEnd(t, api.Options{Location: "south", Leader: func(geo.RangeID, geo.Service) (string, bool) {
		return "", asked.Add(1) > 3
	}})
	require.Equal(t, http.StatusOK, send(t, signed(t, http.MethodGet, f.url+statsTarget, nil)).status)
	f.requireCounted(t, "GetTableServiceStats 200")
}

// Two nodes that take each other for the leader do not pass a request round: each hop is
// the last, and the client gets 503 after 5 s.
func TestLeaderLoop(t *testing.T) {
	t.Parallel()
	var nodes [2]*frontEnd
	var hops atomic.Int32
	for i := range nodes {
		nodes[i] = startFrontEnd(t, api.Options{Location: "north", Leader: func(geo.RangeID, geo.Service) (string, bool) {
			if i == 1 {
				hops.Add(1)
			}
			return host(nodes[1-i].url), false
		}})
	}
	a := send(t, signed(t, http.MethodPost, nodes[0].url+insert, strings.NewReader("{}")))
	require.Equal(t, "ServerBusy", a.code, a.body)
	require.Equal(t, "1", a.header.Get("Retry-After"))
	require.Positive(t, hops.Load())
	nodes[0].requireCounted(t, "NoLeader 503")
	nodes[1].requireCounted(t) // It served nothing and passed nothing on.
}

// The header of a hop gives no rights: the leader verifies the signature itself.
func TestHopIsNotTrusted(t *testing.T) {
	t.Parallel()
	f := startFrontEnd(t, api.Options{Location: "south", Leader: ledHere})
	r, err := http.NewRequest(http.MethodGet, f.url+statsTarget, nil)
	require.NoError(t, err)
	r.Header.Set("X-Antipode-Leader-Hop", "north-1")
	r.Header.Set("Authorization", "SharedKeyLite acct:AAAA")
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	r.Header.Set("x-ms-version", "2021-12-02")
	require.Equal(t, http.StatusForbidden, send(t, r).status)
}

// left is a stamp whose account is another location's as soon as it is read, and whose copy of it is being made again.
type left struct {
	*stamp.Stamp
	to directory
}

func (l left) Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error {
	l.to["acct"] = "south"
	return errors.Join(l.Stamp.Read(ctx, r, f), ranges.ErrLeft)
}

// coming is a stamp whose range of tables has not followed the failover of its account in the first reads.
type coming struct {
	*stamp.Stamp
	reads *atomic.Int32
	after int32
}

func (c coming) Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error {
	if c.reads.Add(1) <= c.after {
		return ranges.ErrComing
	}
	return c.Stamp.Read(ctx, r, f)
}

// R19: reads of the secondary go on throughout a failover: one that comes to the former primary before the range has the
// gate of a secondary waits for it, a second at most.
func TestR19SecondaryReadsWaitForTheGate(t *testing.T) {
	t.Parallel()
	s := apitest.NewStamp(t, vfs.NewCrashableMem(), "acct", geo.Catalog, geo.Table)
	for after, status := range map[int32]int{3: http.StatusOK, 1 << 30: http.StatusServiceUnavailable} {
		reads := &atomic.Int32{}
		f := startFrontEnd(t, api.Options{
			Location: "north", Directory: directory{"acct": "north"},
			Tables: &tables.Handler{
				Stamp: coming{s, reads, after}, Names: &catalog.Containers{},
				InFlight: protocol.NewInFlight(tables.InFlightBytesMax), Answers: protocol.NewInFlight(tables.AnswersBytesMax),
			},
		})
		a := send(t, signed(t, http.MethodGet, f.url+"/acct/Tables", nil))
		require.Equal(t, status, a.status, a.body)
		require.Greater(t, reads.Load(), int32(3))
	}
}

// A read that finds that the account has left this location since it came (R17, R19) is served where the account is, and
// has nothing of what it found here.
func TestR19ReadsFollowTheAccount(t *testing.T) {
	t.Parallel()
	knows := directory{"acct": "north"}
	there := stub(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/there")
		_, _ = io.WriteString(w, "there")
	})
	north := startFrontEnd(t, api.Options{
		Location: "north", Directory: knows,
		Forward: routing.NewForwarder("north", func(geo.Location, geo.Service) []string { return []string{there} }, nil),
		Tables: &tables.Handler{
			Stamp: left{apitest.NewStamp(t, vfs.NewCrashableMem(), "acct", geo.Catalog, geo.Table), knows}, Names: &catalog.Containers{},
			InFlight: protocol.NewInFlight(tables.InFlightBytesMax), Answers: protocol.NewInFlight(tables.AnswersBytesMax),
		},
	})
	a := send(t, signed(t, http.MethodGet, north.url+"/acct/Tables", nil))
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Equal(t, "there", a.body)
	require.Equal(t, []string{"text/there"}, a.header.Values("Content-Type"))
}
