package conformance

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"
)

// Messages that the protocol quotes, and more than one group of cases needs.
const (
	invalidInput     = "One of the request inputs is not valid."
	querySyntax      = "Bad Request - Error in query syntax."
	resourceNotFound = "The specified resource does not exist."
	tableNotFound    = "The table specified does not exist."
	tableExists      = "The table specified already exists."
	entityExists     = "The specified entity already exists."
	conditionNotMet  = "The update condition specified in the request was not satisfied."
	notImplemented   = "The requested operation is not implemented on the specified resource."
)

// Cases 1 to 6: tables.
func tableCases() []testCase {
	return []testCase{
		{1, "create twice", createTwice},
		{2, "names", refusedNames},
		{3, "names ignore case", namesIgnoreCase},
		{4, "missing table", missingTable},
		{5, "a name rests", nameRests},
		{6, "update of a table", updateOfTable},
	}
}

func createTwice(r *rig) {
	a := r.do("POST", "/Tables", `{"TableName":"Case01"}`).is(http.StatusCreated)
	require.Equal(r, r.base()+"Tables('Case01')", a.header.Get("Location"))
	requireJSONText(r, `{"odata.metadata":"`+r.base()+`$metadata#Tables/@Element","TableName":"Case01"}`, a.body)
	a = r.do("POST", "/Tables", `{"TableName":"case01"}`).fails(http.StatusConflict, "TableAlreadyExists", tableExists)
	require.Empty(r, a.header.Get("Location"))
	a = r.read("/Tables('CASE01')").is(http.StatusOK)
	requireJSONText(r, `{"odata.metadata":"`+r.base()+`$metadata#Tables/@Element","TableName":"Case01"}`, a.body)
}

func refusedNames(r *rig) {
	const length = "The specified resource name length is not within the permissible limits."
	const characters = "The specifed resource name contains invalid characters."
	for _, c := range []struct{ name, code, message string }{
		{"ab", "OutOfRangeInput", length},
		{strings.Repeat("a", 64), "OutOfRangeInput", length},
		{"1abc", "InvalidResourceName", characters},
		{"a-b", "InvalidResourceName", characters},
		{"tables", "InvalidInput", invalidInput},
		{"TABLES", "InvalidInput", invalidInput},
	} {
		r.do("POST", "/Tables", `{"TableName":"`+c.name+`"}`).fails(http.StatusBadRequest, c.code, c.message)
	}
	for _, name := range []string{"abc", strings.Repeat("a", 63)} {
		r.do("POST", "/Tables", `{"TableName":"`+name+`"}`).is(http.StatusCreated)
		r.read("/Tables('" + name + "')").is(http.StatusOK)
	}
}

func namesIgnoreCase(r *rig) {
	r.account = listAccount // Which has no other table.
	r.do("POST", "/Tables", `{"TableName":"Blogs"}`).is(http.StatusCreated)
	r.table = "Blogs" // As it was created, also where it is addressed otherwise.
	for _, path := range []string{"/blogs()", "/BLOGS", "/Blogs()"} {
		require.Empty(r, r.read(path).keys())
	}
	for _, path := range []string{"/Tables", "/Tables()", "/tables"} {
		a := r.read(path).is(http.StatusOK)
		requireJSONText(r, `{"odata.metadata":"`+r.base()+`$metadata#Tables","value":[{"TableName":"Blogs"}]}`, a.body)
	}
	a := r.read("/Tables?$filter=TableName%20eq%20'bLOGS'", "Accept", "application/json;odata=nometadata").is(http.StatusOK)
	requireJSONText(r, `{"value":[{"TableName":"Blogs"}]}`, a.body)
}

func missingTable(r *rig) {
	r.read("/Tables('none')").fails(http.StatusNotFound, "ResourceNotFound", resourceNotFound)
	r.do("DELETE", "/Tables('none')", "").fails(http.StatusNotFound, "ResourceNotFound", resourceNotFound)
}

// nameRests: what comes before the delay happened before the restart (suite.begin).
func nameRests(r *rig) {
	r.suite.before.resting.rig = r
	r.suite.before.resting.fails(http.StatusConflict, "TableBeingDeleted", "The specified table is being deleted.")
	r.do("GET", "/"+r.table+"()", "").fails(http.StatusNotFound, "TableNotFound", tableNotFound)
	r.create()
	require.Empty(r, r.read("/"+r.table+"()").keys())
	r.do("DELETE", "/Tables('"+r.table+"')", "").is(http.StatusNoContent)
	r.read("/"+r.table+"()").fails(http.StatusNotFound, "TableNotFound", tableNotFound)
	r.read("/Tables('"+r.table+"')").fails(http.StatusNotFound, "ResourceNotFound", resourceNotFound)
	r.made = false
}

func updateOfTable(r *rig) {
	r.create()
	for _, method := range []string{"PUT", "MERGE", "PATCH"} {
		a := r.do(method, "/Tables('"+r.table+"')", `{"TableName":"`+r.table+`"}`).fails(http.StatusMethodNotAllowed, "MethodNotAllowed", "")
		require.Contains(r, a.header.Get("Allow"), "DELETE")
		require.Contains(r, a.header.Get("Allow"), "GET")
	}
	r.read("/Tables('" + r.table + "')").is(http.StatusOK)
}

// Cases 7 to 13: keys.
func keyCases() []testCase {
	return []testCase{
		{7, "empty keys", emptyKeys},
		{8, "quotes in keys", quotesInKeys},
		{9, "every legal character", legalCharacters},
		{10, "forbidden characters", forbiddenCharacters},
		{11, "missing keys", missingKeys},
		{12, "longest keys", longestKeys},
		{13, "no limit of 260 characters", longSegments},
	}
}

// insert inserts an entity whose keys are texts, and whose other properties are JSON members with a
// comma before each.
func (r *rig) insert(pk, rk, others string, fields ...string) *answer {
	r.Helper()
	return r.do("POST", "/"+r.table, entity(pk, rk, others), fields...)
}

func entity(pk, rk, others string) string {
	return `{"PartitionKey":` + quoted(pk) + `,"RowKey":` + quoted(rk) + others + `}`
}

// added requires an insert to succeed, and returns its answer.
func (r *rig) added(pk, rk, others string) *answer {
	r.Helper()
	return r.insert(pk, rk, others).is(http.StatusCreated)
}

func emptyKeys(r *rig) {
	r.create()
	for _, k := range [][2]string{{"", ""}, {"p", ""}, {"", "r"}} {
		a := r.added(k[0], k[1], `,"v":1`).has(k[0], k[1], `,"v":1`)
		require.Equal(r, r.base()+r.path(k[0], k[1])[1:], a.header.Get("Location"))
		b := r.read(r.path(k[0], k[1])).is(http.StatusOK).has(k[0], k[1], `,"v":1`)
		require.Equal(r, a.tag(), b.tag())
	}
	require.Equal(r, []string{"/", "/r", "p/"}, r.read("/"+r.table).keys())
}

func quotesInKeys(r *rig) {
	r.create()
	a := r.added("p", "O'Hara", "").has("p", "O'Hara", "")
	require.Equal(r, r.base()+r.path("p", "O''Hara")[1:], a.header.Get("Location"))
	for _, rk := range []string{"O''Hara", "O%27%27Hara", "O'%27Hara"} {
		r.read(r.path("p", rk)).is(http.StatusOK).has("p", "O'Hara", "")
	}
	for _, rk := range []string{"O'Hara", "O%27Hara"} {
		r.read(r.path("p", rk)).fails(http.StatusBadRequest, "InvalidInput", querySyntax)
	}
}

func legalCharacters(r *rig) {
	r.create()
	const rk, encoded = `a b+c%&=,()"é😀`, "a%20b%2Bc%25%26%3D%2C%28%29%22%C3%A9%F0%9F%98%80"
	a := r.added(rk, rk, "").has(rk, rk, "")
	require.Equal(r, r.base()+r.path(encoded, encoded)[1:], a.header.Get("Location"))
	again := strings.TrimPrefix(a.header.Get("Location"), strings.TrimSuffix(r.base(), "/"))
	r.read(again).is(http.StatusOK).has(rk, rk, "")
	plus := strings.ReplaceAll(encoded, "%2B", "+") // A plus sign in a path is one.
	r.read(r.path(plus, plus)).is(http.StatusOK).has(rk, rk, "")
	r.do("MERGE", again, `{"v":1}`, "If-Match", "*").is(http.StatusNoContent)
	require.Equal(r, []string{rk + "/" + rk}, r.read(r.filtered("RowKey eq '"+rk+"'")).keys())
}

func forbiddenCharacters(r *rig) {
	r.create()
	for _, key := range []string{"a/b", `a\b`, "a#b", "a?b", "a\x01b", "a\u0085b"} {
		r.insert("p", key, "").fails(http.StatusBadRequest, "OutOfRangeInput", "The 'RowKey' parameter of value '"+key+"' is out of range.")
		r.insert(key, "r", "").fails(http.StatusBadRequest, "OutOfRangeInput", "The 'PartitionKey' parameter of value '"+key+"' is out of range.")
		// In a filter they are ordinary text (section 4.4).
		require.Empty(r, r.read(r.filtered("RowKey eq '"+key+"'")).keys())
	}
	for _, key := range []string{"a%2Fb", `a%5Cb`} {
		r.read(r.path("p", key)).fails(http.StatusBadRequest, "InvalidInput", querySyntax)
	}
	for _, key := range []string{"a%23b", "a%3Fb"} {
		r.read(r.path("p", key)).fails(http.StatusBadRequest, "OutOfRangeInput", "One of the request inputs is out of range.")
	}
	// A raw control character is refused before the service reads the request.
	c := r.dial()
	_, err := c.Write([]byte(r.sign(r.request("GET", r.path("p", "a\x01b"), "")).head()))
	require.NoError(r, err)
	unread, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(r, err)
	require.Equal(r, http.StatusBadRequest, unread.StatusCode)
	require.Equal(r, "InvalidUri", unread.Header.Get("X-Ms-Error-Code"))
	require.NotEmpty(r, unread.Header.Get("X-Ms-Request-Id"))
	require.NoError(r, unread.Body.Close())
	require.Empty(r, r.read("/"+r.table).keys())
}

func missingKeys(r *rig) {
	r.create()
	for _, body := range []string{
		`{"PartitionKey":"p"}`, `{"PartitionKey":"p","RowKey":null}`, `{"RowKey":"r"}`, `{"PartitionKey":null,"RowKey":"r"}`, `{}`,
	} {
		r.do("POST", "/"+r.table, body).fails(http.StatusBadRequest, "PropertiesNeedValue",
			"The values are not specified for all properties in the entity.")
	}
}

func longestKeys(r *rig) {
	r.create()
	for _, unit := range []string{"k", "é"} {
		longest := strings.Repeat(unit, 512)
		r.added(longest, longest, "").has(longest, longest, "")
		for _, k := range [][2]string{{longest + unit, "r"}, {"p", longest + unit}} {
			r.insert(k[0], k[1], "").fails(http.StatusBadRequest, "PropertyValueTooLarge", valueTooLarge)
		}
	}
	emoji := strings.Repeat("😀", 256) // Two units each.
	r.added(emoji, "r", "")
	r.insert(emoji+"k", "r", "").fails(http.StatusBadRequest, "PropertyValueTooLarge", valueTooLarge)
}

func longSegments(r *rig) {
	r.create()
	for _, k := range [][2]string{{strings.Repeat("a", 500), strings.Repeat("b", 500)}, {strings.Repeat("é", 500), strings.Repeat("😀", 250)}} {
		r.added(k[0], k[1], "")
		var encoded [2]string
		for i := range k {
			for _, b := range []byte(k[i]) {
				encoded[i] += "%" + strings.ToUpper(string("0123456789abcdef"[b>>4])+string("0123456789abcdef"[b&15]))
			}
		}
		r.read(r.path(encoded[0], encoded[1])).is(http.StatusOK).has(k[0], k[1], "")
		r.do("MERGE", r.path(encoded[0], encoded[1]), `{"v":1}`, "If-Match", "*").is(http.StatusNoContent)
	}
}

// decoded is the body as JSON.
func (a *answer) decoded() (doc map[string]any) {
	a.rig.Helper()
	require.NoError(a.rig, json.Unmarshal([]byte(a.body), &doc), a.message())
	return doc
}
