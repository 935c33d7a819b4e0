package tables

import (
	"strings"
	"testing"
)

// The answer of 13.5, byte for byte (A.72).
func TestBatchAnswer(t *testing.T) {
	t.Parallel()
	a := NewBatchAnswer("1-2")
	a.OpenSet()
	a.Part(204, "1", []Field{{"Cache-Control", "no-cache"}, {"ETag", "x"}}, nil)
	a.Part(201, "", []Field{{"Content-Type", "application/json"}}, []byte(`{"a":1}`))
	a.CloseSet()
	a.Part(404, "", nil, []byte(`{}`))
	want := `--batchresponse_1-2
Content-Type: multipart/mixed; boundary=changesetresponse_1-2

--changesetresponse_1-2
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 204 No Content
Content-ID: 1
Cache-Control: no-cache
ETag: x


--changesetresponse_1-2
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 201 Created
Content-Type: application/json

{"a":1}
--changesetresponse_1-2--
--batchresponse_1-2
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 404 Not Found

{}
--batchresponse_1-2--
`
	if got := string(a.Close()); got != strings.ReplaceAll(want, "\n", "\r\n") {
		t.Errorf("%s", got)
	}
	if got := a.ContentType(); got != "multipart/mixed; boundary=batchresponse_1-2" {
		t.Errorf("%s", got)
	}
}
