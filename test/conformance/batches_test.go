package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// Cases 68 to 72: queries in batches, what a batch may not be, and the bytes of its answer.
func batchCases() []testCase {
	return []testCase{
		{68, "batch of one query", batchOfQuery},
		{69, "mixed batches", mixedBatches},
		{70, "batch without a version", batchWithoutVersion},
		{71, "transactions are atomic", atomic},
		{72, "bytes of a batch's answer", bytesOfAnswer},
	}
}

func batchOfQuery(r *rig) {
	r.create()
	long := strings.Repeat("é", 512)
	tag := r.added(long, "r", `,"v":1`).tag()
	read := func(uri string) (*answer, part) {
		r.Helper()
		q := r.request("POST", "/$batch", query(uri), "Content-Type", "multipart/mixed; boundary=batch")
		a := r.mirrored(q)
		parts := a.parts()
		require.Len(r, parts, 1)
		require.Zero(r, parts[0].set, "a query is in no change set")
		return a, parts[0]
	}
	want := fmt.Sprintf(`{"odata.metadata":"%s$metadata#%s/@Element","odata.etag":%s,"PartitionKey":%q,"RowKey":"r","Timestamp":%q,"v":1}`,
		r.base(), r.table, quoted(tag), long, stampOf(tag))
	_, p := read(r.base() + r.path(escape(long), "r")[1:])
	require.Equal(r, "200 OK", p.status, p.body)
	require.Equal(r, []string{
		"DataServiceVersion: 3.0;", "Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8", "X-Content-Type-Options: nosniff",
		"Cache-Control: no-cache", "ETag: " + tag,
	}, p.fields)
	requireJSONText(r, want, p.body)

	// The other workaround of section 1.4, in a batch.
	_, p = read(r.base() + r.filtered("PartitionKey eq '" + long + "' and RowKey eq 'r'")[1:])
	require.Equal(r, "200 OK", p.status, p.body)
	require.Contains(r, p.body, `"value":[{"odata.etag":`+quoted(tag))
	a, p := read(r.base() + r.path(escape(long), "none")[1:])
	p.fails(a, http.StatusNotFound, "ResourceNotFound", "0:"+resourceNotFound)
	a, p = read(r.base() + r.filtered("PartitionKey eq 'p'")[1:])
	p.fails(a, http.StatusBadRequest, "InvalidInput", "0:"+invalidInput)
}

func mixedBatches(r *rig) {
	r.create()
	var set changeSet
	set.insert(r, "p", "r", "")
	read := strings.TrimSuffix(query(r.base()+r.path("p", "r")[1:]), "--batch--\r\n")
	inside := set
	inside.add(r, "GET", r.path("p", "r"), "")
	for _, body := range []string{read + set.body(), set.print("changeset") + read + "--batch--\r\n", inside.body()} {
		a := r.batch(body)
		parts := a.parts()
		require.Len(r, parts, 1)
		parts[0].fails(a, http.StatusBadRequest, "InvalidInput", "1:"+invalidInput)
		require.Empty(r, r.read("/"+r.table).keys(), "nothing is executed")
	}
	var second changeSet
	second.insert(r, "p", "second", "")
	a := r.batch(set.print("first") + second.print("second") + "--batch--\r\n")
	parts := a.parts()
	require.Len(r, parts, 2)
	require.Equal(r, "204 No Content", parts[0].status)
	require.Equal(r, []int{1, 2}, []int{parts[0].set, parts[1].set})
	parts[1].fails(a, http.StatusBadRequest, "InvalidInput", "")
	require.Equal(r, []string{"p/r"}, r.read("/"+r.table).keys())
}

func batchWithoutVersion(r *rig) {
	r.create()
	var set changeSet
	set.insert(r, "p", "r", "")
	r.batch(set.body(), "X-Ms-Version", "", "Accept", "").fails(http.StatusBadRequest, "InvalidInput", "")
	require.Empty(r, r.read("/"+r.table).keys())
}

// atomic: 1000 transactions flip pairs of rows, each pair its two rows together, while queries at
// both locations look for a pair that is mixed, or older than one that was seen before.
func atomic(r *rig) {
	r.create()
	const pairs, flips = 20, 50
	flip := func(pair, n int) error {
		var set changeSet
		for _, rk := range []string{"a", "b"} {
			set.add(r, "PUT", r.path(fmt.Sprintf("%02d", pair), rk), fmt.Sprintf(`{"v":%d}`, n))
		}
		a, err := r.try(r.request("POST", "/$batch", set.body(), "Content-Type", "multipart/mixed; boundary=batch"))
		if err == nil && strings.Count(a.body, "HTTP/1.1 204 No Content\r\n") != 2 {
			err = fmt.Errorf("pair %d, flip %d: %d %s", pair, n, a.status, a.body)
		}
		return err
	}
	for pair := range pairs {
		require.NoError(r, flip(pair, 0))
	}
	require.Len(r, r.read("/"+r.table).keys(), 2*pairs)

	g, ctx := errgroup.WithContext(r.Context())
	for _, location := range []string{r.account, r.account + "-secondary"} {
		g.Go(func() error { return r.watch(ctx, location, pairs, flips) })
	}
	for pair := range pairs {
		g.Go(func() error {
			for n := 1; n <= flips && ctx.Err() == nil; n++ {
				if err := flip(pair, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(r, g.Wait())
}

// watch queries all pairs until each has been seen at its last flip.
func (r *rig) watch(ctx context.Context, location string, pairs, last int) error {
	was, finished := map[string]int{}, 0
	for finished < pairs {
		q := r.request("GET", "", "", "Accept", "application/json;odata=nometadata")
		q.target = "/" + location + "/" + r.table + "()?$select=PartitionKey,v"
		a, err := r.suite.once(ctx, r.sign(q))
		var doc struct {
			Value []struct {
				PartitionKey string
				V            int
			}
		}
		if err != nil || a.status == http.StatusServiceUnavailable {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		if err := json.Unmarshal([]byte(a.body), &doc); err != nil || len(doc.Value) != 2*pairs {
			return fmt.Errorf("%s: %d %w: %s", location, a.status, err, a.body)
		}
		finished = 0
		for i := 0; i < len(doc.Value); i += 2 {
			x, y := doc.Value[i], doc.Value[i+1]
			if x != y || x.V < was[x.PartitionKey] {
				return fmt.Errorf("%s: %v beside %v, after %d", location, x, y, was[x.PartitionKey])
			}
			if was[x.PartitionKey] = x.V; x.V == last {
				finished++
			}
		}
	}
	return nil
}

func bytesOfAnswer(r *rig) {
	r.create()
	r.added("p", "there", "")
	r.added("p", "gone", "")
	var set changeSet
	set.insert(r, "p", "o'hara", `,"v":1`)
	set.add(r, "POST", "/"+r.table, entity("p", "echo", `,"v":1`), "Accept: application/json;odata=nometadata")
	set.add(r, "MERGE", r.path("p", "there"), `{"v":1}`, "If-Match: *")
	set.add(r, "DELETE", r.path("p", "gone"), "", "If-Match: *")
	set.operations[3].fields = set.operations[3].fields[1:] // Without a Content-ID.
	a := r.batch(set.body())
	parts := a.parts()
	require.Len(r, parts, 4)
	tag := parts[0].field("ETag")
	require.Equal(r, []string{tag, tag}, []string{parts[1].field("ETag"), parts[2].field("ETag")}, "entities of one transaction share their Timestamp")
	_, outer, _ := strings.Cut(a.header.Get("Content-Type"), "boundary=")
	_, inner, _ := strings.Cut(strings.SplitN(a.body, "\r\n", 3)[1], "boundary=")
	location := func(rk string) string { return r.base() + r.path("p", rk)[1:] }
	head := "--" + inner + "\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
	want := "--" + outer + "\r\nContent-Type: multipart/mixed; boundary=" + inner + "\r\n\r\n" +
		head + "HTTP/1.1 204 No Content\r\nContent-ID: 1\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n" +
		"Preference-Applied: return-no-content\r\nDataServiceVersion: 3.0;\r\nLocation: " + location("o''hara") + "\r\nDataServiceId: " + location("o''hara") +
		"\r\nETag: " + tag + "\r\n\r\n\r\n" +
		head + "HTTP/1.1 201 Created\r\nContent-ID: 2\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nDataServiceVersion: 3.0;\r\n" +
		"Content-Type: application/json;odata=nometadata;streaming=true;charset=utf-8\r\nLocation: " + location("echo") + "\r\nETag: " + tag + "\r\n\r\n" +
		`{"PartitionKey":"p","RowKey":"echo","Timestamp":"` + stampOf(tag) + `","v":1}` + "\r\n" +
		head + "HTTP/1.1 204 No Content\r\nContent-ID: 3\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nDataServiceVersion: 1.0;\r\n" +
		"ETag: " + tag + "\r\n\r\n\r\n" +
		head + "HTTP/1.1 204 No Content\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nDataServiceVersion: 1.0;\r\n\r\n\r\n" +
		"--" + inner + "--\r\n--" + outer + "--\r\n"
	require.Equal(r, want, a.body)
}
