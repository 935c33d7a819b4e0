package protocol

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"antipode/services/storageerr"
)

var errorTime = time.Date(2026, 2, 3, 16, 46, 54, 604068500, time.UTC)

// A copy shows what its source answered, from 2025-07-05 on in the header too; no other error has such a header.
func TestErrorOfCopySource(t *testing.T) {
	w := httptest.NewRecorder()
	WriteError(w, httptest.NewRequest("PUT", "/", nil), BodyXML, "id-1", errorTime, storageerr.CopySourceRefused(503, "ServerBusy", ""))
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	refused := storageerr.CopySourceRefused(404, "BlobNotFound", "The specified blob does not exist.")
	for _, c := range []struct {
		version Version
		err     error
		status  string
		code    string
	}{
		{"2025-07-05", refused, "404", "BlobNotFound"},
		{Newest, storageerr.CopySourceRefused(500, "", ""), "500", ""},
		{"2025-05-05", refused, "", ""},
		{Newest, storageerr.BlobNotFound.With("CopySourceStatusCode", "404"), "", ""},
	} {
		w := httptest.NewRecorder()
		w.Header().Set(HeaderVersion, string(c.version))
		WriteError(w, httptest.NewRequest("PUT", "/", nil), BodyXML, "id-1", errorTime, c.err)
		if got := w.Header().Get("x-ms-copy-source-status-code"); got != c.status {
			t.Errorf("%s %v: status %q", c.version, c.err, got)
		}
		if got := w.Header().Get("x-ms-copy-source-error-code"); got != c.code {
			t.Errorf("%s %v: code %q", c.version, c.err, got)
		}
		const elements = "<CopySourceStatusCode>404</CopySourceStatusCode><CopySourceErrorCode>BlobNotFound</CopySourceErrorCode>" +
			"<CopySourceErrorMessage>The specified blob does not exist.</CopySourceErrorMessage></Error>"
		if c.code != "" && !strings.HasSuffix(w.Body.String(), elements) {
			t.Errorf("body %s", w.Body)
		}
	}
}

// Each format has the published body, with headers to match.
func TestWriteErrorBodies(t *testing.T) {
	tests := []struct {
		name        string
		kind        BodyFormat
		err         error
		status      int
		contentType string
		body        string
	}{
		{
			"xml", BodyXML, storageerr.OutOfRangeQueryParam.With("QueryParameterName", "max<results", "QueryParameterValue", "0&\r\x01"),
			400, "application/xml",
			`<?xml version="1.0" encoding="utf-8"?><Error><Code>OutOfRangeQueryParameterValue</Code><Message>One of the query parameters specified in the request URI is outside the permissible range.` +
				"\nRequestId:id-1\nTime:2026-02-03T16:46:54.6040685Z</Message><QueryParameterName>max&lt;results</QueryParameterName><QueryParameterValue>0&amp;&#xD;\uFFFD</QueryParameterValue></Error>",
		},
		{
			"table json", BodyTableJSON, fmt.Errorf("insert: %w", storageerr.EntityAlreadyExists), 409,
			"application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
			`{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"The specified entity already exists.\nRequestId:id-1\nTime:2026-02-03T16:46:54.6040685Z"}}}`,
		},
		{
			"table xml", BodyTableXML, storageerr.TableNotFound, 404, "application/xml",
			`<?xml version="1.0" encoding="utf-8"?><m:error xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><m:code>TableNotFound</m:code><m:message xml:lang="en-US">The table specified does not exist.` +
				"\nRequestId:id-1\nTime:2026-02-03T16:46:54.6040685Z</m:message></m:error>",
		},
		{
			"table atom", BodyTableAtom, storageerr.TableNotFound, 404, "application/xml",
			`<?xml version="1.0" encoding="utf-8" standalone="yes"?><error xmlns="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><code>TableNotFound</code><message xml:lang="en-US">The table specified does not exist.</message></error>`,
		},
		{
			"not ours", BodyTableAtom, errors.New("disk /var/lib is full"), 500, "application/xml",
			`<?xml version="1.0" encoding="utf-8" standalone="yes"?><error xmlns="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><code>InternalError</code><message xml:lang="en-US">The server encountered an internal error. Please retry the request.</message></error>`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			w.Header().Set("Content-Type", "image/png")
			w.Header().Set("Content-Encoding", "gzip")
			WriteError(w, httptest.NewRequest("GET", "/", nil), tt.kind, "id-1", errorTime, tt.err)
			if w.Code != tt.status || w.Body.String() != tt.body {
				t.Errorf("%d\n got %s\nwant %s", w.Code, w.Body, tt.body)
			}
			h := w.Header()
			if h.Get("Content-Type") != tt.contentType || h.Get("Content-Encoding") != "" ||
				h.Get("Content-Length") != fmt.Sprint(len(tt.body)) ||
				h.Get("x-ms-request-id") != "id-1" || !strings.Contains(tt.body, h.Get("x-ms-error-code")) {
				t.Errorf("headers %v", h)
			}
		})
	}
}

// Every error of OData since 2013-08-15 forbids to guess its type, also one that no handler of
// tables gave: of a signature, say.
func TestErrorsOfTablesForbidSniffing(t *testing.T) {
	for _, tt := range []struct {
		kind    BodyFormat
		version Version
		want    string
	}{
		{BodyTableJSON, Newest, "nosniff"},
		{BodyTableJSON, "", "nosniff"},
		{BodyTableAtom, Version20130815, "nosniff"},
		{BodyTableAtom, Version20120212, ""},
		{BodyTableAtom, "", ""},
		{BodyTableXML, Newest, ""},
		{BodyXML, Newest, ""},
	} {
		w := httptest.NewRecorder()
		if tt.version != "" {
			w.Header().Set(HeaderVersion, string(tt.version))
		}
		WriteError(w, httptest.NewRequest("GET", "/", nil), tt.kind, "id-1", errorTime, storageerr.AuthenticationFailed)
		if got := w.Header().Get("X-Content-Type-Options"); got != tt.want {
			t.Errorf("format %d, version %q: %q, want %q", tt.kind, tt.version, got, tt.want)
		}
	}
}

// Some answers have no body, some have special headers.
func TestWriteErrorHeaders(t *testing.T) {
	write := func(method string, err error, set ...string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		for i := 0; i < len(set); i += 2 {
			w.Header().Set(set[i], set[i+1])
		}
		WriteError(w, httptest.NewRequest(method, "/", nil), BodyTableJSON, "id-1", errorTime, err)
		return w
	}
	head := write("HEAD", storageerr.BlobNotFound, "Content-Length", "7", "Content-Type", "text/plain")
	if head.Code != 404 || head.Body.Len() != 0 || head.Header().Get("x-ms-error-code") != "BlobNotFound" ||
		head.Header().Get("Content-Length") != "" || head.Header().Get("Content-Type") != "" {
		t.Errorf("HEAD: %d %v %s", head.Code, head.Header(), head.Body)
	}
	unchanged := write("GET", storageerr.NotModified, "ETag", `"x"`)
	if unchanged.Code != 304 || unchanged.Body.Len() != 0 || unchanged.Header().Get("ETag") != `"x"` ||
		unchanged.Header().Get("x-ms-error-code") != "ConditionNotMet" {
		t.Errorf("304: %d %v %s", unchanged.Code, unchanged.Header(), unchanged.Body)
	}
	if got := write("GET", storageerr.ServerBusy).Header().Get("Retry-After"); got != "1" {
		t.Errorf("ServerBusy: Retry-After %q", got)
	}
	if got := write("GET", storageerr.ServerBusy, "Retry-After", "30").Header().Get("Retry-After"); got != "30" {
		t.Errorf("ServerBusy: the caller's Retry-After became %q", got)
	}
	if got := write("GET", storageerr.NoAuthentication).Header().Get("WWW-Authenticate"); got != Challenge {
		t.Errorf("401: WWW-Authenticate %q", got)
	}
	const level = "application/json;odata=nometadata"
	if got := write("GET", storageerr.TableNotFound, "Content-Type", level).Header().Get("Content-Type"); got != level {
		t.Errorf("the caller's level became %q", got)
	}
}

// Whatever the text, the bodies stay well-formed and say it; what the format
// cannot carry is replaced.
func FuzzErrorBody(f *testing.F) {
	for _, s := range []string{"plain", "<&>\"'", "\x00\x1f\r\n\t", "\xff\xfe", "]]>", "\u2028\ufffe\U0001f600", `\"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := storageerr.InvalidInput.Saying(s).With("Reason", s)
		for _, kind := range []BodyFormat{BodyXML, BodyTableXML, BodyTableAtom} {
			var body struct {
				Reason string
			}
			if err := xml.Unmarshal(appendErrorBody(nil, kind, s, errorTime, e), &body); err != nil {
				t.Fatalf("format %d of %q: %v", kind, s, err)
			}
			if clean := strings.ToValidUTF8(s, "\uFFFD"); kind == BodyXML && !strings.ContainsFunc(s, notXML) && body.Reason != clean && !strings.Contains(clean, "\uFFFD") {
				t.Fatalf("%q became %q", s, body.Reason)
			}
		}
		var body struct {
			Error struct {
				Message struct{ Value string }
			} `json:"odata.error"`
		}
		if err := json.Unmarshal(appendErrorBody(nil, BodyTableJSON, "id", errorTime, e), &body); err != nil {
			t.Fatalf("JSON of %q: %v", s, err)
		}
		if got, _, _ := strings.Cut(body.Error.Message.Value, "\nRequestId:id"); !strings.Contains(s, "\nRequestId") && got != string([]rune(s)) {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

func notXML(c rune) bool {
	return c < ' ' && c != '\n' && c != '\t' && c != '\r' || c >= 0xfffe && c <= 0xffff
}
