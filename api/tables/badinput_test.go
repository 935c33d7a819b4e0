package tables

import (
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/apitest"
)

const (
	notUsingPost = "400 XMethodNotUsingPost The request uses X-HTTP-Method with an HTTP verb other than POST."
	badVerb      = "400 InvalidHttpVerb The HTTP verb specified was not recognized by the server."
	badMethods   = "400 XMethodIncorrectValue The specified X-HTTP-Method is invalid."
)

// What stands in the way of a request before its body says anything (1.5, 2.4, 9, 10,
// A.6, A.33 to A.38, A.46, A.53, A.58, A.75): the protocol's status, code and message.
//
// Capability: Clients: Bad input gets the protocol's error and changes nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Equal(t, "204", r.outcome(r.do(http.MethodPut, "/acct/"+key("p", "r"), `{"v":"old"}`)))
	at := "/acct/" + key("p", "r")
	etag := func(tag string) string {
		return "400 InvalidInput The etag value '" + tag + "' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid."
	}
	const (
		notAllowed     = "405 MethodNotAllowed The requested method is not allowed on the specified resource."
		notImplemented = "501 NotImplemented The requested operation is not implemented on the specified resource."
		missingHeader  = "400 MissingRequiredHeader A required HTTP header was not specified."
		badParameter   = "400 InvalidQueryParameterValue Value for one of the query parameters specified in the request URI is invalid."
		syntax         = "400 InvalidInput Bad Request - Error in query syntax."
		notMet         = "412 UpdateConditionNotSatisfied The update condition specified in the request was not satisfied."
		notFound       = "404 ResourceNotFound The specified resource does not exist."
	)
	query := func(option, value string) string { return "/acct/tbl()?" + option + "=" + url.QueryEscape(value) }
	for _, tc := range []struct {
		method, target, body, want string
		headers                    []string
	}{
		{"GET", query("$top", "1001"), "", badInput, nil},
		{"GET", query("$top", "-1"), "", badInput, nil},
		{"GET", query("$top", "x"), "", badInput, nil},
		{"GET", query("$top", ""), "", badInput, nil},
		{"GET", "/acct/Tables?$top=1001", "", badInput, nil},
		{"GET", query("$orderby", "v"), "", notImplemented, nil},
		{"GET", query("$skip", "1"), "", notImplemented, nil},
		{"GET", query("$expand", "v"), "", notImplemented, nil},
		{"GET", query("$filter", "a eq b"), "", notImplemented, nil},
		{"GET", query("$filter", "x eq null"), "", badInput, nil},
		{"GET", query("$filter", "x lt null"), "", "400 InvalidInput The operator 'LessThan' is not supported for the 'null' literal; only equality checks are supported.", nil},
		{"GET", query("$filter", "aaa bbb ccc"), "", "400 InvalidInput Syntax error at position 7 in 'aaa bbb ccc'.", nil},
		{"GET", query("$filter", "startswith(a,'b')"), "", notImplemented, nil},
		{"GET", query("$filter", "name eq 'O"), "", "400 InvalidInput Syntax error at position 10 in 'name eq 'O'.", nil},
		{"GET", query("$filter", "x eq guid'zz'"), "", badInput, nil},
		{"GET", query("$select", strings.Repeat("a,", 252)+"b"), "", badInput, nil},
		{"GET", query("NextPartitionKey", "garbage"), "", badInput, nil},
		{"GET", query("NextRowKey", "1!4!MQ--"), "", badInput, nil},
		{"GET", "/acct/Tables?NextTableName=garbage", "", badInput, nil},
		{"GET", query("$format", "application/json;odata=verbose"), "", "415 JsonVerboseFormatNotSupported JSON Verbose format is not supported.", nil},
		{"GET", query("$format", "image/png"), "", "415 MediaTypeNotSupported None of the provided media types are supported.", nil},
		{"GET", "/acct/tbl", "", "415 AtomFormatNotSupported Atom format is not supported.", []string{"Accept", "application/atom+xml"}},
		{"POST", "/acct/tbl", `{"PartitionKey":"p","RowKey":"s"}`, "415 JsonFormatNotSupported JSON format is not supported.", []string{"x-ms-version", "2012-02-12"}},
		{"POST", "/acct/tbl", "<entry/>", "415 AtomFormatNotSupported Atom format is not supported.", []string{"Content-Type", "application/atom+xml"}},
		{"POST", "/acct/tbl", "a=b", "415 MediaTypeNotSupported None of the provided media types are supported.", []string{"Content-Type", "text/plain"}},
		{"GET", "/acct/nosuch()", "", "404 TableNotFound The table specified does not exist.", nil},
		{"GET", "/acct/nosuch(PartitionKey='p',RowKey='r')", "", "404 TableNotFound The table specified does not exist.", nil},
		{"POST", "/acct/nosuch", `{"PartitionKey":"p","RowKey":"r"}`, "404 TableNotFound The table specified does not exist.", nil},
		{"GET", "/acct/Tables('nosuch')", "", notFound, nil},
		{"DELETE", "/acct/Tables('nosuch')", "", notFound, nil},
		{"PUT", "/acct/Tables('tbl')", "{}", notAllowed, nil},
		{"DELETE", "/acct/tbl", "", notAllowed, nil},
		{"POST", at, `{"v":"new"}`, notAllowed, nil},
		{"GET", "/acct/tbl(PartitionKey='p')", "", syntax, nil},
		{"GET", `/acct/tbl(PartitionKey="p",RowKey="r")`, "", syntax, nil},
		{"GET", "/acct/tbl(PartitionKey='p',RowKey='r'x)", "", syntax, nil},
		{"GET", "/acct/tbl(PartitionKey='O'Hara',RowKey='r')", "", syntax, nil},
		{"GET", "/acct/tbl(RowKey='r')", "", syntax, nil},
		{"GET", "/acct/tbl(PartitionKey='p',PartitionKey='r')", "", syntax, nil},
		{"GET", "/acct/tbl(PartitionKey='p',RowKey='r',X='x')", "", syntax, nil},
		{"GET", "/acct/tbl(PartitionKey='p',RowKey='r')x", "", syntax, nil},
		{"GET", "/acct/tbl(PartitionKey='p',RowKey=r)", "", syntax, nil},
		{"GET", "/acct/tbl(PartitionKey='p',RowKey='r'", "", syntax, nil},
		{"GET", "/acct/tbl(partitionkey='p',rowkey='r')", "", syntax, nil},
		{"GET", "/acct/(PartitionKey='p',RowKey='r')", "", syntax, nil},
		{"GET", "/acct/tbl(PartitionKey='p',RowKey='%zz')", "", bareRefusal, nil},
		{"GET", "/acct/tbl(PartitionKey='p',RowKey='%ff')", "", syntax, nil},
		{"GET", "/acct/tbl(PartitionKey='p',RowKey='%2F')", "", syntax, nil},
		{"GET", "/acct/tbl(PartitionKey='p',RowKey='%00')", "", "400 OutOfRangeInput One of the request inputs is out of range.", nil},
		{"GET", "/acct/Tables(tbl)", "", syntax, nil},
		{"GET", "/acct/Tables('tbl'", "", syntax, nil},
		{"GET", "/acct/tbl/x", "", "400 InvalidResourceName The specifed resource name contains invalid characters.", nil},
		{"GET", "/acct//tbl", "", "400 InvalidResourceName The specifed resource name contains invalid characters.", nil},
		{"GET", "/acct/t%00", "", "400 InvalidResourceName The specifed resource name contains invalid characters.", nil},
		{"GET", "/acct/t-bl()", "", "400 InvalidResourceName The specifed resource name contains invalid characters.", nil},
		{"DELETE", at, "", missingHeader, nil},
		{"DELETE", at, "", etag(`"abc"`), []string{"If-Match", `"abc"`}},
		{"DELETE", at, "", etag(`abc`), []string{"If-Match", `abc`}},
		{"DELETE", at, "", etag(`W/"a",W/"b"`), []string{"If-Match", `W/"a",W/"b"`}},
		{"DELETE", at, "", etag(`W/"a" b`), []string{"If-Match", `W/"a" b`}},
		{"DELETE", at, "", badInput, []string{"If-Match", "*", "If-None-Match", "*"}},
		{"MERGE", at, "{}", badInput, []string{"If-Match", "*", "If-None-Match", `W/"a"`}},
		{"DELETE", at, "", notMet, []string{"If-Match", `W/"abc"`}},
		{"PUT", at, "{}", notMet, []string{"If-Match", `W/"datetime'2020-01-01T00%3A00%3A00Z'"`}},
		{"PUT", at, "{}", badInput, []string{"If-None-Match", "*"}},
		{"PUT", "/acct/" + key("p", "none"), "{}", notFound, []string{"If-Match", "*"}},
		{"MERGE", "/acct/" + key("p", "none"), "{}", notFound, []string{"If-Match", `W/"abc"`}},
		{"DELETE", "/acct/" + key("p", "none"), "", notFound, []string{"If-Match", "*"}},
		{"GET", at, "", notUsingPost, []string{"X-HTTP-Method", "MERGE"}},
		{"GET", "/acct/tbl", "", notUsingPost, []string{"X-HTTP-Method", "MERGE"}},
		{"DELETE", "/acct/Tables('tbl')", "", notUsingPost, []string{"X-HTTP-Method", "DELETE"}},
		{"POST", at, "{}", badMethods, []string{"X-HTTP-Method", "GET"}},
		{"POST", at, "{}", badMethods, []string{"X-HTTP-Method", "merge"}},
		{"POST", "/acct/tbl", `{"PartitionKey":"p","RowKey":"x"}`, badMethods, []string{"X-HTTP-Method", "POST"}},
		{"POST", "/acct/tbl", `{"PartitionKey":"p","RowKey":"x"}`, notAllowed, []string{"X-HTTP-Method", "DELETE"}},
		{"POST", "/acct/tbl", `{"PartitionKey":"p","RowKey":"x"}`, notAllowed, []string{"X-HTTP-Method", "MERGE"}},
		{"POST", "/acct/Tables", `{"TableName":"made"}`, notAllowed, []string{"X-HTTP-Method", "PUT"}},
		{"POST", "/acct/$batch", set(insert("p", "x", "y")) + end, notAllowed, []string{"Content-Type", batchType, "X-HTTP-Method", "PUT"}},
		{"FOO", "/acct/tbl", "", badVerb, nil},
		{"get", at, "", badVerb, nil},
		{"FOO", "/acct/$batch", "", badVerb, nil},
		{"GET", "/acct/tbl?comp=nothing", "", badParameter, nil},
		{"GET", "/acct/tbl?comp=stats", "", badParameter, nil},
		{"GET", "/acct/Tables?comp=acl", "", badParameter, nil},
		{"GET", "/acct/tbl?a=%zz", "", badParameter, nil},
		{"GET", "/acct/", "", "400 InvalidUri The requested URI does not represent any resource on the server.", nil},
		{"GET", "/acct/tbl", "", "400 InvalidHeaderValue The value for one of the HTTP headers is not in the correct format.", []string{"x-ms-version", "2008-99-99"}},
		{"GET", query("$top", "1 "), "", badInput, nil},
		{"GET", query("$top", "+1"), "", badInput, nil},
		{"GET", query("$top", "99999999999999999999"), "", badInput, nil},
		{"GET", query("$select", "a\xff"), "", badInput, nil},
		{"GET", query("$apply", "x"), "", notImplemented, nil},
		{"GET", query("NextPartitionKey", "2!4!MQ--"), "", badInput, nil},
		{"GET", query("NextPartitionKey", "1!5!MQ--"), "", badInput, nil},
		{"GET", query("NextPartitionKey", "1!04!MQ--"), "", badInput, nil},
		{"GET", query("NextPartitionKey", "1!4!M?--"), "", badInput, nil},
		{"GET", query("NextPartitionKey", "1!4!MR--"), "", badInput, nil},
		{"GET", query("NextPartitionKey", "1!4!MQ=="), "", badInput, nil},
		{"GET", query("NextPartitionKey", "1!4!/w--"), "", badInput, nil},
		{"GET", query("NextPartitionKey", "1!12000!"+strings.Repeat("MTEx", 3000)), "", badInput, nil},
		{"GET", query("NextPartitionKey", "1!4!MQ--") + "&NextRowKey=x", "", badInput, nil},
		{"GET", "/acct/Tables?NextTableName=1!4!M?--", "", badInput, nil},
		{"POST", "/acct/tbl", `{"PartitionKey":"p","RowKey":"r"}`, "409 EntityAlreadyExists The specified entity already exists.", nil},
		{"POST", "/acct/Tables", `{"TableName":"TBL"}`, "409 TableAlreadyExists The table specified already exists.", nil},
		{"POST", "/acct/Tables", `{"TableName":"ab"}`, "400 OutOfRangeInput The specified resource name length is not within the permissible limits.", nil},
		{"POST", "/acct/Tables", `{"TableName":"` + strings.Repeat("a", 64) + `"}`, "400 OutOfRangeInput The specified resource name length is not within the permissible limits.", nil},
		{"POST", "/acct/Tables", `{"TableName":"1abc"}`, "400 InvalidResourceName The specifed resource name contains invalid characters.", nil},
		{"POST", "/acct/Tables", `{"TableName":"a-bc"}`, "400 InvalidResourceName The specifed resource name contains invalid characters.", nil},
		{"POST", "/acct/Tables", `{"TableName":"Tables"}`, badInput, nil},
		{"POST", "/acct/Tables", `{"TableName":null}`, badInput, nil},
		{"POST", "/acct/Tables", `{"TableName":5}`, badInput, nil},
		{"POST", "/acct/Tables", `{"TableName":"made","TableName":"twice"}`, "400 DuplicatePropertiesSpecified A property is specified more than one time.", nil},
		{"POST", "/acct/Tables", `{"TableName":"made"`, badInput, nil},
		{"POST", "/acct/Tables", `{"TableName":"made"}x`, badInput, nil},
		{"POST", "/acct/Tables", `{"TableName":"tblé"}`, "400 InvalidResourceName The specifed resource name contains invalid characters.", nil},
		{"POST", "/acct/Tables", `{}`, badInput, nil},
		{"POST", "/acct/Tables", ``, badInput, nil},
		{"POST", "/acct/tbl", `{"x":"` + strings.Repeat("x", bodyMax) + `"}`, "413 RequestBodyTooLarge The request body is too large and exceeds the maximum permissible limit.", nil},
	} {
		before := r.state()
		got := r.outcome(r.do(tc.method, tc.target, tc.body, tc.headers...))
		require.Equal(t, tc.want, got, "%s %.100s %v", tc.method, tc.target, tc.headers)
		require.Equal(t, before, r.state(), "%s %.100s %v", tc.method, tc.target, tc.headers)
	}
	require.Equal(t, []string{"p/r=old"}, r.rows("tbl"))
	require.Equal(t, `{"value":[{"TableName":"tbl"}]}`, r.do(http.MethodGet, "/acct/Tables", "").body)
}

// The answers to a verb that does not fit name those that do (17).
func TestAllow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for target, want := range map[string]string{
		"/acct/Tables": "GET, POST", "/acct/Tables('tbl')": "GET, DELETE", "/acct/tbl": "GET, POST",
		"/acct/" + key("p", "r"): "GET, PUT, MERGE, PATCH, DELETE", "/acct/$batch": "POST",
	} {
		for _, method := range []string{http.MethodOptions, http.MethodHead} {
			a := r.do(method, target, "")
			require.Equal(t, http.StatusMethodNotAllowed, a.status, "%s %s", method, target)
			require.Equal(t, "MethodNotAllowed", a.header.Get("x-ms-error-code"))
			require.Equal(t, want, a.header.Get("Allow"))
		}
	}
}

// Every fault of a filter's grammar (11.1, 11.2): 400 InvalidInput with the place of the
// fault, counted in UTF-16 units from zero, and 501 for what is not served.
func TestBadFilters(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.state()
	const notImplemented = "501 NotImplemented The requested operation is not implemented on the specified resource."
	for filter, at := range badFilters() {
		want := badInput
		switch {
		case at >= 0:
			want = fmt.Sprintf("400 InvalidInput Syntax error at position %d in '%s'.", at, filter)
		case at == notServed:
			want = notImplemented
		}
		for _, target := range []string{"/acct/tbl()", "/acct/Tables"} {
			got := r.outcome(r.do(http.MethodGet, target+"?$filter="+url.QueryEscape(filter), ""))
			require.Equal(t, want, got, "%.100s", filter)
		}
	}
	require.Equal(t, before, r.state())
}

// Faults without a place.
const (
	noPlace   = -1
	notServed = -2
)

func badFilters() map[string]int {
	return map[string]int{
		"a eq": 4, "a eq ": 5, "eq 1": 4, "1 eq": 4, "(a eq 1": 7, "a eq 1)": 7, "()": 2, "(": 1, ")": 1,
		"a eq 1 and": 10, "a eq 1 or or b": 14, "and a eq 1": 5, "not": 3, "a eq 1 and not": 14, "a == 1": 3,
		"a eq 1 b eq 2": 8, "a EQ 1": 4, "a eq 1 AND b eq 2": 10, "a eq true eq true": 12, "a eq 1,b": 7, "a eq 1;b": 7,
		"a eq 'x": 7, "a eq 'x''": 9, "a eq 1'bad'": 7, "a eq foo'1'": 11, "a eq guid'": 10, `a eq "x"`: 6,
		"a eq 12x": 8, "a eq --1": 6, "a eq -": 6, "a eq .": 6, "a eq +1": 6, "a eq 1e": 7, "a eq 1e+": 8, "a eq 0x10": 7,
		"$a eq 1": 1, "a-b eq 1": 1, "😀 eq 1": 2, "a eq '😀' b": 11, "a\neq 1": 1,
		"a eq guid'1'": noPlace, "a eq datetime'2020'": noPlace, "a eq datetime'2020-13-01'": noPlace,
		"a eq X'0'": noPlace, "a eq binary'zz'": noPlace, "a eq 99999999999999999999": noPlace,
		"a eq 9999999999999999999L": noPlace, "a eq 1e999": noPlace, "a eq null": noPlace, "null": noPlace, "'x'": noPlace,
		"5": noPlace, "INF": noPlace, "a eq true and 5": noPlace, "not 'x'": noPlace, "a eq '\xff'": noPlace,
		strings.Repeat("(", 257) + "a" + strings.Repeat(")", 257): noPlace, strings.Repeat("a ", 33<<10): noPlace,
		"a eq b": notServed, "1 eq 2": notServed, "a eq b eq 2": 9, "length(a": 8, "a add 1": notServed, "a add 1 eq 2": notServed, "a in (1,2)": notServed,
		"a/b eq 1": notServed, "length(a) eq 1": notServed, "a eq nan": notServed,
	}
}

// A body that is not what its headers say (3, 4.6): shorter, longer, of another hash,
// without a length, too long without one. Nothing is changed by any of them.
//
// Capability: Clients: Bad input gets the protocol's error and changes nothing.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	entity := `{"PartitionKey":"p","RowKey":"r"}`
	batch := set(insert("p", "a", "x"), insert("p", "b", "x")) + end
	before := r.state()
	md5Of := func(s string) string {
		sum := md5.Sum([]byte(s))
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	for name, sum := range map[string]string{
		"InvalidMd5 not Base64": "?", "InvalidMd5 too short": "AAAA", "InvalidMd5 not padded": strings.TrimRight(md5Of(""), "="),
		"InvalidMd5 unused bits": "1B2M2Y8AsgTpgAmY7PhCfh==", "Md5Mismatch": md5Of("other"),
	} {
		want, _, _ := strings.Cut(name, " ")
		for how, a := range map[string]received{
			"insert":       r.do(http.MethodPost, "/acct/tbl", entity, "Content-MD5", sum),
			"upsert":       r.do(http.MethodPut, "/acct/"+key("p", "r"), "{}", "Content-MD5", sum),
			"batch":        r.batch(batch, "Content-MD5", sum),
			"create table": r.do(http.MethodPost, "/acct/Tables", `{"TableName":"made"}`, "Content-MD5", sum),
		} {
			code, _ := failureOf(t, a.body)
			require.Equal(t, "400 "+want, fmt.Sprint(a.status, " ", code), "%s of %s", name, how)
			require.Equal(t, before, r.state(), "%s of %s", name, how)
		}
	}
	broken := func(target, contentType, length, body string) string {
		return apitest.Raw(t, r.url, "POST "+target+" HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-version: 2019-02-02\r\nAccept: application/json\r\n"+
			"Content-Type: "+contentType+"\r\n"+length+"\r\n\r\n"+body, true)
	}
	for what, body := range map[string]string{"tbl": entity, "$batch": batch, "Tables": `{"TableName":"made"}`} {
		contentType := "application/json"
		if what == "$batch" {
			contentType = batchType
		}
		for name, tc := range map[string]struct{ length, body, want string }{
			"breaks off":         {fmt.Sprint("Content-Length: ", len(body)+1), body, "InvalidInput"},
			"breaks off early":   {fmt.Sprint("Content-Length: ", len(body)), body[:len(body)/2], "InvalidInput"},
			"no byte":            {fmt.Sprint("Content-Length: ", len(body)), "", "InvalidInput"},
			"ends early":         {"Content-Length: 12", body, "InvalidInput"},
			"no length":          {"X-None: 0", body, "InvalidInput"},
			"chunks break off":   {"Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n", len(body), body), "InvalidInput"},
			"chunk breaks off":   {"Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s", len(body)+5, body), "InvalidInput"},
			"chunk of no number": {"Transfer-Encoding: chunked", "zz\r\n" + body + "\r\n0\r\n\r\n", "InvalidInput"},
			"too large":          {fmt.Sprint("Content-Length: ", bodyMax+1), "", "RequestBodyTooLarge"},
			// What follows is HTTP's own: no storage body (8.1).
			"length below zero": {"Content-Length: -5", body, bareRefusal},
			"length of text":    {"Content-Length: many", body, bareRefusal},
			"two lengths":       {"Content-Length: 3\r\nContent-Length: 5", body, bareRefusal},
			"unknown coding":    {"Transfer-Encoding: gzip", body, "501 Not Implemented"},
		} {
			require.Contains(t, broken("/acct/"+what, contentType, tc.length, tc.body), tc.want, "%s %s", what, name)
			require.Equal(t, before, r.state(), "%s %s", what, name)
		}
	}
	require.Equal(t, "201", r.outcome(r.do(http.MethodPost, "/acct/tbl", entity, "Content-MD5", md5Of(entity))))
	require.Equal(t, http.StatusAccepted, r.batch(batch, "Content-MD5", md5Of(batch)).status)
	require.Equal(t, []string{"p/a=x", "p/b=x", "p/r"}, r.rows("tbl"))
	require.NotEqual(t, before, r.state(), "what changes something shows")
}

// What is no batch (13.2, 13.7): refused as a whole, and nothing is changed.
func TestBadBatches(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.state()
	part := "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
	good := insert("p", "a", "x")
	mixed := func(head, boundary string) string {
		return "Content-Type: multipart/mixed" + head + boundary + "\r\n\r\n"
	}
	for name, tc := range map[string]struct{ contentType, body string }{
		"empty":                   {batchType, ""},
		"preamble alone":          {batchType, "hello\r\n"},
		"end alone":               {batchType, end},
		"delimiter alone":         {batchType, "--b\r\n"},
		"other boundary":          {"multipart/mixed; boundary=other", set(good) + end},
		"empty boundary":          {"multipart/mixed; boundary=", set(good) + end},
		"boundary too long":       {"multipart/mixed; boundary=" + strings.Repeat("b", 201), set(good) + end},
		"boundary with blanks":    {`multipart/mixed; boundary=" b "`, set(good) + end},
		"multipart of others":     {"multipart/form-data; boundary=b", set(good) + end},
		"no type":                 {"", set(good) + end},
		"set of no boundary":      {batchType, "--b\r\n" + mixed("", "") + "--c\r\n" + part + good + "\r\n--c--\r\n" + end},
		"set of the outer one":    {batchType, "--b\r\n" + mixed("; boundary=", "b") + "--b\r\n" + part + good + "\r\n--b--\r\n"},
		"set not opened":          {batchType, "--b\r\n" + mixed("; boundary=", "c") + part + good + "\r\n" + end},
		"set in a set":            {batchType, "--b\r\n" + mixed("; boundary=", "c") + "--c\r\n" + mixed("; boundary=", "d") + "--d\r\n" + part + good + "\r\n--d--\r\n--c--\r\n" + end},
		"part of no request":      {batchType, "--b\r\n" + part + end},
		"request line of a word":  {batchType, set("POST") + end},
		"request line of blanks":  {batchType, set("POST   ") + end},
		"control character":       {batchType, set("POST /tbl\x01 HTTP/1.1\r\n\r\n{}") + end},
		"line too long":           {batchType, set("POST /"+strings.Repeat("t", 17<<10)+" HTTP/1.1\r\n\r\n{}") + end},
		"header too long":         {batchType, set("POST /tbl HTTP/1.1\r\nA: "+strings.Repeat("a", 17<<10)+"\r\n\r\n{}") + end},
		"header of no name":       {batchType, set("POST /tbl HTTP/1.1\r\n: a\r\n\r\n{}") + end},
		"header of no colon":      {batchType, set("POST /tbl HTTP/1.1\r\nabc\r\n\r\n{}") + end},
		"too many headers":        {batchType, set("POST /tbl HTTP/1.1\r\n"+strings.Repeat("A: b\r\n", 65)+"\r\n{}") + end},
		"bad part after good one": {batchType, set(good, "POST") + end},
	} {
		a := r.do(http.MethodPost, "/acct/$batch", tc.body, "Content-Type", tc.contentType)
		require.Equal(t, badInput, r.outcome(a), name)
		require.Equal(t, before, r.state(), name)
	}
	for body, want := range map[string]string{
		set(op("POST", "tbl", `{"PartitionKey":"p","RowKey":"a"}`, "X-HTTP-Method: DELETE")):       badInput,
		set(op("POST", key("p", "a"), `{}`, "X-HTTP-Method: PUT", "X-HTTP-Method: PUT")):           "400 XMethodIncorrectCount More than one X-HTTP-Method is specified.",
		set(op("FOO", key("p", "a"), `{}`)):                                                        badVerb,
		set(op("PUT", key("p", "a"), `{}`, "X-HTTP-Method: PUT")):                                  notUsingPost,
		single(op("GET", key("p", "a"), "", "X-HTTP-Method: DELETE")):                              notUsingPost,
		set(op("PUT", "tbl(PartitionKey='p',RowKey='%zz')", `{}`)):                                 "400 InvalidInput Bad Request - Error in query syntax.",
		set(op("PUT", key("p", "a")+"?a=%zz", `{}`)):                                               "400 InvalidQueryParameterValue Value for one of the query parameters specified in the request URI is invalid.",
		set(op("POST", "tbl", `{"PartitionKey":"p","RowKey":"a"} {}`)):                             badInput,
		set(op("PUT", key("p", "a")+"?a=1&a=", `{}`)):                                              "400 InvalidQueryParameterValue Value for one of the query parameters specified in the request URI is invalid.",
		set(op("PUT", key("p", "a"), `{}`, "x-ms-version: 2019-02-02", "x-ms-version: x")):         "400 InvalidHeaderValue The value for one of the HTTP headers is not in the correct format.",
		set(elsewhere("other.table.core.windows.net")):                                             badInput,
		set(elsewhere("acct.blob.localhost:10000")):                                                badInput,
		set(elsewhere("other.z12.table.core.windows.net")):                                         badInput,
		set(elsewhere("other.privatelink.table.localhost:10002")):                                  badInput,
		set(elsewhere("acct-secondary.table.localhost")):                                           badInput,
		set(elsewhere("127.0.0.1/acct-secondary")):                                                 badInput,
		set(elsewhere("acct.table.localhost@other")):                                               badInput,
		set(strings.Replace(insert("p", "a", "x"), "http://127.0.0.1/acct", "/acct-secondary", 1)): badInput,
		set(insert("p", "a", "x", "Host: other.table.localhost")):                                  badInput,
		set(insert("p", "a", "x", "Host: acct.table.x", "Host: other.table.x")):                    badInput,
		set(op("PUT", key("p", "a")+"?comp=acl", `{}`)):                                            badInput,
		set(op("PUT", key("p", "a")+"?comp=", `{}`)):                                               badInput,
		set(op("PUT", key("p", "a")+"?COMP=x&timeout=1", `{}`)):                                    badInput,
		single(op("GET", key("p", "a")+"?comp=", "")):                                              badInput,
		set(elsewhere("127.0.0.1/other")):                                                          "400 InvalidResourceName The specifed resource name contains invalid characters.",
	} {
		got := strings.Replace(r.parts(r.batch(body + end))[0], " 0:", " ", 1)
		require.Equal(t, want, got, body)
		require.Equal(t, before, r.state(), body)
	}
}
