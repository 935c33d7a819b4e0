package queues

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/apitest"
)

// detailsOf are the elements beside the message of an error (protocol/queue.md 4).
func detailsOf(code string) []string {
	switch code {
	case "InvalidHeaderValue":
		return []string{"HeaderName", "HeaderValue"}
	case "InvalidQueryParameterValue":
		return []string{"QueryParameterName", "QueryParameterValue", "Reason"}
	case "OutOfRangeQueryParameterValue":
		return []string{"QueryParameterName", "QueryParameterValue", "MinimumAllowed", "MaximumAllowed"}
	case "MissingRequiredQueryParameter":
		return []string{"QueryParameterName"}
	case "RequestBodyTooLarge", "MessageTooLarge":
		return []string{"MaxLimit"}
	case "InvalidXmlDocument":
		return []string{"Reason"}
	case "InvalidXmlNodeValue":
		return []string{"XmlNodeName", "XmlNodeValue", "Reason"}
	case "MissingRequiredXmlNode":
		return []string{"XmlNodeName"}
	}
	return nil
}

// refusal is a request that is refused. says is in the body of the answer.
type refusal struct {
	request, body string
	status        int
	code          string
	says          string
	header        []string
}

// requireRefused requires that each request is refused with its status, code and details, and changes nothing.
func (r *rig) requireRefused(cases []refusal) {
	r.t.Helper()
	before := r.state()
	for _, c := range cases {
		method, path, _ := strings.Cut(c.request, " ")
		a := r.do(method, path, c.body, c.header...)
		require.Equal(r.t, c.status, a.status, "%.200s %.200s %v: %s", c.request, c.body, c.header, a.body)
		require.Equal(r.t, c.code, a.code(r.t), "%.200s %.200s %v: %s", c.request, c.body, c.header, a.body)
		require.Equal(r.t, before, r.state(), "%.200s %.200s %v", c.request, c.body, c.header)
		if method == "HEAD" {
			require.Empty(r.t, a.body)
			continue
		}
		for _, name := range detailsOf(c.code) {
			require.Contains(r.t, a.body, "<"+name+">", "%.200s %.200s", c.request, c.body)
		}
		require.Contains(r.t, a.body, c.says, "%.200s %.200s", c.request, c.body)
		require.Empty(r.t, a.header.Get("Cache-Control")+a.header.Get("x-ms-popreceipt"), c.request)
	}
}

const (
	inval   = "InvalidQueryParameterValue"
	outside = "OutOfRangeQueryParameterValue"
	small   = "<QueueMessage><MessageText>x</MessageText></QueueMessage>"
)

func version(v string) []string { return []string{"x-ms-version", v} }

// Paths, verbs, names and the parameters of queues are checked before the queue is looked for (protocol/queue.md 5, 10).
func TestRefusalsOfQueues(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	long := strings.Repeat("x", 64)
	r.requireRefused([]refusal{
		{"GET /", "", 400, inval, "<QueryParameterName>comp</QueryParameterName>", nil},
		{"GET /?comp=other", "", 400, inval, "<QueryParameterValue>other</QueryParameterValue>", nil},
		{"PUT /?comp=list", "", 405, "UnsupportedHttpVerb", "", nil},
		{"GET /first", "", 400, inval, "<QueryParameterName>comp</QueryParameterName>", nil},
		{"HEAD /first", "", 400, inval, "", nil},
		{"POST /first", "", 405, "UnsupportedHttpVerb", "", nil},
		{"PATCH /first", "", 405, "UnsupportedHttpVerb", "", nil},
		{"BREW /first", "", 400, "InvalidHttpVerb", "", nil},
		{"GET /first?comp=other", "", 400, inval, "<QueryParameterValue>other</QueryParameterValue>", nil},
		{"DELETE /first?comp=metadata", "", 405, "UnsupportedHttpVerb", "", nil},
		{"GET /first/others", "", 400, "InvalidUri", "", nil},
		{"GET //messages", "", 400, "InvalidUri", "", nil},
		{"DELETE /first/messages/a/b?popreceipt=x", "", 400, "InvalidUri", "", nil},
		{"DELETE /first/messages?popreceipt=x", "", 400, "InvalidUri", "", nil},
		{"DELETE /first/messages/?popreceipt=x", "", 400, "InvalidUri", "", nil},
		{"PUT /" + long, "", 400, "OutOfRangeInput", "", nil},
		{"PUT /xy", "", 400, "OutOfRangeInput", "", nil},
		{"PUT /Upper", "", 400, "InvalidResourceName", "", nil},
		{"PUT /a--b", "", 400, "InvalidResourceName", "", nil},
		{"PUT /ab-", "", 400, "InvalidResourceName", "", nil},
		{"PUT /-ab", "", 400, "InvalidResourceName", "", nil},
		{"PUT /a_b", "", 400, "InvalidResourceName", "", nil},
		{"PUT /%61%2Fb", "", 400, "InvalidResourceName", "", nil},
		{"GET /a_b/messages", "", 400, "InvalidResourceName", "", nil},
		{"PUT /made", "", 400, "InvalidMetadata", "", []string{"x-ms-meta-a-b", "1"}},
		{"PUT /made", "", 400, "EmptyMetadataKey", "", []string{"x-ms-meta-", "1"}},
		{"PUT /made", "", 400, "MetadataTooLarge", "", []string{"x-ms-meta-a", strings.Repeat("x", 8<<10)}},
		{"PUT /none?comp=metadata", "", 400, "InvalidMetadata", "", []string{"x-ms-meta-a-b", "1"}},
		{"PUT /none?comp=metadata", "", 404, "QueueNotFound", "", nil},
		{"GET /none?comp=metadata", "", 404, "QueueNotFound", "", nil},
		{"HEAD /none?comp=metadata", "", 404, "QueueNotFound", "", nil},
		{"DELETE /none", "", 404, "QueueNotFound", "", nil},
		{"GET /none?comp=acl", "", 404, "QueueNotFound", "", nil},
		{"PUT /none?comp=acl", "<", 404, "QueueNotFound", "", nil},
		{"GET /first?comp=acl", "", 400, inval, "<QueryParameterValue>acl</QueryParameterValue>", version("2011-08-18")},
		{"PUT /first?comp=acl", "", 400, inval, "<QueryParameterValue>acl</QueryParameterValue>", version("2011-08-18")},
		{"GET /?comp=list&maxresults=0", "", 400, outside, "<MaximumAllowed>5000</MaximumAllowed>", nil},
		{"GET /?comp=list&maxresults=-1", "", 400, outside, "", nil},
		{"GET /?comp=list&maxresults=x", "", 400, inval, "", nil},
		{"GET /?comp=list&include=other", "", 400, inval, "<QueryParameterName>include</QueryParameterName>", nil},
		{"GET /?comp=list&prefix=%ff", "", 400, inval, "<QueryParameterName>prefix</QueryParameterName>", nil},
		{"GET /?comp=list&marker=/acct/first", "", 400, "OutOfRangeInput", "", nil},
	})
	require.Contains(t, r.do("GET", "/?comp=list", "").body, "<Name>first</Name></Queue></Queues>", "nothing was made")
}

// Parameters of messages at and behind their bounds, by version (Q24), and what is missing.
//
// Capability: Clients: Bad input gets the protocol's error and changes nothing.
func TestRefusalsOfMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	m := r.put("/first/messages", "kept").list(t)[0]
	r.create("other")
	elsewhere := r.put("/other/messages", "kept").list(t)[0]
	ofAnother := m
	ofAnother.PopReceipt = elsewhere.PopReceipt
	noID := m
	noID.MessageID = "no-guid"
	const put, get = "POST /first/messages", "GET /first/messages"
	gone := named("none", m, "")
	r.requireRefused([]refusal{
		{get + "?numofmessages=0", "", 400, outside, "<MinimumAllowed>1</MinimumAllowed><MaximumAllowed>32</MaximumAllowed>", nil},
		{get + "?numofmessages=33", "", 400, outside, "", nil},
		{get + "?numofmessages=99999999999999999999", "", 400, outside, "", nil},
		{get + "?numofmessages=x", "", 400, inval, "<QueryParameterName>numofmessages</QueryParameterName>", nil},
		{get + "?peekonly=true&numofmessages=33", "", 400, outside, "", nil},
		{get + "?visibilitytimeout=0", "", 400, outside, "<MinimumAllowed>1</MinimumAllowed><MaximumAllowed>604800</MaximumAllowed>", nil},
		{get + "?visibilitytimeout=604801", "", 400, outside, "", nil},
		{get + "?visibilitytimeout=-1", "", 400, outside, "", nil},
		{get + "?visibilitytimeout=7201", "", 400, outside, "<MaximumAllowed>7200</MaximumAllowed>", version("2009-09-19")},
		{get + "?visibilitytimeout=1.5", "", 400, inval, "", nil},
		{"HEAD /first/messages", "", 405, "UnsupportedHttpVerb", "", nil},
		{"PUT /first/messages", "", 405, "UnsupportedHttpVerb", "", nil},
		{get + "?comp=acl", "", 400, inval, "", nil},
		{"GET /none/messages?numofmessages=33", "", 400, outside, "", nil},
		{"GET /none/messages", "", 404, "QueueNotFound", "", nil},
		{"GET /none/messages?peekonly=true", "", 404, "QueueNotFound", "", nil},
		{"DELETE /none/messages", "", 404, "QueueNotFound", "", nil},

		{"POST /none/messages", small, 404, "QueueNotFound", "", nil},
		{"POST /none/messages?messagettl=0", small, 400, inval, "", nil},
		{put + "?messagettl=0", small, 400, inval, "<QueryParameterName>messagettl</QueryParameterName>", nil},
		{put + "?messagettl=-2", small, 400, inval, "<QueryParameterName>messagettl</QueryParameterName>", nil},
		{put + "?messagettl=x", small, 400, inval, "", nil},
		{put + "?messagettl=-99999999999999999999", small, 400, inval, "", nil},
		{put + "?messagettl=99999999999999999999", small, 400, outside, "<MaximumAllowed>604800</MaximumAllowed>", version("2017-04-17")},
		{put + "?messagettl=-1", small, 400, inval, "", version("2017-04-17")},
		{put + "?messagettl=604801", small, 400, outside, "<MaximumAllowed>604800</MaximumAllowed>", version("2017-04-17")},
		{put + "?visibilitytimeout=-1", small, 400, outside, "<MinimumAllowed>0</MinimumAllowed>", nil},
		{put + "?visibilitytimeout=604801&messagettl=-1", small, 400, outside, "", nil},
		{put + "?visibilitytimeout=604800", small, 400, inval, "<QueryParameterName>visibilitytimeout</QueryParameterName><QueryParameterValue>604800<", nil},
		{put + "?visibilitytimeout=10&messagettl=10", small, 400, inval, "<Reason>messagettl must be greater than visibilitytimeout</Reason>", nil},
		{put + "?visibilitytimeout=11&messagettl=10", small, 400, inval, "", nil},

		{"DELETE /first/messages/" + m.MessageID, "", 400, "MissingRequiredQueryParameter", "popreceipt", nil},
		{"DELETE /first/messages/" + m.MessageID + "?popreceipt=", "", 400, "MissingRequiredQueryParameter", "popreceipt", nil},
		{"DELETE /first/messages/" + m.MessageID + "?popreceipt=x", "", 400, inval, "<Reason>Invalid pop receipt format</Reason>", nil},
		{"DELETE /none/messages/" + m.MessageID + "?popreceipt=x", "", 400, inval, "<QueryParameterName>popreceipt</QueryParameterName>", nil},
		{"DELETE " + named("first", ofAnother, ""), "", 400, "PopReceiptMismatch", "", nil},
		{"PUT " + named("first", ofAnother, "&visibilitytimeout=1"), "", 400, "PopReceiptMismatch", "", nil},
		{"DELETE " + named("first", elsewhere, ""), "", 400, "PopReceiptMismatch", "", nil},
		{"DELETE " + named("first", noID, ""), "", 404, "MessageNotFound", "", nil},
		{"DELETE " + gone, "", 400, "PopReceiptMismatch", "", nil},
		{"GET " + named("first", m, ""), "", 405, "UnsupportedHttpVerb", "", nil},
		{"PUT " + named("first", m, ""), "", 400, "MissingRequiredQueryParameter", "visibilitytimeout", nil},
		{"PUT /first/messages/" + m.MessageID + "?visibilitytimeout=1", "", 400, "MissingRequiredQueryParameter", "popreceipt", nil},
		{"PUT " + named("first", m, "&visibilitytimeout=-1"), "", 400, outside, "", nil},
		{"PUT " + named("first", m, "&visibilitytimeout=604801"), "", 400, outside, "<MinimumAllowed>0</MinimumAllowed><MaximumAllowed>604800</MaximumAllowed>", nil},
		{"PUT " + named("first", m, "&visibilitytimeout=604800"), "", 400, inval, "<QueryParameterName>visibilitytimeout</QueryParameterName><QueryParameterValue>604800<", nil},
		{"PUT " + named("first", m, "&visibilitytimeout=1"), "", 405, "UnsupportedHttpVerb", "", version("2009-09-19")},
	})
}

// Bodies that are no message, and no list of policies.
func TestRefusalsOfDocuments(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	m := r.put("/first/messages", "kept").list(t)[0]
	const xmlFault = "InvalidXmlDocument"
	deep := strings.Repeat("<a>", 5000) + strings.Repeat("</a>", 5000)
	for _, body := range []string{
		"<", "x", "<QueueMessage>", "<QueueMessage/>", "<QueueMessage></QueueMessage>", "<Message><MessageText>x</MessageText></Message>",
		"<QueueMessage><Text>x</Text></QueueMessage>", "<QueueMessage>x<MessageText>x</MessageText></QueueMessage>",
		"<QueueMessage><MessageText>x</MessageText><MessageText>x</MessageText></QueueMessage>",
		"<QueueMessage><MessageText>x</MessageText><More/></QueueMessage>", small + small, small + "x", "x" + small,
		"<QueueMessage><MessageText>a<b/>c</MessageText></QueueMessage>", "<QueueMessage><MessageText><b>c</b></MessageText></QueueMessage>",
		"<QueueMessage><MessageText>\x01</MessageText></QueueMessage>", "<QueueMessage><MessageText>&#1;</MessageText></QueueMessage>",
		"<QueueMessage><MessageText>&#xFFFE;</MessageText></QueueMessage>", "<QueueMessage><MessageText>\xff</MessageText></QueueMessage>",
		"<QueueMessage><MessageText>&#xD83D;&#xDE00;</MessageText></QueueMessage>", "<QueueMessage><MessageText>&#55357;</MessageText></QueueMessage>",
		"<QueueMessage><MessageText>&other;</MessageText></QueueMessage>", "<QueueMessage><MessageText>a & b</MessageText></QueueMessage>",
		`<?xml version="1.0" encoding="latin1"?>` + small, "\xff\xfe<", "\xff\xfe\x00\xd8", deep, "<QueueMessage>" + deep + "</QueueMessage>",
		`<!DOCTYPE QueueMessage [<!ENTITY a "x">]>` + small,
		`<!DOCTYPE q [<!ENTITY a "xxxxxxxxxx"><!ENTITY b "&a;&a;&a;&a;&a;">]><QueueMessage><MessageText>&b;</MessageText></QueueMessage>`,
		"<QueueMessage><MessageText>" + strings.Repeat("<b/>", 1000) + "</MessageText></QueueMessage>",
	} {
		r.requireRefused([]refusal{
			{"POST /first/messages", body, 400, xmlFault, "", nil},
			{"PUT " + named("first", m, "&visibilitytimeout=0"), body, 400, xmlFault, "", nil},
		})
	}
	list := func(inner string) string { return "<SignedIdentifiers>" + inner + "</SignedIdentifiers>" }
	id := func(id, access string) string {
		return "<SignedIdentifier><Id>" + id + "</Id><AccessPolicy>" + access + "</AccessPolicy></SignedIdentifier>"
	}
	const acl = "PUT /first?comp=acl"
	six := id("1", "") + id("2", "") + id("3", "") + id("4", "") + id("5", "") + id("6", "")
	r.requireRefused([]refusal{
		{"POST /first/messages", "", 400, xmlFault, "", nil},
		{acl, "<", 400, xmlFault, "<LineNumber>1</LineNumber><LinePosition>2</LinePosition>", nil},
		{acl, "<Others/>", 400, xmlFault, "", nil},
		{acl, list("x"), 400, xmlFault, "", nil},
		{acl, list("<Other/>"), 400, xmlFault, "", nil},
		{acl, list("<SignedIdentifier/>"), 400, "MissingRequiredXmlNode", "<XmlNodeName>Id</XmlNodeName>", nil},
		{acl, list(id("", "")), 400, xmlFault, "", nil},
		{acl, list(id(strings.Repeat("x", 65), "")), 400, xmlFault, "", nil},
		{acl, list(id("a", "") + id("a", "")), 400, xmlFault, "", nil},
		{acl, list(six), 400, xmlFault, "", nil},
		{acl, list(id("a", "<Other/>")), 400, xmlFault, "", nil},
		{acl, list(id("a", "<Start>2024-01-02</Start><Start>2024-01-02</Start>")), 400, xmlFault, "", nil},
		{acl, list(id("a", "<Permission>rx</Permission>")), 400, "InvalidXmlNodeValue", "<XmlNodeName>Permission</XmlNodeName><XmlNodeValue>rx<", nil},
		{acl, list(id("a", "<Permission>rar</Permission>")), 400, "InvalidXmlNodeValue", "<XmlNodeValue>rar<", nil},
		{acl, list(id("a", "<Permission>"+strings.Repeat("r", 250_000)+"</Permission>")), 400, "InvalidXmlNodeValue", "<XmlNodeValue>rrrrrrrr</XmlNodeValue>", nil},
		{acl, list(id("a", "<Start>tomorrow</Start>")), 400, "InvalidXmlNodeValue", "<XmlNodeName>Start</XmlNodeName>", nil},
		{acl, list(id("a", "<Expiry>2024-13-02</Expiry>")), 400, "InvalidXmlNodeValue", "", nil},
		{acl, list(id("a", "<Expiry>2024-01-02T03:04:05</Expiry>")), 400, "InvalidXmlNodeValue", "", nil},
		{acl, list(id("a", "<Expiry>2024-01-02T03:04:05.12345678Z</Expiry>")), 400, "InvalidXmlNodeValue", "", nil},
		{acl, list(id("a", "<Expiry>2024-01-02T03Z</Expiry>")), 400, "InvalidXmlNodeValue", "", nil},
		{acl, strings.Repeat(" ", 256<<10+1), 413, "RequestBodyTooLarge", "<MaxLimit>262144</MaxLimit>", nil},
	})
	require.Equal(t, "kept", r.do("GET", "/first/messages", "").list(t)[0].MessageText)
}

// A text of the longest length is taken and comes back, and one byte more is refused, by version, whatever it
// is written as (Q24, protocol/queue.md 2, 9.1).
func TestQ24Sizes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, c := range []struct {
		version string
		most    int
		code    string
		status  int
	}{
		{"2009-09-19", 8 << 10, "MessageTooLarge", 400},
		{"2011-08-18", 64 << 10, "RequestBodyTooLarge", 413},
		{testVersion, 64 << 10, "RequestBodyTooLarge", 413},
	} {
		for in, n := range map[string]int{"x": 1, "&quot;": 1, "&#x41;": 1, "é": 2, "\U0001F600": 4} {
			text := strings.Repeat(in, c.most/n)
			require.Equal(t, 201, r.put("/first/messages", text, "x-ms-version", c.version).status, in)
			got := r.do("GET", "/first/messages", "", "x-ms-version", c.version).list(t)
			require.Len(t, got, 1)
			require.Len(t, got[0].MessageText, c.most, in)
			body := "<QueueMessage><MessageText>" + text + "x</MessageText></QueueMessage>"
			r.requireRefused([]refusal{{"POST /first/messages", body, c.status, c.code, "", version(c.version)}})
			if c.version != "2009-09-19" {
				r.requireRefused([]refusal{{"PUT " + named("first", got[0], "&visibilitytimeout=0"), body, c.status, c.code, "", version(c.version)}})
			}
		}
		r.requireRefused([]refusal{{"POST /first/messages", strings.Repeat(" ", 512<<10+1), c.status, c.code, "", version(c.version)}})
	}
	// Base64 of 48 KiB is the longest that clients send so.
	require.Equal(t, 201, r.put("/first/messages", strings.Repeat("QUJD", 16<<10)).status)
}

// A body that is shorter than its length, stalls, or comes in chunks.
func TestBrokenBodies(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	before := r.state()
	line := func(request string, closeWrite bool) string {
		t.Helper()
		status, _, _ := strings.Cut(apitest.Raw(t, r.url, request, closeWrite), "\r\n")
		return status
	}
	head := "POST /acct/first/messages HTTP/1.1\r\nHost: x\r\nx-ms-version: " + testVersion + "\r\nConnection: close\r\n"
	require.Contains(t, line(head+"Content-Length: 100\r\n\r\n"+small, true), "400")
	require.Contains(t, line(strings.Replace(head, "messages", "messages?limit=50ms", 1)+"Content-Length: 100\r\n\r\n"+small, false), "500")
	require.Contains(t, line(head+"Transfer-Encoding: chunked\r\n\r\nf00\r\n"+small, true), "400")
	require.Contains(t, line(head+"x-ms-version: "+testVersion+"\r\nContent-Length: 0\r\n\r\n", true), "400")
	long := "80001\r\n" + strings.Repeat(" ", 512<<10+1) + "\r\n0\r\n\r\n"
	require.Contains(t, line(head+"Transfer-Encoding: chunked\r\n\r\n"+long, false), "413")
	require.Equal(t, before, r.state())
	require.Contains(t, line(head+"Transfer-Encoding: chunked\r\n\r\n39\r\n"+small+"\r\n0\r\n\r\n", false), "201")
	require.Equal(t, "x", r.do("GET", "/first/messages", "").list(t)[0].MessageText)
}

// What is in memory at once is bounded: an answer waits for room, before it hides anything, and so does a body.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.AnswersBytesMax, o.InFlightBytesMax = 1<<20, 4<<20 })
	require.Equal(t, 201, r.put("/first/messages", "x").status)
	refused := func() {
		t.Helper()
		before := r.state()
		held, err := r.handler.answers.Of("acct").Admit(t.Context(), 512<<10)
		require.NoError(t, err)
		r.requireCode(r.do("GET", "/first/messages?numofmessages=32&limit=50ms", ""), 503, "ServerBusy")
		require.Equal(t, before, r.state(), "nothing is hidden")
		r.handler.answers.Of("acct").Release(held)
	}
	refused()
	require.Len(t, r.do("GET", "/first/messages?numofmessages=32", "").list(t), 1)
	for range 20 {
		require.Empty(t, r.do("GET", "/first/messages?numofmessages=32", "").list(t), "what was held was given back")
	}
	refused() // It was given back once.
}
