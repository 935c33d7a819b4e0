package protocol

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/storageerr"
)

// BodyFormat is the shape of an error body. Which one a table request gets
// follows the format its answer would have had (protocol/table.md 2.4 and 8.1).
type BodyFormat uint8

// The formats.
const (
	// BodyXML is <Error> of the blob and queue services.
	BodyXML BodyFormat = iota
	// BodyTableJSON is {"odata.error":…} of table and entity operations.
	BodyTableJSON
	// BodyTableXML is <m:error> of the table service's XML operations.
	BodyTableXML
	// BodyTableAtom is <error> for table clients before JSON. They read it without
	// a prefix, and its message has no request id.
	BodyTableAtom
)

// Challenge is the WWW-Authenticate value of every 401. It names no login
// service, since this server takes no bearer tokens; clients only need its form.
const Challenge = "Bearer authorization_uri=https://login.antipode.invalid/common/oauth2/authorize " +
	"resource_id=https://storage.azure.com"

// version20250705 is the first one whose answers have the source of a copy in their header (protocol/blob.md 2.4).
const version20250705 Version = "2025-07-05"

const (
	contentTypeXML  = "application/xml"
	contentTypeJSON = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
	metadataSpace   = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
)

// ErrorOf is the one rule by which an error becomes an error of the protocol: OperationTimedOut
// if the time of the request is over or its client has left, else the *storageerr.Error that err
// wraps or stands for. If there is none, ours is false and e is InternalError: the caller logs
// err.
func ErrorOf(err error) (e *storageerr.Error, ours bool) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &storageerr.Error{Row: storageerr.OperationTimedOut}, true
	}
	if e, ours = storageerr.Of(err); ours {
		return e, true
	}
	return &storageerr.Error{Row: storageerr.InternalError}, false
}

// BodyError is the error of a request whose body could not be read to its end, from the
// error of its reader. A known one is that of a slow sender while memory is short.
func BodyError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return storageerr.OperationTimedOut
	}
	if _, known := storageerr.Of(err); known {
		return err
	}
	return storageerr.InvalidInput // The client broke off: fewer bytes than it announced.
}

// WriteError answers a request with an error and ends the answer. The error
// decides the status, x-ms-error-code and body by ErrorOf; one that is not ours shows
// nothing of its text. Now is printed in the body.
//
// Headers that describe a body the handler meant to send are removed; ETag and
// Last-Modified stay for a 304. HEAD and 304 have no body. A 503 gets
// Retry-After: 1 and 401 gets Challenge unless the caller has set others; a
// caller's JSON Content-Type is kept, for its metadata level.
func WriteError(w http.ResponseWriter, r *http.Request, kind BodyFormat, requestID string, now time.Time, err error) {
	e, _ := ErrorOf(err)
	h := w.Header()
	contentType := h.Get("Content-Type")
	for _, name := range [...]string{
		"Content-Type", "Content-Length", "Content-Encoding", "Content-Language",
		"Content-Md5", "Content-Range", "Content-Disposition", "Accept-Ranges",
	} {
		delete(h, name)
	}
	h[headerErrorCode] = []string{e.Code}
	h[headerRequestID] = []string{requestID}
	if e.Status == http.StatusServiceUnavailable && h["Retry-After"] == nil {
		h["Retry-After"] = []string{"1"}
	}
	if e.Status == http.StatusUnauthorized && h["Www-Authenticate"] == nil {
		h["Www-Authenticate"] = []string{Challenge}
	}
	if e.Code == storageerr.CannotVerifyCopySource.Code && Version(h.Get(HeaderVersion)) >= version20250705 {
		for _, d := range e.Details {
			switch d.Name {
			case "CopySourceStatusCode":
				h["X-Ms-Copy-Source-Status-Code"] = []string{d.Value}
			case "CopySourceErrorCode":
				h["X-Ms-Copy-Source-Error-Code"] = []string{d.Value}
			}
		}
	}
	if r.Method == http.MethodHead || e.Status == http.StatusNotModified {
		w.WriteHeader(e.Status)
		return
	}
	if kind == BodyTableJSON || kind == BodyTableAtom && Version(h.Get(HeaderVersion)) >= Version20130815 {
		h["X-Content-Type-Options"] = []string{"nosniff"} // On every OData answer since then (protocol/table.md 3).
	}
	body := appendErrorBody(make([]byte, 0, 512), kind, requestID, now, e)
	switch {
	case kind != BodyTableJSON:
		contentType = contentTypeXML
	case !strings.HasPrefix(contentType, "application/json"):
		contentType = contentTypeJSON
	}
	h["Content-Type"] = []string{contentType}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(e.Status)
	// The client is gone when this fails, and nobody is left to answer.
	_, _ = w.Write(body)
}

// AppendTableError appends the body of a table error that does not stand in a separate
// answer: that of an operation of a batch.
func AppendTableError(b []byte, kind BodyFormat, requestID string, now time.Time, e *storageerr.Error) []byte {
	return appendErrorBody(b, kind, requestID, now, e)
}

func appendErrorBody(b []byte, kind BodyFormat, requestID string, now time.Time, e *storageerr.Error) []byte {
	escape := wire.AppendXML
	var codeEnd, end string
	switch kind {
	case BodyTableJSON:
		escape = appendJSON
		b = append(b, `{"odata.error":{"code":"`...)
		codeEnd, end = `","message":{"lang":"en-US","value":"`, `"}}}`
	case BodyTableXML:
		b = append(b, `<?xml version="1.0" encoding="utf-8"?><m:error xmlns:m="`+metadataSpace+`"><m:code>`...)
		codeEnd, end = `</m:code><m:message xml:lang="en-US">`, `</m:message></m:error>`
	case BodyTableAtom:
		b = append(b, `<?xml version="1.0" encoding="utf-8" standalone="yes"?><error xmlns="`+metadataSpace+`"><code>`...)
		codeEnd, end = `</code><message xml:lang="en-US">`, `</message></error>`
	default:
		b = append(b, `<?xml version="1.0" encoding="utf-8"?><Error><Code>`...)
		codeEnd, end = `</Code><Message>`, `</Message>`
	}
	b = escape(b, e.Code)
	b = append(b, codeEnd...)
	b = escape(b, e.Message)
	if kind != BodyTableAtom {
		b = escape(b, "\nRequestId:")
		b = escape(b, requestID)
		b = escape(b, "\nTime:")
		ts := geo.TimestampOf(now)
		b = wire.AppendISOPadded(b, ts)
	}
	b = append(b, end...)
	if kind != BodyXML {
		return b
	}
	for _, d := range e.Details {
		b = wire.AppendElement(b, d.Name, d.Value)
	}
	return append(b, "</Error>"...)
}

// appendJSON appends s as the inside of a JSON string.
func appendJSON(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	for _, c := range s {
		switch {
		case c == '"', c == '\\':
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, `\n`...)
		case c < ' ', c == 0x7f:
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		case c == 0x2028:
			b = append(b, `\u2028`...)
		case c == 0x2029:
			b = append(b, `\u2029`...)
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return b
}
