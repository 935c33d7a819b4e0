package protocol

import (
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"antipode/api/wire"
	"antipode/geo"
)

// Response headers in their canonical form; assigning to the map by these skips
// the canonicalization of http.Header.Set.
const (
	headerRequestID       = "X-Ms-Request-Id"
	headerClientRequestID = "X-Ms-Client-Request-Id"
	headerErrorCode       = "X-Ms-Error-Code"
)

// HeaderMayBeStale marks a read under the primary name of an account that may be older than a write which the other
// location has acknowledged: docs/DIVERGENCE.md.
const HeaderMayBeStale = "X-Antipode-May-Be-Stale"

// clientRequestIDMax is the longest x-ms-client-request-id that is echoed, in
// bytes.
const clientRequestIDMax = 1024

// RequestIDs makes x-ms-request-id values. They need to be distinct, not secret.
// It may be used concurrently.
type RequestIDs struct {
	mu  sync.Mutex
	rng *rand.ChaCha8 // Guarded by mu.
}

// NewRequestIDs returns a generator. The seed comes from the process: random in a
// server, fixed in a simulation. Two processes must not share one.
func NewRequestIDs(seed [32]byte) *RequestIDs {
	return &RequestIDs{rng: rand.NewChaCha8(seed)}
}

// Next returns a new id in GUID form, 36 characters.
func (g *RequestIDs) Next() string {
	g.mu.Lock()
	high, low := g.rng.Uint64(), g.rng.Uint64()
	g.mu.Unlock()

	var id [16]byte
	for i := range 8 {
		id[i] = byte(high >> (8 * i))
		id[8+i] = byte(low >> (8 * i))
	}
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	var text [36]byte
	hex.Encode(text[:8], id[:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:], id[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// SetCommonHeaders puts on an answer what every answer carries: x-ms-request-id,
// Date, Server, x-ms-version where the version is 2009-09-19 or later (none when
// the version is not known yet), and the client's request id where it may be
// echoed.
func SetCommonHeaders(h http.Header, r *http.Request, s geo.Service, v Version, requestID string, now time.Time) {
	// One array backs all the one-value slices; their capacity of one keeps a
	// later Add from writing into a neighbour.
	values := [...]string{requestID, wire.FormatHTTPTime(now), serverName(s, v), string(v), ""}
	h[headerRequestID] = values[0:1:1]
	h["Date"] = values[1:2:2]
	h["Server"] = values[2:3:3]
	if v >= Version20090919 {
		h[HeaderVersion] = values[3:4:4]
	}
	if id, ok := ClientRequestID(r.Header); ok {
		values[4] = id
		h[headerClientRequestID] = values[4:5:5]
	}
}

// ClientRequestID returns the x-ms-client-request-id to echo. ok is false when
// none was sent, or one that is too long or not printable ASCII: then it is left
// out, since clients fail a call whose echo differs.
func ClientRequestID(h http.Header) (id string, ok bool) {
	values := h[headerClientRequestID]
	if len(values) != 1 || values[0] == "" || len(values[0]) > clientRequestIDMax {
		return "", false
	}
	id = values[0]
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			return "", false
		}
	}
	return id, true
}

// serverName is the Server header. Some tools recognise the service by it. That of tables is
// another one in the versions of 2009 and before.
func serverName(s geo.Service, v Version) string {
	switch s {
	case geo.Blob:
		return "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0"
	case geo.Queue:
		return "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0"
	}
	if v < Version20110818 {
		return "Table Service Version 1.0 Microsoft-HTTPAPI/2.0"
	}
	return "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"
}
