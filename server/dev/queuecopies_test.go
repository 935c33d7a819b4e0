package dev

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/test/rest"
)

// queueClient is a client of an account at the gateway.
func queueClient(t *testing.T, c *Cluster, account geo.Account, secondary bool) *rest.Client {
	t.Helper()
	hc := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(hc.CloseIdleConnections)
	out := rest.NewPathStyleOf(hc, account, c.gateway.Base, secondary)
	out.Key = key64
	return out
}

// ask sends a request to the queue service.
func ask(t *testing.T, c *rest.Client, r rest.Request) rest.Answer {
	t.Helper()
	a, err := c.Do(t.Context(), geo.Queue, r)
	require.NoError(t, err)
	return a
}

// requireAsked is ask for a request that must succeed.
func requireAsked(t *testing.T, c *rest.Client, r rest.Request) rest.Answer {
	t.Helper()
	a := ask(t, c, r)
	require.True(t, a.OK(), "%s %s?%s: %v", r.Method, r.Path, r.Query, a)
	return a
}

// sendAll puts messages, each once, and returns them by their texts.
func sendAll(t *testing.T, c *rest.Client, queue string, texts ...string) map[string]rest.Message {
	t.Helper()
	out := map[string]rest.Message{}
	for _, text := range texts {
		m, a, err := c.PutMessage(t.Context(), queue, text)
		require.NoError(t, err)
		require.True(t, a.OK(), "%v", a)
		out[text] = m
	}
	return out
}

// takeAll gets up to 32 messages by their texts.
func takeAll(t *testing.T, c *rest.Client, queue string, hide time.Duration) map[string]rest.Message {
	t.Helper()
	list, a, err := c.GetMessages(t.Context(), queue, 32, hide)
	require.NoError(t, err)
	require.True(t, a.OK(), "%v", a)
	return byText(t, list)
}

func byText(t *testing.T, list []rest.Message) map[string]rest.Message {
	t.Helper()
	out := map[string]rest.Message{}
	for _, m := range list {
		require.NotContains(t, out, m.Text)
		out[m.Text] = m
	}
	return out
}

func textsOf(list []rest.Message) (out []string) {
	for _, m := range list {
		out = append(out, m.Text)
	}
	return out
}

// requireCount waits until an endpoint gives so many messages of a queue.
func requireCount(t *testing.T, c *rest.Client, queue string, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d messages", want), func() bool {
		n, a, err := c.CountMessages(t.Context(), queue)
		return err == nil && a.OK() && n == want
	})
}

// corsRequest is a preflight that the rule of serviceProperties allows.
func corsRequest() rest.Request {
	return rest.Request{Method: http.MethodOptions, Path: "/jobs/messages", Header: map[string]string{
		"Origin": "http://page.example", "Access-Control-Request-Method": http.MethodGet,
	}}
}

const serviceProperties = `<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://page.example</AllowedOrigins>` +
	`<AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>7</MaxAgeInSeconds><ExposedHeaders>x-ms-*</ExposedHeaders>` +
	`<AllowedHeaders>x-ms-*</AllowedHeaders></CorsRule></Cors></StorageServiceProperties>`

const policies = `<SignedIdentifiers><SignedIdentifier><Id>p1</Id><AccessPolicy><Start>2024-01-02T03:04:05.0000000Z</Start>` +
	`<Expiry>2034-01-02T03:04:05.0000000Z</Expiry><Permission>raup</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>`

// fillQueues gives an account queues with all that one may have: metadata, policies, service properties, long
// texts, messages that are hidden, and some that are gone.
func fillQueues(t *testing.T, c *rest.Client) {
	t.Helper()
	requireAsked(t, c, rest.Request{Method: http.MethodPut, Path: "/jobs", Header: map[string]string{"x-ms-meta-Color": "red"}})
	requireAsked(t, c, rest.Request{Method: http.MethodPut, Path: "/jobs", Query: "comp=acl", Body: []byte(policies)})
	requireAsked(t, c, rest.Request{Method: http.MethodPut, Path: "/", Query: "restype=service&comp=properties", Body: []byte(serviceProperties)})
	require.NoError(t, c.CreateQueue(t.Context(), "cleared"))
	require.NoError(t, c.CreateQueue(t.Context(), "empty"))
	sendAll(t, c, "cleared", "old", strings.Repeat("old", 5000))
	requireAsked(t, c, rest.Request{Method: http.MethodDelete, Path: "/cleared/messages"})
	sendAll(t, c, "cleared", "new")
	sent := sendAll(t, c, "jobs", "deleted", "hidden", strings.Repeat("long", 10_000), "", "<&>\r\n")
	got := takeAll(t, c, "jobs", 600*time.Second)
	require.Len(t, got, len(sent))
	for text, m := range got {
		switch text {
		case "deleted":
			_, err := c.DeleteMessage(t.Context(), "jobs", m)
			require.NoError(t, err)
		case "hidden":
		default:
			_, a, err := c.HideMessage(t.Context(), "jobs", m, 0)
			require.NoError(t, err)
			require.True(t, a.OK(), "%v", a)
		}
	}
}

// queueReads are what can be read at both endpoints.
func queueReads() map[string]rest.Request {
	get := func(path, query string) rest.Request {
		return rest.Request{Method: http.MethodGet, Path: path, Query: query}
	}
	origin := get("/jobs", "comp=metadata")
	origin.Header = map[string]string{"Origin": "http://page.example"}
	return map[string]rest.Request{
		"list":       get("/", "comp=list&include=metadata"),
		"page":       get("/", "comp=list&maxresults=1"),
		"properties": get("/", "restype=service&comp=properties"),
		"metadata":   get("/jobs", "comp=metadata"),
		"head":       {Method: http.MethodHead, Path: "/jobs", Query: "comp=metadata"},
		"of cleared": get("/cleared", "comp=metadata"),
		"of empty":   get("/empty", "comp=metadata"),
		"acl":        get("/jobs", "comp=acl"),
		"peek":       get("/jobs/messages", "peekonly=true&numofmessages=32"),
		"cleared":    get("/cleared/messages", "peekonly=true&numofmessages=32"),
		"missing":    get("/missing", "comp=metadata"),
		"no such":    get("/missing/messages", "peekonly=true"),
		"cors":       origin,
		"preflight":  corsRequest(),
	}
}

// requireSameQueues waits until -secondary answers every read as the primary does.
func requireSameQueues(t *testing.T, c *Cluster, account geo.Account) {
	t.Helper()
	primary, secondary := queueClient(t, c, account, false), queueClient(t, c, account, true)
	for name, r := range queueReads() {
		here := comparable(ask(t, primary, r), account)
		there := ""
		require.Eventually(t, func() bool {
			there = comparable(ask(t, secondary, r), account)
			return there == here
		}, 30*time.Second, 5*time.Millisecond, "%s", name)
		require.Equal(t, here, there, name)
	}
}

// comparable is an answer without what differs from one to the next, and between the endpoints.
func comparable(a rest.Answer, account geo.Account) string {
	h := maps.Clone(a.Header)
	for _, name := range []string{"Date", "X-Ms-Request-Id", "Content-Length"} {
		h.Del(name)
	}
	body := strings.ReplaceAll(string(a.Body), string(account)+geo.SecondarySuffix, string(account))
	if !a.OK() {
		body = a.Code // The rest has the time and the id of the request.
	}
	lines := []string{fmt.Sprint(a.Status), body}
	for name, values := range h {
		lines = append(lines, name+": "+strings.Join(values, ","))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// requireQueueWritesRefused requires that -secondary refuses whatever changes a queue, a get included, before it looks at
// the queue, and changes nothing.
func requireQueueWritesRefused(t *testing.T, c *Cluster, account geo.Account) {
	t.Helper()
	secondary := queueClient(t, c, account, true)
	body := []byte("<QueueMessage><MessageText>x</MessageText></QueueMessage>")
	for _, r := range []rest.Request{
		{Method: http.MethodPut, Path: "/other"},
		{Method: http.MethodDelete, Path: "/jobs"},
		{Method: http.MethodPut, Path: "/jobs", Query: "comp=metadata"},
		{Method: http.MethodPut, Path: "/jobs", Query: "comp=acl"},
		{Method: http.MethodPut, Path: "/", Query: "restype=service&comp=properties", Body: []byte(serviceProperties)},
		{Method: http.MethodPost, Path: "/jobs/messages", Body: body},
		{Method: http.MethodGet, Path: "/jobs/messages"},
		{Method: http.MethodGet, Path: "/jobs/messages", Query: "peekonly=false"},
		{Method: http.MethodGet, Path: "/missing/messages"},
		{Method: http.MethodDelete, Path: "/jobs/messages"},
		{Method: http.MethodPut, Path: "/jobs/messages/id", Query: "popreceipt=x&visibilitytimeout=0", Body: body},
		{Method: http.MethodDelete, Path: "/jobs/messages/id", Query: "popreceipt=x"},
	} {
		a := ask(t, secondary, r)
		require.Equal(t, http.StatusForbidden, a.Status, "%s %s?%s: %v", r.Method, r.Path, r.Query, a)
		require.Equal(t, "InsufficientAccountPermissions", a.Code)
		require.Contains(t, string(a.Body), "Write operations are not allowed.")
	}
}

// Through a planned failover and back with queues: -secondary reads what the primary does and refuses the rest, gets included
// (protocol/queue.md 11), receipts of the former primary stay valid, a message that is hidden stays hidden, and both copies
// are equal (27, R19).
//
// Capability: Queues: Queues at both locations.
func TestR19QueuesMove(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	fillQueues(t, queueClient(t, c, "northacct", false))
	primary := queueClient(t, c, "northacct", false)
	require.NoError(t, primary.CreateQueue(t.Context(), "moves"))
	sendAll(t, primary, "moves", "a", "b", "c", "d")
	got := takeAll(t, primary, "moves", 600*time.Second)
	put := sendAll(t, primary, "moves", "e")["e"]
	require.Len(t, got, 4)
	requireSameQueues(t, c, "northacct")
	requireQueueWritesRefused(t, c, "northacct")
	requireSameQueues(t, c, "northacct")
	receipt, a, err := primary.HideMessage(t.Context(), "moves", got["d"], 600*time.Second)
	require.NoError(t, err)
	require.True(t, a.OK(), "%v", a)

	moveTo(t, c, "northacct", North, South)
	_, err = c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	requireSameQueues(t, c, "northacct")
	requireQueueWritesRefused(t, c, "northacct")
	deleteMessage(t, primary, "moves", put, http.StatusNoContent) // By the receipt of its put.
	deleteMessage(t, primary, "moves", got["a"], http.StatusNoContent)
	deleteMessage(t, primary, "moves", got["a"], http.StatusNotFound)
	deleteMessage(t, primary, "moves", got["d"], http.StatusNotFound) // It was updated since.
	d := got["d"]
	d.Receipt = receipt
	deleteMessage(t, primary, "moves", d, http.StatusNoContent)
	require.Empty(t, takeAll(t, primary, "moves", time.Second), "what was hidden at the north is hidden at the south")
	_, a, err = primary.HideMessage(t.Context(), "moves", got["b"], 0)
	require.NoError(t, err)
	require.True(t, a.OK(), "%v", a)
	b := takeAll(t, primary, "moves", 600*time.Second)["b"]
	require.Equal(t, 2, b.DequeueCount)
	requireCount(t, primary, "moves", 2)

	moveTo(t, c, "northacct", South, North)
	_, err = c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	deleteMessage(t, primary, "moves", got["b"], http.StatusNotFound)
	deleteMessage(t, primary, "moves", b, http.StatusNoContent)
	deleteMessage(t, primary, "moves", got["c"], http.StatusNoContent) // Its receipt is of before both.
	requireCount(t, queueClient(t, c, "northacct", true), "moves", 0)
	requireSameQueues(t, c, "northacct")
	require.Equal(t, wire.VerifyEqual, verifiedWhole(t, c, "northacct", wire.VerifyQuery{}).Outcome)
}

func deleteMessage(t *testing.T, c *rest.Client, queue string, m rest.Message, status int) {
	t.Helper()
	a, err := c.DeleteMessage(t.Context(), queue, m)
	require.NoError(t, err)
	require.Equal(t, status, a.Status, "%q: %v", m.Text, a)
}

// An LRS account with queues becomes RA-GRS while its messages are put, got and deleted: its copy is equal, service
// properties and policies included, and goes on to follow (R17).
//
// Capability: Queues: Queues at both locations.
func TestR17BootstrapOfQueues(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createAs(t, c, "alone", North, "LRS")
	primary := queueClient(t, c, "alone", false)
	fillQueues(t, primary)
	texts := make([]string, 200)
	for i := range texts {
		texts[i] = fmt.Sprint("m", i, strings.Repeat(".", i%4*1000))
	}
	require.NoError(t, primary.CreateQueue(t.Context(), "many"))
	sendAll(t, primary, "many", texts...)
	require.Equal(t, http.StatusForbidden, ask(t, queueClient(t, c, "alone", true), queueReads()["peek"]).Status)
	c.link.Cut()
	require.Contains(t, updateTo(t, c, "alone", "RA-GRS").Operation, "bootstrap")
	for i := range 4 { // Before the copy is made, and meanwhile.
		if i == 2 {
			c.link.Heal()
		}
		for _, m := range takeAll(t, primary, "many", 600*time.Second) {
			deleteMessage(t, primary, "many", m, http.StatusNoContent)
		}
		sendAll(t, primary, "many", "again"+strings.Repeat("!", 3000))
	}
	requireCopied(t, c, "alone")
	requireSameQueues(t, c, "alone")
	left, _, err := primary.CountMessages(t.Context(), "many")
	require.NoError(t, err)
	require.Equal(t, 200+4-4*32, left)
	requireCount(t, queueClient(t, c, "alone", true), "many", left)
	moveTo(t, c, "alone", North, South)
	for n := left; n > 0; {
		got := takeAllDistinct(t, primary, "many")
		require.NotEmpty(t, got)
		for _, m := range got {
			deleteMessage(t, primary, "many", m, http.StatusNoContent)
		}
		n -= len(got)
	}
	requireCount(t, primary, "many", 0)
}

// takeAllDistinct gets up to 32 messages; some may have the same text.
func takeAllDistinct(t *testing.T, c *rest.Client, queue string) []rest.Message {
	t.Helper()
	list, a, err := c.GetMessages(t.Context(), queue, 32, 600*time.Second)
	require.NoError(t, err)
	require.True(t, a.OK(), "%v", a)
	return list
}

// The former primary put, got and deleted messages that the present one never had: its report lists these changes, they are in
// no answer any more, and the rewound copy is equal. What had arrived is not lost, a message that was deleted without a link
// may be got again (R20, R22; protocol/queue.md 27).
//
// Capability: Queues: Queues at both locations.
func TestR22LostChangesOfQueues(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	primary := queueClient(t, c, "northacct", false)
	fillQueues(t, primary)
	require.NoError(t, primary.CreateQueue(t.Context(), "lost"))
	sendAll(t, primary, "lost", "kept", "got", "deleted", "got before")
	before := takeAll(t, primary, "lost", 600*time.Second)
	for _, name := range []string{"kept", "got", "deleted"} {
		_, _, err := primary.HideMessage(t.Context(), "lost", before[name], 0)
		require.NoError(t, err)
	}
	requireSameQueues(t, c, "northacct")
	drainedRange(t, c, geo.Queue)
	c.link.Cut()
	got := takeAll(t, primary, "lost", 600*time.Second)
	require.Len(t, got, 3)
	deleteMessage(t, primary, "lost", got["deleted"], http.StatusNoContent)
	sendAll(t, primary, "lost", "new", strings.Repeat("new", 10_000))
	require.NoError(t, primary.CreateQueue(t.Context(), "unknown"))
	sendAll(t, primary, "unknown", "of no queue")
	requireAsked(t, primary, rest.Request{Method: http.MethodDelete, Path: "/cleared/messages"})
	require.NoError(t, c.stopLocation(t.Context(), North))
	c.link.Heal()
	promote(t, c, "northacct")
	peeked, a, err := primary.PeekMessages(t.Context(), "lost", 32)
	require.NoError(t, err)
	require.True(t, a.OK(), "%v", a)
	require.ElementsMatch(t, []string{"kept", "got", "deleted"}, textsOf(peeked), "what was got without a link is visible")
	eventually(t, "writes go on, and the receipt of a get that was lost names nothing", func() bool {
		a, err := primary.DeleteMessage(t.Context(), "lost", got["got"])
		return err == nil && a.Status == http.StatusNotFound
	})
	deleteMessage(t, primary, "lost", before["got before"], http.StatusNoContent)
	require.Equal(t, http.StatusNotFound, ask(t, primary, rest.Request{Method: http.MethodGet, Path: "/unknown", Query: "comp=metadata"}).Status)
	sendAll(t, primary, "lost", "of the south")

	require.NoError(t, c.startLocation(t.Context(), North))
	var claims []wire.LostClaim
	var changes []wire.LostChange
	listed := map[string]int{}
	eventually(t, "the north has kept what it alone has, and each range has said so", func() bool {
		claims, changes = lostAt(t, c, North, "northacct")
		return len(claims) == len(geo.Services)+1
	})
	for _, ch := range changes {
		listed[ch.Service+" "+ch.Container]++
	}
	for _, claim := range claims {
		require.True(t, claim.Complete, "%+v", claim)
	}
	require.Equal(t, 4, listed["queue lost"], "a get, a deletion and two puts: %+v", changes)
	require.Equal(t, 1, listed["queue unknown"], "%+v", changes)
	require.NotZero(t, listed["queue cleared"], "%+v", changes)
	_, err = c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	requireSameQueues(t, c, "northacct")
	require.Equal(t, wire.VerifyEqual, verifiedWhole(t, c, "northacct", wire.VerifyQuery{}).Outcome)
	left := takeAll(t, primary, "lost", 600*time.Second)
	require.ElementsMatch(t, []string{"kept", "got", "deleted", "of the south"}, slices.Collect(maps.Keys(left)))
	requireCount(t, primary, "lost", 4)
	require.Contains(t, takeAll(t, primary, "cleared", 600*time.Second), "new", "the clear was lost")
	moveTo(t, c, "northacct", South, North)
	for _, m := range left {
		deleteMessage(t, primary, "lost", m, http.StatusNoContent)
	}
	requireCount(t, primary, "lost", 0)
}
