package tables

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is answered without a body has no format to choose, whatever Accept and $format say
// (2.4); what has one is refused as before.
func TestNoBodyIsNotNegotiated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := "/acct/" + key("p", "r")
	atom := []string{"Accept", "application/atom+xml"}
	quiet := append([]string{"Prefer", "return-no-content"}, atom...)
	for _, step := range []struct {
		method, target, body string
		headers              []string
		want                 int
	}{
		{"POST", "/acct/tbl", `{"PartitionKey":"p","RowKey":"r"}`, atom, 415},
		{"POST", "/acct/tbl", `{"PartitionKey":"p","RowKey":"r"}`, quiet, 204},
		{"PUT", at, "{}", atom, 204},
		{"MERGE", at + "?$format=image/png", "{}", atom, 204},
		{"POST", at, "{}", append([]string{"X-HTTP-Method", "MERGE", "If-Match", "*"}, atom...), 204},
		{"GET", at, "", atom, 415},
		{"DELETE", at, "", append([]string{"If-Match", "*"}, atom...), 204},
		{"DELETE", at, "", append([]string{"If-Match", "*"}, atom...), 404},
		{"POST", "/acct/Tables", `{"TableName":"made"}`, atom, 415},
		{"POST", "/acct/Tables", `{"TableName":"made"}`, quiet, 204},
		{"DELETE", "/acct/Tables('made')", "", atom, 204},
		// A client of Atom alone may delete.
		{"PUT", at, "{}", nil, 204},
		{"DELETE", at, "", []string{"If-Match", "*", "Accept", "application/atom+xml,application/xml", "x-ms-version", "2009-09-19"}, 204},
	} {
		a := r.do(step.method, step.target, step.body, step.headers...)
		require.Equal(t, step.want, a.status, "%s %s %v: %s", step.method, step.target, step.headers, a.body)
	}
	require.Equal(t, []string{"204", "204", "204"}, r.parts(r.batch(set(
		insert("p", "1", "x", "Accept: application/atom+xml"),
		op("PUT", key("p", "2"), "{}", "Accept: image/png"),
		op("MERGE", key("p", "3"), "{}", "Accept: application/atom+xml"),
	)+end)))
	require.Equal(t, []string{"204", "204"}, r.parts(r.batch(set(
		op("DELETE", key("p", "1"), "", "Accept: application/atom+xml"),
		op("DELETE", key("p", "2"), "", "Accept: application/atom+xml"),
	)+end)))
	// In a batch of the Atom era failures are Atom's (13.5).
	a := r.batch(set(op("DELETE", key("p", "1"), "", "Content-ID: 7"))+end, "x-ms-version", "2009-04-14")
	require.Contains(t, a.body, "\r\nHTTP/1.1 404 Not Found\r\nContent-ID: 7\r\nContent-Type: application/xml\r\n"+
		"Cache-Control: no-cache\r\nDataServiceVersion: 1.0;\r\n\r\n<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?><error xmlns=")
	require.Contains(t, a.body, "<code>ResourceNotFound</code><message xml:lang=\"en-US\">0:The specified resource does not exist.</message></error>")
}

// If-None-Match takes the tag in every form that If-Match takes, alone and in a batch
// (9.6, 10.1).
func TestIfNoneMatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := "/acct/" + key("p", "r")
	tag := r.do(http.MethodPut, at, `{"v":"x"}`).header.Get("ETag")
	raw, err := url.PathUnescape(tag)
	require.NoError(t, err)
	require.Contains(t, raw, ":")
	for value, want := range map[string]int{
		tag: 304, raw: 304, strings.ToLower(tag[:20]) + tag[20:]: 200, "*": 304, strings.ReplaceAll(tag, "%3A", "%3a"): 304,
		`W/"datetime'2020-01-01T00%3A00%3A00Z'"`: 200, `W/"abc"`: 200,
	} {
		a := r.do(http.MethodGet, at, "", "If-None-Match", value)
		require.Equal(t, want, a.status, value)
		require.Equal(t, tag, a.header.Get("ETag"))
		part := r.parts(r.batch(single(op("GET", key("p", "r"), "", "If-None-Match: "+value)) + end))[0]
		require.Equal(t, want, map[bool]int{true: 304, false: 200}[strings.HasPrefix(part, "304")], value)
	}
	require.Equal(t, http.StatusNoContent, r.do("MERGE", at, "{}", "If-Match", raw).status)
}

// One slash behind a resource is none of its name: a client's base address may end with
// one.
func TestSlashAtTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Equal(t, http.StatusCreated, r.do(http.MethodPost, "/acct/Tables/", `{"TableName":"made"}`).status)
	require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/acct/Tables/?$top=1", "").status)
	require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/acct/Tables('made')/", "").status)
	a := r.do(http.MethodPost, "/acct/made/", `{"PartitionKey":"p","RowKey":"r"}`)
	require.Equal(t, http.StatusCreated, a.status)
	require.True(t, strings.HasSuffix(a.header.Get("Location"), "/acct/made(PartitionKey='p',RowKey='r')"), a.header.Get("Location"))
	require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/acct/made(PartitionKey='p',RowKey='r')/", "").status)
}

// What is wrong with the values of an entity is answered before it is looked whether the
// table, or the entity, exists (8.2).
func TestValuesBeforeExistence(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Equal(t, "204", r.outcome(r.do(http.MethodPut, "/acct/"+key("p", "r"), "{}")))
	for _, value := range []string{"", "yesterday", "2021-02-29T00:00:00Z", "0000-01-01T00:00:00Z", "2020-01-01T00:00:00X"} {
		body := `{"PartitionKey":"p","RowKey":"r","d@odata.type":"Edm.DateTime","d":"` + value + `"}`
		for _, target := range []string{"/acct/tbl", "/acct/nosuch"} {
			require.Equal(t, badInput, r.outcome(r.do(http.MethodPost, target, body)), "%s %q", target, value)
		}
		for _, match := range []string{"*", `W/"abc"`} {
			require.Equal(t, badInput, r.outcome(r.do("MERGE", "/acct/"+key("p", "none"), body, "If-Match", match)), "%q", value)
		}
		part := r.parts(r.batch(set(op("POST", "tbl", body)) + end))[0]
		require.Equal(t, strings.Replace(badInput, "One", "0:One", 1), part)
	}
}
