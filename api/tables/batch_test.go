package tables

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const batchType = "multipart/mixed; boundary=b"

// set is a change set of requests, each of which is its lines from the request line on.
func set(requests ...string) string {
	b := "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
	for _, r := range requests {
		b += "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" + r + "\r\n"
	}
	return b + "--c--\r\n"
}

func single(request string) string {
	return "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" + request + "\r\n"
}

const end = "--b--\r\n"

// op is one request with a body; lines are headers.
func op(method, path, body string, lines ...string) string {
	r := method + " http://127.0.0.1/acct/" + path + " HTTP/1.1\r\nContent-Type: application/json\r\n"
	for _, l := range lines {
		r += l + "\r\n"
	}
	return r + "\r\n" + body
}

func insert(pk, rk, v string, lines ...string) string {
	return op("POST", "tbl", fmt.Sprintf(`{"PartitionKey":%q,"RowKey":%q,"v":%q}`, pk, rk, v),
		append([]string{"Prefer: return-no-content"}, lines...)...)
}

// elsewhere is an insert whose URI names another place than 127.0.0.1/acct.
func elsewhere(place string) string {
	return strings.Replace(insert("p", "new", "x"), "127.0.0.1/acct", place, 1)
}

func key(pk, rk string) string { return fmt.Sprintf("tbl(PartitionKey='%s',RowKey='%s')", pk, rk) }

func (r *rig) batch(body string, headers ...string) received {
	r.t.Helper()
	return r.do(http.MethodPost, "/acct/$batch", body, append([]string{"Content-Type", batchType}, headers...)...)
}

// parts takes a batch answer apart into status and body of each part, and requires its
// frame to be as 13.5 has it.
func (r *rig) parts(a received) (parts []string) {
	r.t.Helper()
	require.Equal(r.t, http.StatusAccepted, a.status, a.body)
	id, ok := strings.CutPrefix(a.header.Get("Content-Type"), "multipart/mixed; boundary=batchresponse_")
	require.True(r.t, ok, a.header)
	require.True(r.t, strings.HasPrefix(a.body, "--batchresponse_"+id+"\r\n"), a.body)
	require.True(r.t, strings.HasSuffix(a.body, "\r\n--batchresponse_"+id+"--\r\n"), a.body)
	require.NotContains(r.t, strings.ReplaceAll(a.body, "\r\n", ""), "\n")
	closed := regexp.MustCompile(`\r\n--changesetresponse_[0-9a-f-]{36}--\r\n`).FindAllString(a.body, -1)
	require.Len(r.t, closed, strings.Count(a.body, "boundary=changesetresponse_"), a.body)
	for _, p := range strings.Split(a.body, "Content-Transfer-Encoding: binary\r\n\r\n")[1:] {
		head, body, _ := strings.Cut(p, "\r\n\r\n")
		status := strings.TrimPrefix(head[:len("HTTP/1.1 200")], "HTTP/1.1 ")
		body, _, _ = strings.Cut(body, "\r\n")
		if strings.Contains(body, "odata.error") {
			code, message := failureOf(r.t, body)
			body = code + " " + message
		}
		parts = append(parts, strings.TrimSpace(status+" "+body))
	}
	return parts
}

// A batch of every kind of write has the effect of all of them at one time, and its
// answer is that of 13.5 byte for byte (A.60 without Atom, A.72).
func TestBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Equal(t, []string{"204", "204", "204", "204"},
		r.parts(r.batch(set(insert("p", "1", "a"), insert("p", "2", "a"), insert("p", "3", "a"), insert("p", "4", "a"))+end)))
	tag := r.do(http.MethodGet, "/acct/"+key("p", "3"), "").header.Get("ETag")
	a := r.batch(set(
		op("PUT", key("p", "1"), `{"w":1}`, "If-Match: *"),
		op("PATCH", key("p", "2"), `{"x":"merged"}`, "If-Match: *", "Content-ID: 5"),
		op("DELETE", key("p", "3"), "ignored", "If-Match: "+tag),
		op("MERGE", key("p", "5"), `{"v":"upserted"}`),
		op("PUT", "tbl(PartitionKey='p', RowKey='6')", `{"v":"upserted","PartitionKey":"q"}`),
		op("POST", "tbl()?$format=application/json;odata=nometadata", `{"PartitionKey":"p","RowKey":"7","v":"echo"}`),
		insert("p", "8'", "quiet", "Content-ID: 9"),
		op("POST", key("p", "4"), `{"v":"tunnelled"}`, "X-HTTP-Method: MERGE", "If-Match: *"),
	) + end)
	const open = "--changesetresponse_ID\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n"
	const common = "X-Content-Type-Options: nosniff\nCache-Control: no-cache\n"
	const location = "http://HOST/acct/tbl(PartitionKey='p',RowKey='8''')"
	want := "--batchresponse_ID\nContent-Type: multipart/mixed; boundary=changesetresponse_ID\n\n" +
		open + "HTTP/1.1 204 No Content\n" + common + "DataServiceVersion: 1.0;\nETag: TAG\n\n\n" +
		open + "HTTP/1.1 204 No Content\nContent-ID: 5\n" + common + "DataServiceVersion: 1.0;\nETag: TAG\n\n\n" +
		open + "HTTP/1.1 204 No Content\n" + common + "DataServiceVersion: 1.0;\n\n\n" +
		open + "HTTP/1.1 204 No Content\n" + common + "DataServiceVersion: 1.0;\nETag: TAG\n\n\n" +
		open + "HTTP/1.1 204 No Content\n" + common + "DataServiceVersion: 1.0;\nETag: TAG\n\n\n" +
		open + "HTTP/1.1 201 Created\n" + common + "DataServiceVersion: 3.0;\n" +
		"Content-Type: application/json;odata=nometadata;streaming=true;charset=utf-8\n" +
		"Location: http://HOST/acct/tbl(PartitionKey='p',RowKey='7')\nETag: TAG\n\n" +
		`{"PartitionKey":"p","RowKey":"7","Timestamp":"TIME","v":"echo"}` + "\n" +
		open + "HTTP/1.1 204 No Content\nContent-ID: 9\n" + common + "Preference-Applied: return-no-content\n" +
		"DataServiceVersion: 3.0;\nLocation: " + location + "\nDataServiceId: " + location + "\nETag: TAG\n\n\n" +
		open + "HTTP/1.1 204 No Content\n" + common + "DataServiceVersion: 1.0;\nETag: TAG\n\n\n" +
		"--changesetresponse_ID--\n--batchresponse_ID--\n"
	tags := regexp.MustCompile(`W/"datetime'[^']*'"`).FindAllString(a.body, -1)
	require.Len(t, tags, 7)
	for _, tag := range tags {
		require.Equal(t, tags[0], tag, "all entities have one Timestamp (4.7)")
	}
	got := regexp.MustCompile(`response_[0-9a-f-]{36}`).ReplaceAllString(a.body, "response_ID")
	got = strings.ReplaceAll(strings.ReplaceAll(got, tags[0], "TAG"), strings.TrimPrefix(r.url, "http://"), "HOST")
	got = regexp.MustCompile(`"Timestamp":"[^"]*"`).ReplaceAllString(got, `"Timestamp":"TIME"`)
	require.Equal(t, strings.ReplaceAll(want, "\n", "\r\n"), got)
	require.Len(t, r.parts(a), 8)
	require.Equal(t, []string{"p/1", "p/2=a", "p/4=tunnelled", "p/5=upserted", "p/6=upserted", "p/7=echo", "p/8'=quiet"}, r.rows("tbl"))
	for _, rk := range []string{"1", "2", "4", "5", "6", "7", "8''"} {
		require.Equal(t, tags[0], r.do(http.MethodGet, "/acct/"+key("p", rk), "").header.Get("ETag"), rk)
	}
}

// Every way in which an operation fails (13.6, A.61 to A.65): one inner answer with its
// status, code and index, and nothing is changed.
// It holds invariant 7.
func TestBatchFailures(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Equal(t, http.StatusCreated, r.do(http.MethodPost, "/acct/Tables", `{"TableName":"other"}`).status)
	require.Equal(t, []string{"204"}, r.parts(r.batch(set(insert("p", "there", "old"))+end)))
	ops := func(n int) (all []string) {
		for i := range n {
			all = append(all, insert("p", fmt.Sprintf("n%03d", i), "x"))
		}
		return all
	}
	heads := r.heads()
	require.Len(t, heads, 1)
	large := `{"a":"` + strings.Repeat("x", 32768) + `","b":"` + strings.Repeat("x", 32769) + `"}`
	for name, tc := range map[string]struct{ body, want string }{
		"exists":            {set(insert("p", "a", "x"), insert("p", "b", "x"), insert("p", "there", "x"), insert("p", "c", "x")), "409 EntityAlreadyExists 2:The specified entity already exists."},
		"missing":           {set(op("PUT", key("p", "none"), `{}`, "If-Match: *"), insert("p", "a", "x")), "404 ResourceNotFound 0:The specified resource does not exist."},
		"merge missing":     {set(insert("p", "a", "x"), op("MERGE", key("p", "none"), `{}`, "If-Match: *")), "404 ResourceNotFound 1:The specified resource does not exist."},
		"delete missing":    {set(insert("p", "a", "x"), op("DELETE", key("p", "none"), "")), "404 ResourceNotFound 1:The specified resource does not exist."},
		"stale tag":         {set(insert("p", "a", "x"), op("MERGE", key("p", "there"), `{}`, `If-Match: W/"datetime'2020-01-01T00%3A00%3A00Z'"`)), "412 UpdateConditionNotSatisfied 1:The update condition specified in the request was not satisfied."},
		"strong tag":        {set(op("MERGE", key("p", "there"), `{}`, `If-Match: "a"`)), `400 InvalidInput 0:The etag value '"a"' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.`},
		"no table":          {set(strings.ReplaceAll(insert("p", "a", "x"), "/tbl", "/nosuch")), "404 TableNotFound 0:The table specified does not exist."},
		"twice":             {set(insert("p", "a", "x"), op("DELETE", key("p", "a"), "")), "400 InvalidDuplicateRow 1:The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."},
		"two partitions":    {set(insert("p", "a", "x"), insert("q", "b", "x"), insert("p", "c", "x")), "400 CommandsInBatchActOnDifferentPartitions 1:All commands in a batch must operate on same entity group."},
		"two tables":        {set(insert("p", "a", "x"), insert("p", "b", "x"), strings.ReplaceAll(insert("p", "c", "x"), "/tbl", "/other")), "400 CommandsInBatchActOnDifferentPartitions 2:All commands in a batch must operate on same entity group."},
		"101":               {set(ops(101)...), "400 InvalidInput 99:The batch request operation exceeds the maximum 100 changes per change set."},
		"300":               {set(ops(300)...), "400 InvalidInput 99:The batch request operation exceeds the maximum 100 changes per change set."},
		"bad key":           {set(insert("p", "a", "x"), insert("p", "a#b", "x")), "400 OutOfRangeInput 1:The 'RowKey' parameter of value 'a#b' is out of range."},
		"bad key in URI":    {set(op("PUT", key("p", "a%23"), `{}`)), "400 OutOfRangeInput 0:One of the request inputs is out of range."},
		"two faults":        {set(op("PUT", key("p", "a%23"), `{}`), op("PUT", "tbl(PartitionKey='p')", `{}`)), "400 OutOfRangeInput 0:One of the request inputs is out of range."},
		"bad predicate":     {set(op("PUT", "tbl(PartitionKey='p')", `{}`)), "400 InvalidInput 0:Bad Request - Error in query syntax."},
		"no RowKey":         {set(op("POST", "tbl", `{"PartitionKey":"p"}`)), "400 PropertiesNeedValue 0:The values are not specified for all properties in the entity."},
		"bad JSON":          {set(insert("p", "a", "x"), op("POST", "tbl", `{"PartitionKey":`)), "400 InvalidInput 1:One of the request inputs is not valid."},
		"value too large":   {set(op("PUT", key("p", "a"), large)), "400 PropertyValueTooLarge 0:The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less."},
		"Atom":              {set("POST /tbl HTTP/1.1\r\nContent-Type: application/atom+xml\r\n\r\n<entry/>"), "415 AtomFormatNotSupported 0:Atom format is not supported."},
		"Atom answer":       {set(op("POST", "tbl", `{"PartitionKey":"p","RowKey":"a"}`, "Accept: application/atom+xml")), "415 AtomFormatNotSupported 0:Atom format is not supported."},
		"query among":       {set(insert("p", "a", "x"), op("GET", key("p", "there"), "")), "400 InvalidInput 1:One of the request inputs is not valid."},
		"query after":       {set(insert("p", "a", "x")) + single(op("GET", key("p", "there"), "")), "400 InvalidInput 1:One of the request inputs is not valid."},
		"query before":      {single(op("GET", key("p", "there"), "")) + set(insert("p", "a", "x")), "400 InvalidInput 1:One of the request inputs is not valid."},
		"two queries":       {single(op("GET", key("p", "there"), "")) + single(op("GET", key("p", "there"), "")), "400 InvalidInput 1:One of the request inputs is not valid."},
		"no change set":     {single(insert("p", "a", "x")), "400 InvalidInput 0:One of the request inputs is not valid."},
		"table operation":   {set(op("POST", "Tables", `{"TableName":"made"}`)), "400 InvalidInput 0:One of the request inputs is not valid."},
		"batch in batch":    {set(op("POST", "$batch", "")), "400 InvalidInput 0:One of the request inputs is not valid."},
		"ACL":               {set(op("PUT", "tbl?comp=acl", "")), "400 InvalidInput 0:One of the request inputs is not valid."},
		"put on collection": {set(op("PUT", "tbl", `{}`)), "400 InvalidInput 0:One of the request inputs is not valid."},
		"unknown verb":      {set(op("HEAD", key("p", "there"), "")), "405 MethodNotAllowed 0:The requested method is not allowed on the specified resource."},
		"wrong tunnel":      {set(op("POST", key("p", "there"), `{}`, "X-HTTP-Method: GET")), "400 XMethodIncorrectValue 0:The specified X-HTTP-Method is invalid."},
		"not one entity":    {single(op("GET", "tbl()?$filter=PartitionKey%20eq%20'p'", "")), "400 InvalidInput 0:One of the request inputs is not valid."},
		"not one entity 2":  {single(op("GET", "tbl()?$filter=PartitionKey+eq+'p'+and+RowKey+ge+'there'", "")), "400 InvalidInput 0:One of the request inputs is not valid."},
		"query of tables":   {single(op("GET", "Tables('tbl')", "")), "400 InvalidInput 0:One of the request inputs is not valid."},
		"query not found":   {single(op("GET", key("p", "none"), "")), "404 ResourceNotFound 0:The specified resource does not exist."},
		"query, no table":   {single(op("GET", "nosuch(PartitionKey='p',RowKey='r')", "")), "404 TableNotFound 0:The table specified does not exist."},
		"query, bad filter": {single(op("GET", "tbl?$filter=a+b", "")), "400 InvalidInput 0:Syntax error at position 3 in 'a b'."},
	} {
		a := r.batch(tc.body + end)
		require.Equal(t, []string{tc.want}, r.parts(a), name)
		require.Equal(t, strings.Contains(tc.body, "boundary=c"), strings.Contains(a.body, "changesetresponse_"), name)
		require.Equal(t, []string{"p/there=old"}, r.rows("tbl"), name)
		require.Empty(t, r.rows("other"), name)
		require.Equal(t, heads, r.heads(), name)
	}
	a := r.batch(set(insert("p", "a", "x", "Content-ID: 4"), insert("p", "there", "x", "Content-ID: 7")) + end)
	require.Contains(t, a.body, "HTTP/1.1 409 Conflict\r\nContent-ID: 7\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n"+
		"Preference-Applied: return-no-content\r\nDataServiceVersion: 3.0;\r\nContent-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8\r\n\r\n{")
}

// What fails as a whole is answered without a 202 (13.7, A.67, A.70), and nothing is
// changed.
// It holds invariant 7.
func TestBatchRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	good := set(insert("p", "a", "x"))
	for name, tc := range map[string]struct {
		body, want string
		headers    []string
	}{
		"no version":      {good + end, "400 InvalidInput", []string{"x-ms-version", ""}},
		"no multipart":    {good + end, "400 InvalidInput", []string{"Content-Type", "application/json"}},
		"no boundary":     {good + end, "400 InvalidInput", []string{"Content-Type", "multipart/mixed"}},
		"no batch":        {`{"PartitionKey":"p"}`, "400 InvalidInput", nil},
		"empty set":       {set() + end, "400 InvalidInput", nil},
		"bad second part": {good + "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\nPOST\r\n--c--\r\n" + end, "400 InvalidInput", nil},
		"too large":       {set(insert("p", "a", "x"), insert("p", "b", strings.Repeat("x", bodyMax))), "413 RequestBodyTooLarge", nil},
	} {
		a := r.batch(tc.body, tc.headers...)
		code, _ := failureOf(t, a.body)
		require.Equal(t, tc.want, fmt.Sprint(a.status, " ", code), name)
		require.Empty(t, r.rows("tbl"), name)
		require.Empty(t, r.heads(), name)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		require.Equal(t, http.StatusMethodNotAllowed, r.do(method, "/acct/$batch", "").status)
	}
	// At the secondary a query is answered and nothing else (15).
	require.Equal(t, []string{"204"}, r.parts(r.batch(good+end)))
	second := func(body string) received {
		return r.do(http.MethodPost, "/acct-secondary/$batch", body, "Content-Type", batchType)
	}
	for name, body := range map[string]string{"change set": set(insert("p", "b", "x")) + end, "write": single(insert("p", "b", "x")) + end} {
		a := second(body)
		code, _ := failureOf(t, a.body)
		require.Equal(t, "403 InsufficientAccountPermissions", fmt.Sprint(a.status, " ", code), name)
	}
	parts := r.parts(second(single("GET http://127.0.0.1/acct-secondary/"+key("p", "a")+" HTTP/1.1\r\n\r\n") + end))
	require.Len(t, parts, 1)
	require.True(t, strings.HasPrefix(parts[0], "200 {"), parts[0])
	require.Equal(t, []string{"p/a=x"}, r.rows("tbl"))
}

// A body sent without a length is bounded as well, and one that breaks off changes
// nothing though all its operations had come.
func TestBatchBody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, tc := range map[string]struct {
		body io.Reader
		want int
	}{
		"too large": {io.MultiReader(strings.NewReader(set(insert("p", "a", "x"))), strings.NewReader(strings.Repeat("x", bodyMax))), http.StatusRequestEntityTooLarge},
		"fits":      {io.MultiReader(strings.NewReader(set(insert("p", "b", "x")) + end)), http.StatusAccepted},
	} {
		hr, err := http.NewRequest(http.MethodPost, r.url+"/acct/$batch", tc.body)
		require.NoError(t, err)
		hr.Header.Set("x-ms-version", "2019-02-02")
		hr.Header.Set("Content-Type", batchType)
		resp, err := r.client.Do(hr)
		require.NoError(t, err, name)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, tc.want, resp.StatusCode, name)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	require.NoError(t, err)
	body := set(insert("p", "c", "x")) + end
	_, err = fmt.Fprintf(conn, "POST /acct/$batch HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-version: 2019-02-02\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		batchType, len(body)+1, body)
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Contains(t, string(got), "400 Bad Request")
	require.Equal(t, []string{"p/b=x"}, r.rows("tbl"))
}

// Of several change sets the first is done and the others are refused (B.7, A.69); the
// outer Prefer is the default of inserts, and an insert without either is echoed.
func TestBatchSets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.batch(set(op("POST", "tbl", `{"PartitionKey":"p","RowKey":"a"}`))+set(insert("p", "b", "x"), insert("p", "c", "x"))+end,
		"Prefer", "return-no-content")
	require.Equal(t, []string{"204", "400 InvalidInput One of the request inputs is not valid."}, r.parts(a))
	require.Equal(t, 2, strings.Count(a.body, "Content-Type: multipart/mixed"))
	require.Equal(t, []string{"p/a"}, r.rows("tbl"))
	a = r.batch(set(op("POST", "tbl", `{"PartitionKey":"p","RowKey":"d"}`), op("POST", "tbl", `{"PartitionKey":"p","RowKey":"e"}`, "Prefer: return-content")) + end)
	require.Contains(t, a.body, "201 Created")
	require.Equal(t, 1, strings.Count(a.body, "Preference-Applied: return-content"))
	require.Contains(t, a.body, `/acct/$metadata#tbl/@Element","odata.etag":`)
}

// The single-query batch (13.1, A.68): the answer of a query by itself, in one part.
func TestBatchQuery(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	long := strings.Repeat("k", 500)
	require.Equal(t, []string{"204"}, r.parts(r.batch(set(insert(long, "r", "x"))+end)))
	alone := r.do(http.MethodGet, "/acct/tbl(PartitionKey='"+long+"',RowKey='r')", "")
	a := r.batch(single("GET /acct/tbl(PartitionKey='"+long+"', RowKey='r')?$format=application/json;odata=nometadata HTTP/1.1\r\nContent-ID: 3\r\n\r\n") + end)
	require.Equal(t, []string{"200 " + alone.body}, r.parts(a))
	require.NotContains(t, a.body, "changesetresponse")
	require.Contains(t, a.body, "HTTP/1.1 200 OK\r\nContent-ID: 3\r\nDataServiceVersion: 3.0;\r\n"+
		"Content-Type: application/json;odata=nometadata;streaming=true;charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n"+
		"Cache-Control: no-cache\r\nETag: "+alone.header.Get("ETag")+"\r\n\r\n{")
	filter := "$filter=PartitionKey%20eq%20'" + long + "'%20and%20RowKey%20eq%20'r'&$select=v"
	a = r.batch(single("GET http://h/tbl()?"+filter+"\r\nAccept: application/json;odata=nometadata\r\n") + end)
	require.Equal(t, []string{`200 {"value":[{"v":"x"}]}`}, r.parts(a))
	a = r.batch(single("GET http://h/tbl()?"+strings.Replace(filter, "'r'", "'s'", 1)+"\r\nAccept: application/json;odata=nometadata\r\n") + end)
	require.Equal(t, []string{`200 {"value":[]}`}, r.parts(a))
	a = r.batch(single("GET /tbl(PartitionKey='"+long+"',RowKey='r')\r\nIf-None-Match: "+alone.header.Get("ETag")+"\r\n") + end)
	require.Equal(t, []string{"304"}, r.parts(a))
}

// A transaction of nearly 4 MiB with entities of nearly 1 MiB is committed and reads
// back; 100 operations are.
func TestBatchLarge(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow under the race detector")
	}
	r := newRig(t)
	text := strings.Repeat("x", 32000)
	var requests []string
	for i := range 4 {
		var b strings.Builder
		for n := range 15 {
			fmt.Fprintf(&b, `,"s%d":"%s"`, n, text)
		}
		requests = append(requests, op("PUT", key("large", fmt.Sprint(i)), fmt.Sprintf(`{"v":"%d"%s}`, i, b.String())))
	}
	requests = append(requests, requests...)
	for i, old := range requests[4:] {
		requests[4+i] = strings.Replace(old, fmt.Sprintf("RowKey='%d'", i), fmt.Sprintf("RowKey='%d'", 4+i), 1)
	}
	body := set(requests...) + end
	require.Less(t, len(body), bodyMax)
	require.Greater(t, len(body), bodyMax*9/10)
	require.Equal(t, slices.Repeat([]string{"204"}, 8), r.parts(r.batch(body)))
	values, pages := r.values("")
	require.Equal(t, []string{"0", "1", "2", "3", "0", "1", "2", "3"}, values)
	require.Equal(t, 2, pages, "four such entities have less than 4 MiB, five have more")
	require.Contains(t, r.do(http.MethodGet, "/acct/"+key("large", "7"), "").body, `"s14":"`+text+`"`)

	requests = nil
	for i := range 100 {
		requests = append(requests, insert("many", fmt.Sprint(i), "x"))
	}
	require.Equal(t, slices.Repeat([]string{"204"}, 100), r.parts(r.batch(set(requests...)+end)))
}
