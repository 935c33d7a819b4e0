package tables

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// atomBody is an Atom entry with the properties.
func atomBody(properties string) string {
	return `<?xml version="1.0" encoding="utf-8" standalone="yes"?><entry xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices"` +
		` xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata" xmlns="http://www.w3.org/2005/Atom"><title /><updated>0001-01-01T00:00:00Z</updated>` +
		`<author><name /></author><id /><content type="application/xml"><m:properties>` + properties + `</m:properties></content></entry>`
}

func atomEntity(pk, rk, more string) string {
	return atomBody("<d:PartitionKey>" + pk + "</d:PartitionKey><d:RowKey>" + rk + "</d:RowKey>" + more)
}

// doAtom sends a request as clients of a version before JSON do.
func (r *rig) doAtom(version, method, target, body string, headers ...string) received {
	r.t.Helper()
	usual := []string{"x-ms-version", version, "Accept", "application/atom+xml,application/xml", "DataServiceVersion", "1.0;NetFx", "MaxDataServiceVersion", "2.0;NetFx"}
	if body != "" {
		usual = append(usual, "Content-Type", `application/atom+xml;type=entry`)
	}
	return r.do(method, target, body, append(usual, headers...)...)
}

// The 2008 preview from end to end: no version, Atom in and out, and the headers of its answers
// (2.1, 2.3, 3, A.73).
//
// Capability: Clients: Tables of every version since the 2008 preview.
func TestPreview(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.doAtom("", http.MethodPost, "/acct/Tables", atomBody("<d:TableName>Blogs</d:TableName>"))
	require.Equal(t, http.StatusCreated, a.status, a.body)
	require.Equal(t, r.url+"/acct/Tables('Blogs')", a.header.Get("Location"))
	require.NotContains(t, a.body, "m:etag")
	require.Contains(t, a.body, "<d:TableName>Blogs</d:TableName>")

	a = r.doAtom("", http.MethodPost, "/acct/Blogs", atomEntity("p", "r", `<d:Rating m:type="Edm.Int32">9</d:Rating><d:Text>x</d:Text>`))
	require.Equal(t, http.StatusCreated, a.status, a.body)
	for name, want := range map[string]string{
		"X-Ms-Version": "", "X-Content-Type-Options": "", "Server": "Table Service Version 1.0 Microsoft-HTTPAPI/2.0", "Cache-Control": "no-cache",
		"DataServiceVersion": "1.0;", "Content-Type": "application/atom+xml;charset=utf-8", "Location": r.url + "/acct/Blogs(PartitionKey='p',RowKey='r')",
	} {
		require.Equal(t, want, a.header.Get(name), name)
	}
	tag := a.header.Get("ETag")
	require.NotEmpty(t, tag)
	require.Contains(t, a.body, ` m:etag="`+strings.ReplaceAll(tag, `"`, "&quot;")+`"`)
	require.Contains(t, a.body, `xml:base="`+r.url+`/acct/"`)
	require.Regexp(t, regexp.MustCompile(`<updated>20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ</updated>`), a.body)

	at := "/acct/Blogs(PartitionKey='p',RowKey='r')"
	got := r.doAtom("", http.MethodGet, at, "")
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, tag, got.header.Get("ETag"))
	require.Contains(t, got.body, `<d:Rating m:type="Edm.Int32">9</d:Rating><d:Text>x</d:Text>`)
	// What came is sent back as it is.
	a = r.doAtom("", http.MethodPut, at, strings.Replace(got.body, ">x<", ">y<", 1), "If-Match", tag)
	require.Equal(t, http.StatusNoContent, a.status, a.body)
	require.Equal(t, "1.0;", a.header.Get("DataServiceVersion"))
	require.Equal(t, http.StatusPreconditionFailed, r.doAtom("", "MERGE", at, atomBody(""), "If-Match", tag).status)
	require.Equal(t, http.StatusNoContent, r.doAtom("", http.MethodPost, at, atomBody("<d:More m:type=\"Edm.Double\">1</d:More>"), "X-HTTP-Method", "MERGE", "If-Match", "*").status)
	require.Equal(t, http.StatusNoContent, r.doAtom("", http.MethodPatch, at, atomBody(""), "If-Match", "*").status)
	now := r.do(http.MethodGet, at, "")
	require.Contains(t, now.body, `"Rating":9,"Text":"y","More":1.0}`, "JSON reads what Atom wrote")

	a = r.doAtom("", http.MethodGet, "/acct/Blogs()?$top=1&$filter=Rating%20eq%209", "")
	require.Contains(t, a.body, "<feed ")
	require.Equal(t, 1, strings.Count(a.body, "<entry m:etag="))
	require.NotContains(t, a.body, `<author><name /></author></feed>`)
	a = r.doAtom("", http.MethodGet, "/acct/Blogs?$filter=Rating%20eq%208", "")
	require.True(t, strings.HasSuffix(a.body, `<author><name /></author></feed>`), a.body)
	a = r.doAtom("", http.MethodGet, "/acct/Tables?$top=1", "")
	require.Contains(t, a.body, `<category term="acct.Tables"`)
	require.NotContains(t, a.body, `<author><name /></author></feed>`)
	require.NotEmpty(t, a.header.Get("x-ms-continuation-NextTableName"))
	require.Contains(t, r.doAtom("", http.MethodGet, "/acct/Tables('blogs')", "").body, "<d:TableName>Blogs</d:TableName>")

	a = r.doAtom("", http.MethodGet, "/acct/nosuch(PartitionKey='p',RowKey='r')", "")
	require.Equal(t, "application/xml", a.header.Get("Content-Type"))
	require.Equal(t, `<?xml version="1.0" encoding="utf-8" standalone="yes"?><error xmlns="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata">`+
		`<code>TableNotFound</code><message xml:lang="en-US">The table specified does not exist.</message></error>`, a.body)
	require.Equal(t, http.StatusNoContent, r.doAtom("", http.MethodDelete, at, "", "If-Match", "*").status)
	require.Equal(t, http.StatusNoContent, r.doAtom("", http.MethodDelete, "/acct/Tables('Blogs')", "").status)
}

// A property of another type than the literal is unlike it: from 2013-08-15 on ne, lt and le are true of it, before no operator
// is (11.3); a row that lacks the property is none of these. So it is at -secondary.
func TestOtherTypesByVersion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for rk, f := range map[string]string{
		"date": `,"F@odata.type":"Edm.DateTime","F":"2020-01-01T00:00:00Z"`, "guid": `,"F@odata.type":"Edm.Guid","F":"c9da6455-213d-42c9-9a79-3e9149a57833"`,
		"int": `,"F":5`, "string": `,"F":"x"`, "void": `,"F":""`, "none": "",
	} {
		require.Equal(t, http.StatusCreated, r.do(http.MethodPost, "/acct/tbl", `{"PartitionKey":"p","RowKey":"`+rk+`"`+f+`}`).status)
	}
	rowKey := regexp.MustCompile(`"RowKey":"(\w+)"|<d:RowKey>(\w+)</d:RowKey>`)
	for filter, want := range map[string]struct{ paper, today string }{
		"F ne ''":                       {"string", "date guid int string"},
		"F gt ''":                       {"string", "string"},
		"F lt 'a'":                      {"void", "date guid int void"},
		"F le 4":                        {"", "date guid string void"},
		"F eq 5":                        {"int", "int"},
		"not (F ne '')":                 {"date guid int none void", "none void"},
		"F ne '' and RowKey lt 'i'":     {"", "date guid"},
		"F ne '' or PartitionKey ne 1":  {"string", "date guid int none string void"},
		"Timestamp le '' and F ne true": {"", "date guid int string void"},
	} {
		for version, want := range map[string]string{"2009-04-14": want.paper, "2012-02-12": want.paper, "2013-08-15": want.today, "2019-02-02": want.today} {
			for _, suffix := range []string{"", "-secondary"} {
				accept := "application/json;odata=nometadata"
				if version < "2013-08-15" {
					accept = "application/atom+xml"
				}
				a := r.do(http.MethodGet, "/acct"+suffix+"/tbl?$filter="+url.QueryEscape(filter), "", "x-ms-version", version, "Accept", accept)
				require.Equal(t, http.StatusOK, a.status, a.body)
				var rows []string
				for _, m := range rowKey.FindAllStringSubmatch(a.body, -1) {
					rows = append(rows, m[1]+m[2])
				}
				require.Equal(t, want, strings.Join(rows, " "), "%s of %s%s", filter, version, suffix)
			}
		}
	}
}

// What each version has (2.2, 2.3, 9.7, 9.8, 11.4, A.33, A.70): in versions is the first one that
// answers with want, the version before it answers with before.
//
// Capability: Clients: Tables of every version since the 2008 preview.
func TestVersions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	versions := []string{"", "2009-04-14", "2009-07-17", "2009-09-19", "2011-08-18", "2012-02-12", "2013-08-15", "2014-02-14", "2015-02-21", "2015-04-05", "2015-07-08"}
	const required, input, header = "400 MissingRequiredHeader", "400 InvalidInput", "400 InvalidHeaderValue"
	at, n := "/acct/"+key("p", "r"), 0
	for name, tc := range map[string]struct {
		since, before, want string
		send                func(version string) received
	}{
		"replace":          {"2011-08-18", required, "204", func(v string) received { return r.doAtom(v, http.MethodPut, at, atomBody("")) }},
		"merge":            {"2011-08-18", required, "204", func(v string) received { return r.doAtom(v, "MERGE", at, atomBody("")) }},
		"delete":           {"2016-05-31", required, "", func(v string) received { return r.doAtom(v, http.MethodDelete, at, "") }},
		"update":           {"", "", "204", func(v string) received { return r.doAtom(v, http.MethodPut, at, atomBody(""), "If-Match", "*") }},
		"select":           {"2011-08-18", input, "200", func(v string) received { return r.doAtom(v, http.MethodGet, at+"?$select=v", "") }},
		"select of a page": {"2011-08-18", input, "200", func(v string) received { return r.doAtom(v, http.MethodGet, "/acct/tbl?$select=v", "") }},
		"batch": {"2009-04-14", input, "202", func(v string) received {
			return r.doAtom(v, http.MethodPost, "/acct/$batch", set("DELETE /"+key("none", "r")+" HTTP/1.1\r\n\r\n")+end, "Content-Type", batchType)
		}},
		"prefer": {"2011-08-18", "201", "204", func(v string) received {
			n++
			return r.doAtom(v, http.MethodPost, "/acct/tbl", atomEntity("n", fmt.Sprint(n), ""), "Prefer", "return-no-content")
		}},
		"JSON": {"2013-08-15", "415 JsonFormatNotSupported", "204", func(v string) received {
			return r.doAtom(v, http.MethodPut, at, `{"v":"json"}`, "If-Match", "*", "Content-Type", "application/json")
		}},
		"DSV 2":  {"2011-08-18", header, "200", func(v string) received { return r.doAtom(v, http.MethodGet, at, "", "DataServiceVersion", "2.0;NetFx") }},
		"DSV 3":  {"2013-08-15", header, "200", func(v string) received { return r.doAtom(v, http.MethodGet, at, "", "DataServiceVersion", "3.0") }},
		"MDSV 3": {"", "", "200", func(v string) received { return r.doAtom(v, http.MethodGet, at, "", "MaxDataServiceVersion", "3.0;") }},
		"DSV 1": {"", "", "200", func(v string) received {
			return r.doAtom(v, http.MethodGet, at, "", "DataServiceVersion", "1.0;", "MaxDataServiceVersion", "")
		}},
		"no DSV": {"", "", "200", func(v string) received {
			return r.doAtom(v, http.MethodGet, at, "", "DataServiceVersion", "", "MaxDataServiceVersion", "")
		}},
		"bad DSV": {"2016-05-31", header, "", func(v string) received { return r.doAtom(v, http.MethodGet, at, "", "DataServiceVersion", "x.0;") }},
		"DSV 1.5": {"2016-05-31", header, "", func(v string) received { return r.doAtom(v, http.MethodGet, at, "", "DataServiceVersion", "1.5") }},
		"DSV 4":   {"2016-05-31", header, "", func(v string) received { return r.doAtom(v, http.MethodGet, at, "", "DataServiceVersion", "4.0") }},
	} {
		require.Equal(t, http.StatusNoContent, r.do(http.MethodPut, at, `{"v":"x"}`).status)
		for _, v := range versions {
			want := tc.want
			if v < tc.since {
				want = tc.before
			}
			a := tc.send(v)
			got := fmt.Sprint(a.status)
			if a.status >= http.StatusBadRequest {
				code, _ := failureOf(t, a.body)
				got += " " + code
				require.Equal(t, "application/xml", a.header.Get("Content-Type"))
			}
			require.Equal(t, want, got, "%s at %q: %s", name, v, a.body)
			echoed, nosniff, dsv, server := "", "", "1.0;", "Table Service Version 1.0 Microsoft-HTTPAPI/2.0"
			if v >= "2009-09-19" {
				echoed = v
			}
			if v >= "2011-08-18" {
				server = "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"
			}
			if v >= "2013-08-15" {
				nosniff, dsv = "nosniff", ""
			}
			require.Equal(t, []string{echoed, nosniff, dsv, server}, []string{
				a.header.Get("x-ms-version"), a.header.Get("X-Content-Type-Options"), a.header.Get("DataServiceVersion"), a.header.Get("Server"),
			}, "%s at %q", name, v)
		}
	}
}

// The versions with both formats (2.4): by $format, else Accept, else Atom; a body by its own
// type, an error by that of the answer (8.1).
func TestBothFormats(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const middle = "2013-08-15"
	send := func(target, body, contentType, accept string) received {
		method := http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
		return r.do(method, target, body, "x-ms-version", middle, "Accept", accept, "Content-Type", contentType)
	}
	a := send("/acct/tbl", atomEntity("p", "1", ""), "application/atom+xml", "application/json;odata=nometadata")
	require.Equal(t, http.StatusCreated, a.status)
	require.True(t, strings.HasPrefix(a.body, `{"PartitionKey":"p","RowKey":"1",`), a.body)
	a = send("/acct/tbl", `{"PartitionKey":"p","RowKey":"2","v":"x"}`, "application/json", "")
	require.Equal(t, http.StatusCreated, a.status)
	require.Contains(t, a.body, `<d:v>x</d:v>`)
	require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
	at := "/acct/" + key("p", "2")
	for _, tc := range []struct{ target, accept, want string }{
		{at, "", "<?xml"},
		{at, "*/*", "<?xml"},
		{at, "application/xml", "<?xml"},
		{at, "application/json", "{"},
		{at + "?$format=atom", "application/json", "<?xml"},
		{at + "?$format=application/atom%2Bxml", "application/json", "<?xml"},
		{at + "?$format=json", "application/atom+xml", "{"},
		{"/acct/" + key("p", "3"), "*/*", "<?xml"},
		{"/acct/" + key("p", "3"), "application/json", "{"},
	} {
		a := send(tc.target, "", "", tc.accept)
		require.True(t, strings.HasPrefix(a.body, tc.want), "%+v: %s", tc, a.body)
	}
	a = send("/acct/tbl", `{"PartitionKey":"p","RowKey":"2"}`, "application/json", "application/atom+xml")
	require.Equal(t, http.StatusConflict, a.status)
	require.Contains(t, a.body, "<code>EntityAlreadyExists</code>")
}

// A.60: the transaction of the 2009 samples, byte for byte (13.5): MERGE and DELETE without
// If-Match, a blank after the comma, another host.
func TestAtomBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, rk := range []string{"3", "4"} {
		require.Equal(t, http.StatusNoContent, r.do(http.MethodPut, "/acct/"+key("p", rk), `{"v":"old"}`).status)
	}
	part := func(method, path, body string, id int) string {
		return method + " http://other.host/" + path + " HTTP/1.1\r\nContent-ID: " + fmt.Sprint(id) +
			"\r\nContent-Type: application/atom+xml;type=entry\r\nContent-Length: ###\r\n\r\n" + body
	}
	a := r.doAtom("2009-04-14", http.MethodPost, "/acct/$batch", set(
		part("POST", "tbl", atomEntity("p", "1", "<d:v>a</d:v>"), 1),
		part("POST", "tbl", atomEntity("p", "2", "<d:v>b</d:v>"), 2),
		part("MERGE", "tbl(PartitionKey='p', RowKey='3')", atomBody("<d:w>c</d:w>"), 3),
		part("DELETE", "tbl(PartitionKey='p', RowKey='4')", atomEntity("other", "key", ""), 4),
	)+end, "Content-Type", batchType)
	require.Equal(t, http.StatusAccepted, a.status, a.body)
	require.Equal(t, []string{"p/1=a", "p/2=b", "p/3=old"}, r.rows("tbl"))
	const open = "--changesetresponse_ID\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n"
	echo := func(id string) string {
		return open + "HTTP/1.1 201 Created\nContent-ID: " + id + "\nContent-Type: application/atom+xml;charset=utf-8\nCache-Control: no-cache\n" +
			"ETag: TAG\nLocation: http://HOST/acct/tbl(PartitionKey='p',RowKey='" + id + "')\nDataServiceVersion: 1.0;\n\nENTRY\n"
	}
	want := "--batchresponse_ID\nContent-Type: multipart/mixed; boundary=changesetresponse_ID\n\n" + echo("1") + echo("2") +
		open + "HTTP/1.1 204 No Content\nContent-ID: 3\nCache-Control: no-cache\nDataServiceVersion: 1.0;\nETag: TAG\n\n\n" +
		open + "HTTP/1.1 204 No Content\nContent-ID: 4\nCache-Control: no-cache\nDataServiceVersion: 1.0;\n\n\n" +
		"--changesetresponse_ID--\n--batchresponse_ID--\n"
	got := regexp.MustCompile(`response_[0-9a-f-]{36}`).ReplaceAllString(a.body, "response_ID")
	got = regexp.MustCompile(`<\?xml[^\n]*</entry>`).ReplaceAllString(got, "ENTRY")
	got = regexp.MustCompile(`W/"datetime'[^']*'"`).ReplaceAllString(got, "TAG")
	require.Equal(t, strings.ReplaceAll(want, "\n", "\r\n"), strings.ReplaceAll(got, strings.TrimPrefix(r.url, "http://"), "HOST"))

	// An upsert came later; here it is an update of any version, which must exist.
	a = r.doAtom("2009-09-19", http.MethodPost, "/acct/$batch", set(part("POST", "tbl", atomEntity("p", "5", ""), 1), part("PUT", key("p", "6"), atomBody(""), 2))+end,
		"Content-Type", batchType)
	require.Contains(t, a.body, "HTTP/1.1 404 Not Found\r\nContent-ID: 2\r\nContent-Type: application/xml\r\nCache-Control: no-cache\r\nDataServiceVersion: 1.0;\r\n\r\n<?xml")
	require.Contains(t, a.body, `<code>ResourceNotFound</code><message xml:lang="en-US">1:The specified resource does not exist.</message>`)
	a = r.doAtom("2011-08-18", http.MethodPost, "/acct/$batch", set(part("PUT", key("p", "6"), atomBody(""), 1), part("POST", "tbl", atomEntity("p", "7", ""), 2))+end,
		"Content-Type", batchType, "Prefer", "return-no-content")
	require.Contains(t, a.body, "HTTP/1.1 204 No Content\r\nContent-ID: 1\r\n")
	require.Contains(t, a.body, "Content-ID: 2\r\nCache-Control: no-cache\r\nPreference-Applied: return-no-content\r\nDataServiceVersion: 1.0;\r\nLocation: ")
	require.Equal(t, []string{"p/1=a", "p/2=b", "p/3=old", "p/6", "p/7"}, r.rows("tbl"))
}

// The format is of each operation (13.1): Atom and JSON in one transaction, and a part in a form
// of OData that the version has not.
func TestMixedBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	atom := func(rk string, lines string) string {
		return "POST /tbl HTTP/1.1\r\nContent-Type: application/atom+xml;type=entry\r\n" + lines + "\r\n" + atomEntity("p", rk, "<d:v>atom</d:v>")
	}
	jsonPart := op("POST", "tbl", `{"PartitionKey":"p","RowKey":"2","v":"json"}`, "Accept: application/json;odata=nometadata")
	send := func(version string, requests ...string) received {
		return r.doAtom(version, http.MethodPost, "/acct/$batch", set(requests...)+end, "Content-Type", batchType)
	}
	a := send("2013-08-15", atom("1", ""), jsonPart, atom("3", "Accept: application/json;odata=nometadata\r\n"), insert("p", "4", "quiet"))
	require.Contains(t, a.body, "HTTP/1.1 201 Created\r\nX-Content-Type-Options: nosniff\r\nContent-Type: application/atom+xml;charset=utf-8\r\nCache-Control: no-cache\r\nETag: ")
	require.Equal(t, 2, strings.Count(a.body, "DataServiceVersion: 3.0;\r\nContent-Type: application/json;odata=nometadata;streaming=true;charset=utf-8\r\nLocation: "), a.body)
	require.Equal(t, 1, strings.Count(a.body, "DataServiceVersion: 1.0;\r\n"))
	require.Equal(t, []string{"p/1=atom", "p/2=json", "p/3=atom", "p/4=quiet"}, r.rows("tbl"))

	a = send("2012-02-12", atom("5", ""), jsonPart)
	require.Contains(t, a.body, `<code>JsonFormatNotSupported</code><message xml:lang="en-US">1:JSON format is not supported.`)
	a = send("2012-02-12", atom("5", "DataServiceVersion: 3.0\r\n"))
	require.Contains(t, a.body, `<code>InvalidHeaderValue</code><message xml:lang="en-US">0:`)
	a = send("2019-02-02", atom("5", ""))
	require.Contains(t, a.body, `"message":{"lang":"en-US","value":"0:Atom format is not supported.`)
	require.Equal(t, []string{"p/1=atom", "p/2=json", "p/3=atom", "p/4=quiet"}, r.rows("tbl"))
	// An error has the format of its part, whatever was sent.
	for _, there := range []struct{ request, want string }{
		{atom("1", ""), "0:The specified entity already exists."},
		{op("DELETE", key("p", "none"), ""), "0:The specified resource does not exist."},
	} {
		for accept, message := range map[string]string{
			"application/atom+xml": `<message xml:lang="en-US">`, "application/json": `"message":{"lang":"en-US","value":"`,
		} {
			a = send("2013-08-15", strings.Replace(there.request, "HTTP/1.1\r\n", "HTTP/1.1\r\nAccept: "+accept+"\r\n", 1))
			require.Contains(t, a.body, message+there.want)
		}
	}
	for _, none := range []string{op("PUT", "tbl", "{}", "Accept: application/json;odata=nometadata"), op("PUT", "tbl?$format=application/json;odata=nometadata", "{}")} {
		require.Contains(t, send("2019-02-02", none).body, "Content-Type: application/json;odata=nometadata;streaming=true;charset=utf-8\r\n\r\n{")
	}
}

// The batch of one query in Atom: the answer of the query by itself (13.4, A.68).
func TestAtomBatchQuery(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Equal(t, http.StatusNoContent, r.do(http.MethodPut, "/acct/"+key("p", "r"), `{"v":"x"}`).status)
	send := func(request string) string {
		return r.doAtom("2009-04-14", http.MethodPost, "/acct/$batch", single(request)+end, "Content-Type", batchType).body
	}
	alone := r.doAtom("2009-04-14", http.MethodGet, "/acct/"+key("p", "r"), "")
	updated := regexp.MustCompile(`<updated>[^<]*</updated>`)
	got := updated.ReplaceAllString(send("GET http://h/tbl(PartitionKey='p', RowKey='r') HTTP/1.1\r\n\r\n"), "")
	require.Contains(t, got, "\r\n\r\nHTTP/1.1 200 OK\r\nDataServiceVersion: 1.0;\r\nContent-Type: application/atom+xml;charset=utf-8\r\n"+
		"Cache-Control: no-cache\r\nETag: "+alone.header.Get("ETag")+"\r\n\r\n"+updated.ReplaceAllString(alone.body, ""))
	require.NotContains(t, got, "changesetresponse")
	got = send("GET /tbl()?$filter=PartitionKey%20eq%20'p'%20and%20RowKey%20eq%20's'")
	require.Contains(t, got, `<author><name /></author></feed>`)
	got = send("GET /" + key("p", "none") + " HTTP/1.1\r\n")
	require.Contains(t, got, `HTTP/1.1 404 Not Found`)
	require.Contains(t, got, `<code>ResourceNotFound</code><message xml:lang="en-US">0:`)
}

// Bad Atom gets the errors of JSON, and changes nothing.
// It holds invariant 7.
func TestAtomRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := "/acct/" + key("p", "r")
	require.Equal(t, http.StatusNoContent, r.do(http.MethodPut, at, `{"v":"old"}`).status)
	var many, large strings.Builder
	for i := range 253 {
		fmt.Fprintf(&many, "<d:p%d>x</d:p%d>", i, i)
	}
	for i := range 17 {
		fmt.Fprintf(&large, "<d:p%d>%s</d:p%d>", i, strings.Repeat("x", 32768), i)
	}
	before := r.state()
	for name, tc := range map[string]struct{ method, target, body, want string }{
		"no body":        {http.MethodPost, "/acct/tbl", "", "400 InvalidInput"},
		"no XML":         {http.MethodPost, "/acct/tbl", `{"PartitionKey":"p","RowKey":"s"}`, "400 InvalidInput"},
		"DTD":            {http.MethodPost, "/acct/tbl", `<!DOCTYPE entry>` + atomEntity("p", "s", "")[55:], "400 InvalidInput"},
		"no RowKey":      {http.MethodPost, "/acct/tbl", atomBody("<d:PartitionKey>p</d:PartitionKey>"), "400 PropertiesNeedValue"},
		"bad key":        {http.MethodPost, "/acct/tbl", atomEntity("p", "a#b", ""), "400 OutOfRangeInput"},
		"there":          {http.MethodPost, "/acct/tbl", atomEntity("p", "r", ""), "409 EntityAlreadyExists"},
		"bad value":      {http.MethodPut, at, atomBody(`<d:v m:type="Edm.Guid">x</d:v>`), "400 InvalidInput"},
		"too many":       {"MERGE", at, atomBody(many.String()), "400 TooManyProperties"},
		"too large":      {http.MethodPut, at, atomBody(large.String()), "400 EntityTooLarge"},
		"body too large": {http.MethodPut, at, atomBody(strings.Repeat(" ", bodyMax)), "413 RequestBodyTooLarge"},
		"no table":       {http.MethodPost, "/acct/nosuch", atomEntity("p", "r", ""), "404 TableNotFound"},
		"bad name":       {http.MethodPost, "/acct/Tables", atomBody("<d:TableName>a-b</d:TableName>"), "400 InvalidResourceName"},
		"no name":        {http.MethodPost, "/acct/Tables", atomBody(""), "400 InvalidInput"},
		"same name":      {http.MethodPost, "/acct/Tables", atomBody("<d:TableName>TBL</d:TableName>"), "409 TableAlreadyExists"},
	} {
		a := r.doAtom("2011-08-18", tc.method, tc.target, tc.body)
		code, _ := failureOf(t, a.body)
		require.Equal(t, tc.want, fmt.Sprint(a.status, " ", code), name)
		require.Equal(t, before, r.state(), name)
	}
}
