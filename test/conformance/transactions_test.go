package conformance

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"
)

const (
	rowTwice         = "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."
	partitionsDiffer = "All commands in a batch must operate on same entity group."
)

// Cases 60 to 67: entity group transactions.
func transactionCases() []testCase {
	return []testCase{
		{60, "transaction of 2009", transactionOf2009},
		{61, "100 inserts and 101", mostInserts},
		{62, "third insert exists", thirdExists},
		{63, "two partitions, one entity twice", twoPartitions},
		{64, "stale tag in a transaction", staleTag},
		{65, "transaction on a missing table", transactionOnMissingTable},
		{66, "LF and no final newline", lineFeeds},
		{67, "transaction over 4 MiB", tooLarge},
	}
}

func transactionOf2009(r *rig) {
	r.create()
	r.added("a", "merged", `,"kept":true`)
	r.added("a", "deleted", "")
	const host = "http://myaccount.tables.core.windows.net/"
	var set changeSet
	add := func(method, path, properties string) {
		fields := []string{"Content-Type: application/atom+xml;type=entry", "DataServiceVersion: 1.0;", fmt.Sprint("Content-ID: ", len(set.operations)+1)}
		body := ""
		if properties != "" {
			body = atomEntry(properties)
			fields = append(fields, "Content-Length: ###")
		}
		set.operations = append(set.operations, operation{method, host + path, body, fields})
	}
	add("POST", "Case60", `<d:PartitionKey>a</d:PartitionKey><d:RowKey>1</d:RowKey><d:Rating m:type="Edm.Int32">9</d:Rating>`)
	add("POST", "Case60", `<d:PartitionKey>a</d:PartitionKey><d:RowKey>2</d:RowKey>`)
	add("MERGE", "Case60(PartitionKey='a', RowKey='merged')", `<d:Text>new</d:Text>`)
	add("DELETE", "Case60(PartitionKey='a', RowKey='deleted')", "")
	a := r.batch(set.body(), "X-Ms-Version", "2009-04-14", "Accept", "application/atom+xml,application/xml", "DataServiceVersion", "1.0;NetFx")
	require.NotContains(r, a.header, "X-Ms-Version")
	parts := a.set()
	require.Len(r, parts, 4)
	for i, properties := range []string{`<d:Rating m:type="Edm.Int32">9</d:Rating>`, ""} {
		p, rk := parts[i], fmt.Sprint(i+1)
		require.Equal(r, "201 Created", p.status, p.body)
		require.Equal(r, []string{
			"Content-ID: " + rk, "Content-Type: application/atom+xml;charset=utf-8", "Cache-Control: no-cache", "ETag: " + p.field("ETag"),
			"Location: " + r.base() + "Case60(PartitionKey='a',RowKey='" + rk + "')", "DataServiceVersion: 1.0;",
		}, p.fields)
		requireEntry(r, p.body, p.field("ETag"), "a", rk, properties)
	}
	require.Equal(r, "204 No Content", parts[2].status)
	require.Equal(r, []string{"Content-ID: 3", "Cache-Control: no-cache", "DataServiceVersion: 1.0;", "ETag: " + parts[2].field("ETag")}, parts[2].fields)
	require.Equal(r, "204 No Content", parts[3].status)
	require.Equal(r, []string{"Content-ID: 4", "Cache-Control: no-cache", "DataServiceVersion: 1.0;"}, parts[3].fields)
	require.Equal(r, []string{"a/1", "a/2", "a/merged"}, r.read("/"+r.table).keys())
	require.Equal(r, map[string]any{"kept": true, "Text": "new"}, custom(r.read(r.path("a", "merged")).is(http.StatusOK)))

	// A failure is XML, too, and undoes everything; an update without If-Match is one of any version.
	set = changeSet{}
	add("DELETE", "Case60(PartitionKey='a', RowKey='1')", "")
	add("MERGE", "Case60(PartitionKey='a', RowKey='none')", `<d:Text>new</d:Text>`)
	a = r.batch(set.body(), "X-Ms-Version", "2009-04-14", "Accept", "application/atom+xml,application/xml")
	parts = a.set()
	require.Len(r, parts, 1)
	require.Equal(r, "404 Not Found", parts[0].status)
	require.Equal(r, []string{"Content-ID: 2", "Content-Type: application/xml", "Cache-Control: no-cache", "DataServiceVersion: 1.0;"}, parts[0].fields)
	requireError(r, atomForm, parts[0].body, "", "ResourceNotFound", "1:"+resourceNotFound)
	require.Equal(r, []string{"a/1", "a/2", "a/merged"}, r.read("/"+r.table).keys())
}

func mostInserts(r *rig) {
	r.create()
	var set, more changeSet
	for i := range 101 {
		if i < 100 {
			set.insert(r, "p", fmt.Sprintf("%04d", i), "")
		}
		more.insert(r, "more", fmt.Sprintf("%04d", i), "")
	}
	set.succeeds(r)
	require.Equal(r, keysOf(0, 100), r.read("/"+r.table).keys())
	a := r.batch(more.body())
	parts := a.set()
	require.Len(r, parts, 1)
	parts[0].fails(a, http.StatusBadRequest, "InvalidInput", "99:The batch request operation exceeds the maximum 100 changes per change set.")
	require.Equal(r, keysOf(0, 100), r.read("/"+r.table).keys())
}

func thirdExists(r *rig) {
	r.create()
	tag := r.added("p", "there", `,"v":1`).tag()
	var set changeSet
	for _, rk := range []string{"first", "second", "there", "fourth"} {
		set.insert(r, "p", rk, `,"v":2`)
	}
	set.fails(r, http.StatusConflict, "EntityAlreadyExists", 2, entityExists)
	require.Equal(r, []string{"p/there"}, r.read("/"+r.table).keys())
	require.Equal(r, tag, r.read(r.path("p", "there")).is(http.StatusOK).has("p", "there", `,"v":1`).tag())

	set = changeSet{}
	set.insert(r, "p", "first", "")
	set.add(r, "DELETE", r.path("p", "none"), "", "If-Match: *")
	set.fails(r, http.StatusNotFound, "ResourceNotFound", 1, resourceNotFound)
	set = changeSet{}
	set.insert(r, "p", "first", "")
	set.insert(r, "p", "a/b", "")
	set.fails(r, http.StatusBadRequest, "OutOfRangeInput", 1, "The 'RowKey' parameter of value 'a/b' is out of range.")
	require.Equal(r, []string{"p/there"}, r.read("/"+r.table).keys())
}

func twoPartitions(r *rig) {
	r.create()
	var set changeSet
	set.insert(r, "p", "r", "")
	set.insert(r, "q", "r", "")
	set.fails(r, http.StatusBadRequest, "CommandsInBatchActOnDifferentPartitions", 1, partitionsDiffer)
	set = changeSet{}
	set.insert(r, "p", "r", "")
	set.add(r, "MERGE", r.path("p", "r"), `{"v":1}`, "If-Match: *")
	set.fails(r, http.StatusBadRequest, "InvalidDuplicateRow", 1, rowTwice)
	require.Empty(r, r.read("/"+r.table).keys())
}

func staleTag(r *rig) {
	r.create()
	stale := r.added("p", "r", `,"v":1`).tag()
	tag := r.do("MERGE", r.path("p", "r"), `{"v":2}`, "If-Match", stale).is(http.StatusNoContent).tag()
	change := func(tag string) (set changeSet) {
		set.insert(r, "p", "new", "")
		set.add(r, "MERGE", r.path("p", "r"), `{"v":3}`, "If-Match: "+tag)
		return set
	}
	set := change(stale)
	set.fails(r, http.StatusPreconditionFailed, "UpdateConditionNotSatisfied", 1, conditionNotMet)
	require.Equal(r, []string{"p/r"}, r.read("/"+r.table).keys())
	require.Equal(r, tag, r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", `,"v":2`).tag())
	set = change(tag)
	set.succeeds(r)
	r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", `,"v":3`)
}

func transactionOnMissingTable(r *rig) {
	var set changeSet
	set.insert(r, "p", "r", "")
	set.insert(r, "p", "s", "")
	set.fails(r, http.StatusNotFound, "TableNotFound", 0, tableNotFound)
	r.read("/"+r.table).fails(http.StatusNotFound, "TableNotFound", tableNotFound)
}

func lineFeeds(r *rig) {
	r.create()
	for i, change := range []func(string) string{
		func(body string) string { return strings.ReplaceAll(body, "\r\n", "\n") },
		func(body string) string { return strings.TrimSuffix(body, "\r\n") },
		func(body string) string { return strings.TrimSuffix(body, "--\r\n") },
		func(body string) string { return strings.TrimSuffix(strings.ReplaceAll(body, "\r\n", "\n"), "--\n") },
	} {
		var set changeSet
		pk := fmt.Sprint(i)
		for _, rk := range []string{"a", "b", "c"} {
			set.insert(r, pk, rk, `,"v":"\r\n"`)
		}
		parts := r.batch(change(set.body())).set()
		require.Len(r, parts, 3)
		for _, p := range parts {
			require.Equal(r, "204 No Content", p.status, p.body)
		}
		r.found("PartitionKey eq '"+pk+"'", pk+"/a", pk+"/b", pk+"/c")
		r.read(r.path(pk, "c")).is(http.StatusOK).has(pk, "c", `,"v":"\r\n"`)
	}
}

func tooLarge(r *rig) {
	r.create()
	var set changeSet
	for i := range 9 {
		set.insert(r, "p", fmt.Sprint(i), largeProperties())
	}
	require.Greater(r, len(set.body()), 4<<20)
	r.batch(set.body()).fails(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit.")
	require.Empty(r, r.read("/"+r.table).keys())
	set.operations = set.operations[:8]
	require.Less(r, len(set.body()), 4<<20)
	set.succeeds(r)
	require.Len(r, r.read("/"+r.table+"()?$top=3").keys(), 3)
	r.made = false // What settled would read is more than a page.
}

// largeProperties are 480 KiB of text.
func largeProperties() string {
	var b strings.Builder
	for i := range 15 {
		fmt.Fprintf(&b, `,"s%d":"%s"`, i, strings.Repeat("x", 32768))
	}
	return b.String()
}
