package conformance

import (
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// Cases 26 to 33: inserts, updates and merges.
func writeCases() []testCase {
	return []testCase{
		{26, "Prefer", prefer},
		{27, "insert twice", insertTwice},
		{28, "operations on a missing table", onMissingTable},
		{29, "missing entity", missingEntity},
		{30, "replace and merge", replaceAndMerge},
		{31, "merge changes a type", mergeChangesType},
		{32, "update and upsert of what is missing", updateOfMissing},
		{33, "no upsert before 2011-08-18", noUpsertBefore},
	}
}

func prefer(r *rig) {
	r.create()
	a := r.added("p", "absent", `,"v":1`).has("p", "absent", `,"v":1`)
	require.Equal(r, r.base()+r.path("p", "absent")[1:], a.header.Get("Location"))
	require.Empty(r, a.header.Get("Preference-Applied")+a.header.Get("DataServiceId"))

	a = r.insert("p", "none", "", "Prefer", "return-no-content").is(http.StatusNoContent)
	require.Equal(r, "return-no-content", a.header.Get("Preference-Applied"))
	for _, name := range []string{"Location", "DataServiceId"} {
		require.Equal(r, r.base()+r.path("p", "none")[1:], a.header.Get(name))
	}
	a = r.insert("p", "content", `,"v":1`, "Prefer", "return-content").is(http.StatusCreated).has("p", "content", `,"v":1`)
	require.Equal(r, "return-content", a.header.Get("Preference-Applied"))
	require.Equal(r, r.base()+r.path("p", "content")[1:], a.header.Get("Location"))

	// It has no effect on a write of another kind (section 9.7).
	a = r.do("PUT", r.path("p", "none"), `{"v":1}`, "Prefer", "return-content").is(http.StatusNoContent)
	require.Empty(r, a.header.Get("Preference-Applied")+a.header.Get("Location"))
	for _, rk := range []string{"absent", "none", "content"} {
		r.read(r.path("p", rk)).is(http.StatusOK).has("p", rk, `,"v":1`)
	}
}

func insertTwice(r *rig) {
	r.create()
	first := r.added("p", "r", `,"v":1`)
	a := r.insert("p", "r", `,"v":2`).fails(http.StatusConflict, "EntityAlreadyExists", entityExists)
	require.Empty(r, a.header.Get("Location"))
	a = r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", `,"v":1`)
	require.Equal(r, first.tag(), a.tag())
}

func onMissingTable(r *rig) {
	missing := func(a *answer) {
		r.Helper()
		a.fails(http.StatusNotFound, "TableNotFound", tableNotFound)
		require.Empty(r, a.header.Get("Cache-Control"), "an early failure has none")
	}
	for _, path := range []string{"/" + r.table, "/" + r.table + "()?$top=1", r.path("p", "r"), r.filtered("PartitionKey eq 'p'")} {
		missing(r.read(path))
	}
	missing(r.insert("p", "r", ""))
	for _, match := range []string{"", "*"} {
		for _, method := range []string{"PUT", "MERGE", "PATCH"} {
			missing(r.do(method, r.path("p", "r"), `{"v":1}`, "If-Match", match))
		}
	}
	missing(r.do("DELETE", r.path("p", "r"), "", "If-Match", "*"))
	r.do("GET", "/"+r.table+"?comp=acl", "").fails(http.StatusNotFound, "TableNotFound", tableNotFound)
	r.do("PUT", "/"+r.table+"?comp=acl", "").fails(http.StatusNotFound, "TableNotFound", tableNotFound)
}

func missingEntity(r *rig) {
	r.create()
	r.added("p", "other", "")
	r.read(r.path("p", "r")).fails(http.StatusNotFound, "ResourceNotFound", resourceNotFound)
	a := r.read(r.filtered("PartitionKey eq 'p' and RowKey eq 'r'"))
	require.Empty(r, a.keys())
	requireJSONText(r, `{"odata.metadata":"`+r.base()+`$metadata#`+r.table+`","value":[]}`, a.body)
	require.Equal(r, []string{"p/other"}, r.read(r.filtered("PartitionKey eq 'p' and RowKey eq 'other'")).keys())
}

func replaceAndMerge(r *rig) {
	r.create()
	path := r.path("p", "r")
	last := r.do("PUT", path, `{"a":1,"b":2}`).is(http.StatusNoContent).time()
	write := func(method, body string) {
		r.Helper()
		now := r.do(method, path, body, "If-Match", "*").is(http.StatusNoContent).time()
		require.True(r, now.After(last), "Timestamp goes from %v to %v", last, now)
		last = now
	}
	r.read(path).is(http.StatusOK).has("p", "r", `,"a":1,"b":2`)
	write("PUT", `{"a":1}`)
	r.read(path).is(http.StatusOK).has("p", "r", `,"a":1`)
	write("MERGE", `{"c":3}`)
	require.Equal(r, map[string]any{"a": 1., "c": 3.}, custom(r.read(path).is(http.StatusOK)))
	write("PATCH", `{"a":4}`)
	require.Equal(r, map[string]any{"a": 4., "c": 3.}, custom(r.read(path).is(http.StatusOK)))
	write("MERGE", `{}`) // Changes Timestamp and ETag all the same.
	require.Equal(r, map[string]any{"a": 4., "c": 3.}, custom(r.read(path).is(http.StatusOK)))
}

// custom are the properties of an entity that are not the system's. Their order is the server's
// after a merge.
func custom(a *answer) map[string]any {
	a.rig.Helper()
	doc := a.decoded()
	for name := range doc {
		if strings.HasPrefix(name, "odata.") || name == "PartitionKey" || name == "RowKey" || name == "Timestamp" {
			delete(doc, name)
		}
	}
	return doc
}

func mergeChangesType(r *rig) {
	r.create()
	r.added("p", "r", `,"Rating":9`)
	r.do("MERGE", r.path("p", "r"), `{"Rating":"nine"}`, "If-Match", "*").is(http.StatusNoContent)
	r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", `,"Rating":"nine"`)
	require.Equal(r, []string{"p/r"}, r.read(r.filtered("Rating eq 'nine'")).keys())
	require.Empty(r, r.read(r.filtered("Rating eq 9")).keys())
}

func updateOfMissing(r *rig) {
	r.create()
	for _, method := range []string{"PUT", "MERGE", "PATCH"} {
		path := r.path("p", method)
		for _, match := range []string{"*", `W/"datetime'2009-04-30T20%3A44%3A09.5789464Z'"`} {
			r.do(method, path, `{"v":1}`, "If-Match", match).fails(http.StatusNotFound, "ResourceNotFound", resourceNotFound)
		}
		r.read(path).fails(http.StatusNotFound, "ResourceNotFound", resourceNotFound)
		a := r.do(method, path, `{"v":1}`).is(http.StatusNoContent)
		require.Empty(r, a.header.Get("Location"))
		require.Equal(r, a.tag(), r.read(path).is(http.StatusOK).has("p", method, `,"v":1`).tag())
	}
}

func noUpsertBefore(r *rig) {
	r.create()
	r.added("p", "there", "")
	for _, rk := range []string{"missing", "there"} {
		for _, method := range []string{"PUT", "MERGE", "PATCH", "DELETE"} {
			body := atomEntry(`<d:v m:type="Edm.Int32">1</d:v>`)
			if method == "DELETE" {
				body = ""
			}
			r.do(method, r.path("p", rk), body, "X-Ms-Version", "2009-09-19", "Content-Type", "application/atom+xml", "Accept", "application/atom+xml,application/xml").
				fails(http.StatusBadRequest, "MissingRequiredHeader", "A required HTTP header was not specified.")
		}
	}
	require.Equal(r, []string{"p/there"}, r.read("/"+r.table).keys())
	r.read(r.path("p", "there")).is(http.StatusOK).has("p", "there", "")
}

// Cases 34 to 38: conditions.
func conditionCases() []testCase {
	return []testCase{
		{34, "two writers with one tag", twoWriters},
		{35, "forms of If-Match", formsOfIfMatch},
		{36, "delete twice", deleteTwice},
		{37, "X-HTTP-Method", tunnelled},
		{38, "keys of the body are not used", keysOfBody},
	}
}

func twoWriters(r *rig) {
	r.create()
	tag := r.added("p", "r", `,"v":"start"`).tag()
	for range 8 {
		var answers [2]*answer
		var g errgroup.Group
		for i, v := range []string{"first", "second"} {
			q := r.request("PUT", r.path("p", "r"), `{"v":"`+v+`"}`, "If-Match", tag)
			g.Go(func() (err error) {
				answers[i], err = r.try(q)
				return err
			})
		}
		require.NoError(r, g.Wait())
		answers[0].rig, answers[1].rig = r, r
		won, value := answers[0], "first"
		if answers[1].status == http.StatusNoContent {
			won, value = answers[1], "second"
			answers[1] = answers[0]
		}
		won.is(http.StatusNoContent)
		answers[1].fails(http.StatusPreconditionFailed, "UpdateConditionNotSatisfied", conditionNotMet)
		tag = won.tag()
		require.Equal(r, tag, r.do("GET", r.path("p", "r"), "").is(http.StatusOK).has("p", "r", `,"v":"`+value+`"`).tag())
	}
	r.read(r.path("p", "r")).is(http.StatusOK)
}

func formsOfIfMatch(r *rig) {
	r.create()
	tag := r.added("p", "r", "").tag()
	raw := strings.ReplaceAll(tag, "%3A", ":")
	for _, method := range []string{"PUT", "MERGE", "DELETE"} {
		body := `{"v":1}`
		if method == "DELETE" {
			body = ""
		}
		for _, match := range []string{`"abc"`, "abc", tag + ", " + tag} {
			r.do(method, r.path("p", "r"), body, "If-Match", match).fails(http.StatusBadRequest, "InvalidInput",
				"The etag value '"+match+"' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.")
		}
		r.do(method, r.path("p", "r"), body, "If-Match", `W/"abc"`).fails(http.StatusPreconditionFailed, "UpdateConditionNotSatisfied", conditionNotMet)
	}
	require.NotEqual(r, tag, raw)
	a := r.do("PUT", r.path("p", "r"), `{"v":1}`, "If-Match", raw).is(http.StatusNoContent)
	r.do("PUT", r.path("p", "r"), `{"v":2}`, "If-Match", raw).fails(http.StatusPreconditionFailed, "UpdateConditionNotSatisfied", conditionNotMet)
	require.Equal(r, a.tag(), r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", `,"v":1`).tag())
}

func deleteTwice(r *rig) {
	r.create()
	tag := r.added("p", "r", "").tag()
	r.do("DELETE", r.path("p", "r"), "", "If-Match", "*").is(http.StatusNoContent)
	r.do("DELETE", r.path("p", "r"), "", "If-Match", "*").fails(http.StatusNotFound, "ResourceNotFound", resourceNotFound)
	r.do("DELETE", r.path("p", "r"), "", "If-Match", tag).fails(http.StatusNotFound, "ResourceNotFound", resourceNotFound)
	r.read(r.path("p", "r")).fails(http.StatusNotFound, "ResourceNotFound", resourceNotFound)
	again := r.added("p", "r", "").tag() // At once.
	r.do("DELETE", r.path("p", "r"), "", "If-Match", tag).fails(http.StatusPreconditionFailed, "UpdateConditionNotSatisfied", conditionNotMet)
	r.do("DELETE", r.path("p", "r"), "").fails(http.StatusBadRequest, "MissingRequiredHeader", "A required HTTP header was not specified.")
	r.do("DELETE", r.path("p", "r"), "", "If-Match", again).is(http.StatusNoContent)
}

func tunnelled(r *rig) {
	r.create()
	r.added("p", "r", `,"a":1`)
	for _, scheme := range []string{sharedKey, sharedKeyLite} {
		q := r.request("POST", r.path("p", "r"), `{"b":"`+scheme+`"}`, "X-Http-Method", "MERGE", "If-Match", "*")
		r.signAs(q, scheme, q.target) // The string to sign has POST.
		r.send(q).is(http.StatusNoContent)
		require.Equal(r, map[string]any{"a": 1., "b": scheme}, custom(r.read(r.path("p", "r")).is(http.StatusOK)))
	}
	r.read(r.path("p", "r"), "X-Http-Method", "MERGE").fails(http.StatusBadRequest, "XMethodNotUsingPost", "")
	r.do("POST", r.path("p", "r"), `{}`, "X-Http-Method", "GET").fails(http.StatusBadRequest, "XMethodIncorrectValue", "")
	q := r.request("POST", r.path("p", "r"), `{}`, "If-Match", "*")
	q.header["X-Http-Method"] = []string{"MERGE", "MERGE"}
	r.send(q).fails(http.StatusBadRequest, "XMethodIncorrectCount", "")

	// As the Atom clients send it.
	r.do("POST", r.path("p", "r"), atomEntry("<d:b>atom</d:b>"), "X-Http-Method", "MERGE", "If-Match", "*", "X-Ms-Version", "2009-04-14",
		"Content-Type", "application/atom+xml", "Accept", "application/atom+xml,application/xml").is(http.StatusNoContent)
	require.Equal(r, map[string]any{"a": 1., "b": "atom"}, custom(r.read(r.path("p", "r")).is(http.StatusOK)))
}

func keysOfBody(r *rig) {
	r.create()
	r.added("p", "r", "")
	for i, method := range []string{"PUT", "MERGE", "PUT"} {
		match := []string{"*", "*", ""}[i]
		r.do(method, r.path("p", "r"), entity("other", "keys", `,"v":1`), "If-Match", match).is(http.StatusNoContent)
		r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", `,"v":1`)
	}
	r.read(r.path("other", "keys")).fails(http.StatusNotFound, "ResourceNotFound", resourceNotFound)
	require.Equal(r, []string{"p/r"}, r.read("/"+r.table).keys())
}
