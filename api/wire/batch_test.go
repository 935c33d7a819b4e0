package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"antipode/services/storageerr"
)

// readBatch reads a whole body; bodies are copied.
func readBatch(r io.Reader, contentType string) ([]BatchRequest, error) {
	boundary, err := BatchBoundary(contentType)
	if err != nil {
		return nil, err
	}
	b := NewBatchReader(r, boundary)
	var all []BatchRequest
	for {
		r, err := b.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		got := *r
		got.Body = bytes.Clone(r.Body)
		all = append(all, got)
	}
}

const (
	batchType = "multipart/mixed; boundary=b"
	setHead   = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
	opHead    = "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
)

// Every tolerance of 13.2 and A.66: how clients write the same batch of one insert and
// one delete.
func TestBatchReader(t *testing.T) {
	const want = `1 POST http://h/T {"a":1}` + "\n" + `1 DELETE http://h/T(PartitionKey='p',RowKey='r') ` + "\n"
	insert := opHead + "POST http://h/T HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}\r\n"
	remove := opHead + "DELETE http://h/T(PartitionKey='p',RowKey='r') HTTP/1.1\r\nIf-Match: *\r\n\r\n\r\n"
	whole := setHead + insert + remove + "--c--\r\n--b--\r\n"
	for name, tc := range map[string]struct{ contentType, body string }{
		"as it should be":       {batchType, whole},
		"LF":                    {batchType, strings.ReplaceAll(whole, "\r\n", "\n")},
		"mixed line ends":       {batchType, strings.Replace(whole, "\r\n", "\n", 7)},
		"no final line end":     {batchType, strings.TrimSuffix(whole, "\r\n")},
		"final without dashes":  {batchType, setHead + insert + remove + "--c\r\n--b"},
		"no batch delimiter":    {batchType, setHead + insert + remove + "--c--\r\n"},
		"no final at all":       {batchType, setHead + insert + remove},
		"batch ends change set": {batchType, setHead + insert + remove + "--b--\r\n"},
		"blank lines":           {batchType, strings.ReplaceAll(strings.ReplaceAll(whole, "--c", "\r\n\r\n--c"), "POST", "\r\n\r\nPOST")},
		"blanks after delimiter": {
			batchType, strings.ReplaceAll(strings.ReplaceAll(whole, "--c\r\n", "--c \t\r\n"), "--b--", "--b-- "),
		},
		"preamble and epilogue": {batchType, "a preamble\r\n\r\n" + whole + "an epilogue\r\n--b\r\n"},
		"quoted boundary":       {`multipart/mixed; charset="utf-8"; boundary="b"`, whole},
		"odd type":              {`Multipart/Mixed;BOUNDARY=b;charset=utf-8`, whole},
		"odd boundary":          {"multipart/mixed; boundary=batch_(36522ad7-fc75)", strings.NewReplacer("--b", "--batch_(36522ad7-fc75)").Replace(whole)},
		"headers of any case":   {batchType, strings.NewReplacer("Content-Type", "content-TYPE", "If-Match", "if-match").Replace(whole)},
		"wrong Content-Length":  {batchType, strings.Replace(whole, "Content-Length: 7", "Content-Length: ###", 1)},
		"no headers of parts":   {batchType, strings.ReplaceAll(whole, opHead, "--c\r\n\r\n")},
		"no HTTP version":       {batchType, strings.ReplaceAll(whole, " HTTP/1.1", "")},
		"no headers within":     {batchType, strings.Replace(whole, "If-Match: *\r\n\r\n\r\n", "", 1)},
	} {
		for reader, r := range map[string]io.Reader{
			"whole": strings.NewReader(tc.body), "byte by byte": iotest.OneByteReader(strings.NewReader(tc.body)),
		} {
			all, err := readBatch(r, tc.contentType)
			var got strings.Builder
			for _, r := range all {
				fmt.Fprintf(&got, "%d %s %s %s\n", r.ChangeSet, r.Method, r.URI, bytes.TrimSpace(r.Body))
			}
			if err != nil || got.String() != want {
				t.Errorf("%s, %s: %v\n%s", name, reader, err, got.String())
			}
		}
	}
}

// What a request consists of: where a Content-ID may stand, several change sets, a
// query, a body of several lines and one longer than any buffer.
func TestBatchRequests(t *testing.T) {
	long := strings.Repeat("x", 3*batchLineMax)
	body := setHead +
		"--c\r\nContent-ID: 7\r\n\r\nMERGE T(PartitionKey='a', RowKey='b') HTTP/1.1\r\nprefer: return-content\r\n\r\n{\r\n\"a\":1\r\n--cc\r\n}\r\n\r\n" +
		"--c\r\nContent-ID: 7\r\n\r\nPUT /T HTTP/1.1\r\nContent-ID: 8\r\n\r\n" + long + "\r\n--c--\r\n" +
		"--b\r\nContent-Type: multipart/mixed; boundary=d\r\n\r\n--d\r\n\r\nPOST T\r\n\r\n--d--\r\n" +
		"--b\r\nContent-Type: application/http\r\n\r\nGET http://h/T()?$filter=a%20eq%20' HTTP/9' HTTP/1.1\r\n--b--"
	all, err := readBatch(strings.NewReader(body), batchType)
	if err != nil || len(all) != 4 {
		t.Fatalf("%v, %+v", err, all)
	}
	for i, want := range []BatchRequest{
		{ChangeSet: 1, Method: "MERGE", URI: "T(PartitionKey='a', RowKey='b')", ContentID: "7", Body: []byte("{\r\n\"a\":1\r\n--cc\r\n}\r\n")},
		{ChangeSet: 1, Method: "PUT", URI: "/T", ContentID: "8", Body: []byte(long)},
		{ChangeSet: 2, Method: "POST", URI: "T"},
		{Method: "GET", URI: "http://h/T()?$filter=a%20eq%20' HTTP/9'"},
	} {
		got := all[i]
		got.Header = nil
		if len(got.Body) == 0 {
			got.Body = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d: %.200v", i, got)
		}
	}
	if got := all[0].Header.Get("Prefer"); got != "return-content" {
		t.Errorf("Prefer: %q", got)
	}
}

// A batch of blobs has no change sets: a quoted boundary with an equals sign, Content-ID
// beside the request, paths with the account, no bodies (protocol/blob.md S8).
func TestBatchOfBlobs(t *testing.T) {
	part := func(id, path string) string {
		return "--batch_=1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: " + id +
			"\r\n\r\nDELETE " + path + " HTTP/1.1\r\nx-ms-date: now\r\nContent-Length: 0\r\n\r\n"
	}
	all, err := readBatch(strings.NewReader(part("0", "/acct/c/a%20b")+part("1", "/acct/c/b?snapshot=x")+"--batch_=1--\r\n"),
		`multipart/mixed; boundary="batch_=1"`)
	require.NoError(t, err)
	header := http.Header{"X-Ms-Date": {"now"}, "Content-Length": {"0"}}
	require.Equal(t, []BatchRequest{
		{Method: http.MethodDelete, URI: "/acct/c/a%20b", Header: header, ContentID: "0"},
		{Method: http.MethodDelete, URI: "/acct/c/b?snapshot=x", Header: header, ContentID: "1"},
	}, all)
	_, path, query := CutBatchURI(all[1].URI)
	require.Equal(t, []string{"acct/c/b", "snapshot=x"}, []string{path, query})
}

// What is no batch is InvalidInput, whatever was read before (13.7); an error of the
// source is returned as it is.
func TestBatchReaderErrors(t *testing.T) {
	op := opHead + "POST T HTTP/1.1\r\n\r\n{}\r\n"
	for name, tc := range map[string]struct{ contentType, body string }{
		"no type":                   {"", setHead + op},
		"another type":              {"application/json", setHead + op},
		"no boundary":               {"multipart/mixed", setHead + op},
		"empty boundary":            {`multipart/mixed; boundary=""`, setHead + op},
		"boundary too long":         {"multipart/mixed; boundary=" + strings.Repeat("b", boundaryMax+1), setHead + op},
		"empty":                     {batchType, ""},
		"no delimiter":              {batchType, "POST T HTTP/1.1\r\n\r\n{}\r\n"},
		"another boundary":          {batchType, strings.ReplaceAll(setHead, "--b", "--x") + op},
		"no part":                   {batchType, "--b--\r\n"},
		"an empty part":             {batchType, "--b\r\n\r\n--b--\r\n"},
		"a part without a request":  {batchType, "--b\r\nContent-Type: application/http\r\n\r\n\r\n--b--\r\n"},
		"empty change set":          {batchType, setHead + "--c--\r\n--b--\r\n"},
		"no operation":              {batchType, setHead + "--b--\r\n"},
		"change set without end":    {batchType, setHead},
		"change set cut off":        {batchType, "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n"},
		"change set's boundary":     {batchType, "--b\r\nContent-Type: multipart/mixed\r\n\r\n--c\r\n" + op},
		"both boundaries the same":  {batchType, "--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nPOST T\r\n\r\n--b--"},
		"delimiter after delimiter": {batchType, setHead + "--c\r\n" + op},
		"delimiter within headers":  {batchType, setHead + "--c\r\nContent-ID: 1\r\n--c\r\n\r\nPOST T\r\n\r\n--c--\r\n--b--"},
		"no URI":                    {batchType, setHead + "--c\r\n\r\nPOST  HTTP/1.1\r\n\r\n{}\r\n--c--\r\n--b--"},
		"one word":                  {batchType, setHead + "--c\r\n\r\nPOST\r\n\r\n{}\r\n--c--\r\n--b--"},
		"header without colon":      {batchType, setHead + "--c\r\n\r\nPOST T\r\nIf-Match\r\n\r\n{}\r\n--c--\r\n--b--"},
		"header with a blank":       {batchType, setHead + "--c\r\n\r\nPOST T\r\nIf Match: *\r\n\r\n{}\r\n--c--\r\n--b--"},
		"control character":         {batchType, setHead + "--c\r\nContent-ID: 1\x01\r\n\r\nPOST T\r\n\r\n{}\r\n--c--\r\n--b--"},
		"CR in a value":             {batchType, setHead + "--c\r\nContent-ID: 1\rX: 2\r\n\r\nPOST T\r\n\r\n{}\r\n--c--\r\n--b--"},
		"line too long":             {batchType, setHead + "--c\r\n\r\nPOST T" + strings.Repeat("t", batchLineMax) + "\r\n\r\n{}\r\n--c--\r\n--b--"},
		"header too long":           {batchType, setHead + "--c\r\n\r\nPOST T\r\nX: " + strings.Repeat("t", batchLineMax) + "\r\n\r\n{}\r\n--c--\r\n--b--"},
		"too many headers":          {batchType, setHead + "--c\r\n\r\nPOST T\r\n" + strings.Repeat("X: 1\r\n", batchHeadersMax+1) + "\r\n{}\r\n--c--\r\n--b--"},
		"nested change set":         {batchType, setHead + "--c\r\nContent-Type: multipart/mixed; boundary=d\r\n\r\n--d\r\n\r\nPOST T\r\n\r\n{}\r\n--d--\r\n--c--\r\n--b--"},
	} {
		if all, err := readBatch(strings.NewReader(tc.body), tc.contentType); !errors.Is(err, storageerr.InvalidInput) {
			t.Errorf("%s: %v, %+v", name, err, all)
		}
	}
	broken := errors.New("broken")
	for n := range len(setHead + op) {
		r := io.MultiReader(strings.NewReader((setHead + op)[:n]), iotest.ErrReader(broken))
		if _, err := readBatch(r, batchType); !errors.Is(err, broken) {
			t.Fatalf("source broken after %d bytes: %v", n, err)
		}
	}
}

// A batch of 64 MiB in operations of 64 KiB is read in the memory of one of them: what
// the reader holds does not grow with the batch.
// It holds invariant 8.
func TestBatchReaderMemory(t *testing.T) {
	const ops, size = 1024, 64 << 10
	op := opHead + "POST T HTTP/1.1\r\n\r\n" + strings.Repeat("x", size) + "\r\n"
	sources := []io.Reader{strings.NewReader(setHead)}
	for range ops {
		sources = append(sources, strings.NewReader(op))
	}
	boundary, err := BatchBoundary(batchType)
	if err != nil {
		t.Fatal(err)
	}
	b, n := NewBatchReader(io.MultiReader(sources...), boundary), 0
	for ; ; n++ {
		r, err := b.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(r.Body) != size {
			t.Fatalf("operation %d: %v, %d bytes", n, err, len(r.Body))
		}
	}
	if n != ops || cap(b.body) > 4*size {
		t.Errorf("%d operations, buffer of %d bytes", n, cap(b.body))
	}
}

// The forms of 13.3.
func TestCutBatchURI(t *testing.T) {
	for _, tc := range []struct{ uri, host, path, query string }{
		{"http://acct.table.example.net/T(PartitionKey='a',RowKey='b')", "acct.table.example.net", "T(PartitionKey='a',RowKey='b')", ""},
		{"https://127.0.0.1:10002/acct/T?$format=json", "127.0.0.1:10002", "acct/T", "$format=json"},
		{"http://127.0.0.1:10002/acct-secondary/T()?a=b?c", "127.0.0.1:10002", "acct-secondary/T()", "a=b?c"},
		{"http:// host/T(PartitionKey='a b', RowKey='c')", "host", "T(PartitionKey='a b',RowKey='c')", ""},
		{"T(PartitionKey=%27a b%27, RowKey='c''d e')", "", "T(PartitionKey=%27a b%27,RowKey='c''d e')", ""},
		{"/acct/T", "", "acct/T", ""},
		{"/T", "", "T", ""},
		{"T", "", "T", ""},
		{"//host/T", "", "/host/T", ""},
		{"http://host", "host", "", ""},
		{"http://me@host?a=b", "me@host?a=b", "", ""},
		{"http://host/acct/", "host", "acct/", ""},
		{"T(PartitionKey='http://x',RowKey='')", "", "T(PartitionKey='http://x',RowKey='')", ""},
	} {
		if host, path, query := CutBatchURI(tc.uri); host != tc.host || path != tc.path || query != tc.query {
			t.Errorf("%s: %q, %q, %q", tc.uri, host, path, query)
		}
	}
}

// plainly opens the boundaries of printBatch.
const plainly = "a-boundary-of-the-test-"

// printBatch writes requests the plainest way there is.
func printBatch(all []BatchRequest) string {
	var b strings.Builder
	set := 0
	for _, r := range all {
		if set != 0 && r.ChangeSet != set {
			fmt.Fprintf(&b, "--%sc%d--\r\n", plainly, set)
		}
		switch {
		case r.ChangeSet == 0:
			fmt.Fprintf(&b, "--%sb\r\n\r\n", plainly)
		case r.ChangeSet != set:
			fmt.Fprintf(&b, "--%[1]sb\r\nContent-Type: multipart/mixed; boundary=%[1]sc%[2]d\r\n\r\n", plainly, r.ChangeSet)
		}
		if set = r.ChangeSet; set != 0 {
			fmt.Fprintf(&b, "--%sc%d\r\n\r\n", plainly, set)
		}
		fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", r.Method, r.URI)
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			for _, v := range r.Header[name] {
				fmt.Fprintf(&b, "%s: %s\r\n", name, v)
			}
		}
		fmt.Fprintf(&b, "\r\n%s\r\n", r.Body)
	}
	return b.String() + "--" + plainly + "b--"
}

// Any body under any type gives requests or InvalidInput; they are no larger than the
// body, and what was read, printed plainly, reads back the same.
func FuzzBatchReader(f *testing.F) {
	op := opHead + "POST http://h/T HTTP/1.1\r\nContent-ID: 1\r\n\r\n{\"a\":1}\r\n"
	f.Add(batchType, setHead+op+op+"--c--\r\n--b--\r\n")
	f.Add(batchType, strings.ReplaceAll(setHead+op+op+"--c--\r\n--b--", "\r\n", "\n"))
	f.Add(`multipart/mixed; boundary="b"`, "--b\n\nGET T(PartitionKey='a', RowKey='b')\n--b")
	f.Add(batchType, setHead+op+"--c--\r\n"+strings.ReplaceAll(setHead+op, "=c", "=d"))
	f.Fuzz(func(t *testing.T, contentType, body string) {
		all, err := readBatch(strings.NewReader(body), contentType)
		if err != nil {
			if !errors.Is(err, storageerr.InvalidInput) {
				t.Fatalf("not InvalidInput: %v", err)
			}
			return
		}
		size := 0
		for i, r := range all {
			size += len(r.Body) + len(r.Method) + len(r.URI)
			if r.ContentID != "" {
				all[i].Header.Set("Content-Id", r.ContentID)
			}
			CutBatchURI(r.URI)
		}
		if len(all) == 0 || size > len(body) {
			t.Fatalf("%d requests of %d bytes from %d", len(all), size, len(body))
		}
		if strings.Contains(body, plainly) {
			return
		}
		again, err := readBatch(strings.NewReader(printBatch(all)), "multipart/mixed; boundary="+plainly+"b")
		if err != nil || fmt.Sprint(again) != fmt.Sprint(all) {
			t.Fatalf("%+v reads back as %+v, %v", all, again, err)
		}
	})
}

// The URI of a request in a batch is cut without losing or adding a byte of its path,
// and any boundary is one that a line can hold.
func FuzzBatchHead(f *testing.F) {
	f.Add("http://host/acct/T(PartitionKey='a b', RowKey='c')?$format=json", "multipart/mixed; boundary=b")
	f.Add("T()", `multipart/mixed; charset=x; boundary="(b)"`)
	f.Add("??", "")
	f.Add("https:///x", "multipart/mixed;boundary= ")
	f.Fuzz(func(t *testing.T, uri, contentType string) {
		host, path, query := CutBatchURI(uri)
		require.LessOrEqual(t, len(host)+len(path)+len(query), len(uri))
		if !strings.ContainsAny(uri, " \t") {
			whole, end := path, strings.TrimSuffix(uri, "?")
			if query != "" {
				whole, end = path+"?"+query, uri
			}
			require.True(t, strings.HasSuffix(end, whole), "%q of %q", whole, uri)
		}
		if boundary, ok := multipartBoundary(contentType); ok {
			require.LessOrEqual(t, len(boundary), boundaryMax)
			require.Equal(t, boundary, strings.TrimSpace(boundary))
		}
	})
}
