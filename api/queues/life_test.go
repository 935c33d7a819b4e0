package queues

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services/queues"
)

// headersOf are the names of the headers of an answer, but for those that every answer has.
func headersOf(a answer) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		switch name {
		case "Date", "Server", "X-Ms-Request-Id", "X-Ms-Version":
		default:
			out = append(out, name)
		}
	}
	return out
}

// A queue and a message go through their lives by every operation, whose answers have the status, the headers and the
// document of protocol/queue.md 7 to 9, no more and no less.
func TestLife(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	step := func(a answer, status int, headers ...string) answer {
		t.Helper()
		require.Equal(t, status, a.status, "%s", a.body)
		require.Equal(t, headers, headersOf(a))
		return a
	}
	step(r.do("PUT", "/life", "", "x-ms-meta-Color", "Red"), 201, "Content-Length")
	step(r.do("PUT", "/life", "", "x-ms-meta-color", "Red"), 204)
	r.requireCode(r.do("PUT", "/life", "", "x-ms-meta-color", "red"), 409, "QueueAlreadyExists")
	r.requireCode(r.do("PUT", "/life", ""), 409, "QueueAlreadyExists")

	put := step(r.put("/life/messages", "a &amp; b"), 201, "Content-Length", "Content-Type").list(t)
	require.Len(t, put, 1)
	require.Empty(t, put[0].MessageText+put[0].DequeueCount)
	require.NotEmpty(t, put[0].PopReceipt)
	require.NotEmpty(t, put[0].TimeNextVisible)

	document := []string{"Cache-Control", "Content-Length", "Content-Type"}
	a := step(r.do("GET", "/life/messages?peekonly=true", ""), 200, document...)
	peeked := a.list(t)
	require.Equal(t, `<?xml version="1.0" encoding="utf-8"?><QueueMessagesList><QueueMessage><MessageId>`+put[0].MessageID+
		"</MessageId><InsertionTime>"+put[0].InsertionTime+"</InsertionTime><ExpirationTime>"+put[0].ExpirationTime+
		"</ExpirationTime><DequeueCount>0</DequeueCount><MessageText>a &amp; b</MessageText></QueueMessage></QueueMessagesList>", a.body)

	a = step(r.do("GET", "/life/messages", ""), 200, document...)
	got := a.list(t)
	require.Equal(t, `<?xml version="1.0" encoding="utf-8"?><QueueMessagesList><QueueMessage><MessageId>`+put[0].MessageID+
		"</MessageId><InsertionTime>"+put[0].InsertionTime+"</InsertionTime><ExpirationTime>"+put[0].ExpirationTime+
		"</ExpirationTime><PopReceipt>"+got[0].PopReceipt+"</PopReceipt><TimeNextVisible>"+got[0].TimeNextVisible+
		"</TimeNextVisible><DequeueCount>1</DequeueCount><MessageText>a &amp; b</MessageText></QueueMessage></QueueMessagesList>", a.body)
	require.NotEqual(t, put[0].PopReceipt, got[0].PopReceipt)
	require.Equal(t, peeked[0].MessageID, got[0].MessageID)
	require.Equal(t, `<?xml version="1.0" encoding="utf-8"?><QueueMessagesList />`, step(r.do("GET", "/life/messages", ""), 200, document...).body)

	r.requireCode(r.do("DELETE", named("life", put[0], ""), ""), 404, "MessageNotFound") // A later receipt is the newest (Q4).
	a = step(r.do("PUT", named("life", got[0], "&visibilitytimeout=0"), ""), 204, "X-Ms-Popreceipt", "X-Ms-Time-Next-Visible")
	got[0].PopReceipt = a.header.Get("x-ms-popreceipt")
	require.Equal(t, "a & b", r.do("GET", "/life/messages?peekonly=true", "").list(t)[0].MessageText, "without a body the text stays")
	a = r.do("PUT", named("life", got[0], "&visibilitytimeout=0"), "<QueueMessage><MessageText /></QueueMessage>")
	got[0].PopReceipt = a.header.Get("x-ms-popreceipt")
	peeked = r.do("GET", "/life/messages?peekonly=true", "").list(t)
	require.Empty(t, peeked[0].MessageText, "an empty text is one")
	require.Equal(t, "1", peeked[0].DequeueCount)

	a = step(r.do("GET", "/life?comp=metadata", ""), 200, "Cache-Control", "Content-Length", "X-Ms-Approximate-Messages-Count", "X-Ms-Meta-Color")
	require.Equal(t, "1", a.header.Get("x-ms-approximate-messages-count"))
	require.Equal(t, "Red", a.header.Get("x-ms-meta-color"))
	require.Equal(t, "0", a.header.Get("Content-Length"))
	head := r.do(http.MethodHead, "/life?comp=metadata", "")
	require.Equal(t, headersOf(a), headersOf(head))
	step(r.do("PUT", "/life?comp=metadata", "", "x-ms-meta-other", "1"), 204)
	step(r.do("GET", "/life?comp=metadata", ""), 200, "Cache-Control", "Content-Length", "X-Ms-Approximate-Messages-Count", "X-Ms-Meta-Other")
	step(r.do("PUT", "/life?comp=metadata", ""), 204)
	step(r.do("GET", "/life?comp=metadata", ""), 200, "Cache-Control", "Content-Length", "X-Ms-Approximate-Messages-Count")

	step(r.do("DELETE", named("life", got[0], ""), ""), 204)
	r.requireCode(r.do("DELETE", named("life", got[0], ""), ""), 404, "MessageNotFound")
	second := r.put("/life/messages", "x").list(t)
	step(r.do("DELETE", "/life/messages", ""), 204)
	require.Empty(t, r.do("GET", "/life/messages?peekonly=true&numofmessages=32", "").list(t))
	r.requireCode(r.do("DELETE", named("life", second[0], ""), ""), 404, "MessageNotFound")
	require.Equal(t, "0", r.do("GET", "/life?comp=metadata", "").header.Get("x-ms-approximate-messages-count"))

	third := r.put("/life/messages", "x").list(t)
	step(r.do("DELETE", "/life", ""), 204)
	r.requireCode(r.do("DELETE", "/life", ""), 404, "QueueNotFound")
	r.requireCode(r.put("/life/messages", "x"), 404, "QueueNotFound")
	r.requireCode(r.do("DELETE", named("life", third[0], ""), ""), 404, "QueueNotFound")
	r.requireCode(r.do("PUT", "/life", ""), 409, "QueueBeingDeleted")
	head = r.do(http.MethodHead, "/life?comp=metadata", "")
	require.Equal(t, 404, head.status)
	require.Equal(t, "QueueNotFound", head.header.Get("x-ms-error-code"))
}

// Q16: a queue that is created again is empty, and receipts of before name nothing in it.
func TestQ16CreatedAgainIsEmpty(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.NameRest = 0 })
	r.create("again")
	old := r.put("/again/messages", "x").list(t)
	require.Equal(t, 204, r.do("DELETE", "/again", "").status)
	r.create("again")
	require.Empty(t, r.do("GET", "/again/messages", "").list(t))
	r.requireCode(r.do("DELETE", named("again", old[0], ""), ""), 404, "MessageNotFound")
}

// late puts after something else was done.
type late struct {
	Messages
	after func()
}

func (l *late) Put(ctx context.Context, q queues.Queue, o queues.PutOptions) (queues.Message, error) {
	l.after()
	return l.Messages.Put(ctx, q, o)
}

// R8: a put that found the queue, and comes to its subqueue after the deletion was answered, puts nothing.
func TestR8PutBehindADeletion(t *testing.T) {
	t.Parallel()
	l := &late{}
	r := newRig(t, func(o *Options) { l.Messages, o.Messages = o.Messages, l })
	l.after = func() { require.Equal(t, 204, r.do("DELETE", "/first", "").status) }
	r.requireCode(r.put("/first/messages", "x"), 404, "QueueNotFound")
}

// Stored policies are replaced whole, and read with all seven digits of their times (protocol/queue.md 7.5).
func TestPolicies(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const start = `<?xml version="1.0" encoding="utf-8"?>`
	get := func() string {
		t.Helper()
		a := r.do("GET", "/first?comp=acl", "")
		require.Equal(t, 200, a.status)
		require.Equal(t, []string{"Cache-Control", "Content-Length", "Content-Type"}, headersOf(a))
		return a.body
	}
	require.Equal(t, start+"<SignedIdentifiers />", get())
	a := r.do("PUT", "/first?comp=acl", "\ufeff"+start+`<SignedIdentifiers>
	<SignedIdentifier><Id>one</Id><AccessPolicy><Start>2024-01-02</Start><Expiry>2034-01-02T03:04Z</Expiry><Permission>raup</Permission></AccessPolicy></SignedIdentifier>
	<SignedIdentifier><AccessPolicy><Permission>r</Permission><Start>2024-01-02T03:04:05.12Z</Start><Expiry/></AccessPolicy><Id> &lt;2&gt;</Id></SignedIdentifier>
	<SignedIdentifier><Id>three</Id></SignedIdentifier></SignedIdentifiers>`)
	require.Equal(t, 204, a.status, "%s", a.body)
	require.Equal(t, start+"<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Start>2024-01-02T00:00:00.0000000Z</Start>"+
		"<Expiry>2034-01-02T03:04:00.0000000Z</Expiry><Permission>raup</Permission></AccessPolicy></SignedIdentifier>"+
		"<SignedIdentifier><Id> &lt;2&gt;</Id><AccessPolicy><Start>2024-01-02T03:04:05.1200000Z</Start><Permission>r</Permission></AccessPolicy></SignedIdentifier>"+
		"<SignedIdentifier><Id>three</Id><AccessPolicy></AccessPolicy></SignedIdentifier></SignedIdentifiers>", get())
	require.Equal(t, 200, r.do("HEAD", "/first?comp=acl", "").status)
	require.Equal(t, 204, r.do("PUT", "/first?comp=metadata", "", "x-ms-meta-a", "b").status)
	require.Contains(t, get(), "three", "metadata leaves policies")
	require.Equal(t, 204, r.do("PUT", "/first?comp=acl", "").status)
	require.Equal(t, start+"<SignedIdentifiers />", get())
	require.Equal(t, "b", r.do("GET", "/first?comp=metadata", "").header.Get("x-ms-meta-a"), "policies leave metadata")
}

// A plus sign of a receipt that a client leaves raw is one, in an update and in a deletion; without the rule it came as
// a space and the receipt as none.
func TestReceiptWithRawPlus(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.create("raw")
	m := r.put("/raw/messages", "x").list(t)[0]
	raw := func(m message) string {
		return "/raw/messages/" + m.MessageID + "?visibilitytimeout=0&popreceipt=" + strings.ReplaceAll(url.QueryEscape(m.PopReceipt), "%2B", "+")
	}
	plus := func() { // The receipts of updates differ.
		for range 1000 {
			if strings.Contains(m.PopReceipt, "+") {
				return
			}
			m.PopReceipt = r.do("PUT", named("raw", m, "&visibilitytimeout=0"), "").header.Get("x-ms-popreceipt")
		}
		t.Fatal("no receipt has a plus sign")
	}
	plus()
	a := r.do("PUT", raw(m), "")
	require.Equal(t, 204, a.status, a.body)
	m.PopReceipt = a.header.Get("x-ms-popreceipt")
	plus()
	a = r.do("DELETE", raw(m), "")
	require.Equal(t, 204, a.status, a.body)
}
