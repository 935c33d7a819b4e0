package blobs

import (
	"net/http"
	"strings"

	"antipode/api/protocol"
	"antipode/api/wire"
)

const headerLeaseID = "X-Ms-Lease-Id"

// What answers show of a lease: nothing has one yet.
const (
	leaseStatus = "unlocked"
	leaseState  = "available"
)

// parseLeaseSent reports whether a request names a lease. It is InvalidHeaderValue for
// what no lease is called (protocol/blob.md 17.1).
func parseLeaseSent(h http.Header) (bool, error) {
	id := h.Get(headerLeaseID)
	if id != "" && !isGUID(id) {
		return false, badHeader(headerLeaseID, id)
	}
	return id != "", nil
}

// leaseElements are the lease headers in a listing (protocol/blob.md 17.2).
func leaseElements(b []byte, v protocol.Version) []byte {
	if v < protocol.Version20120212 {
		return b
	}
	return wire.AppendElement(wire.AppendElement(b, "LeaseStatus", leaseStatus), "LeaseState", leaseState)
}

// isGUID reports whether text is a GUID in a usual form: 32 hexadecimal digits, or
// those with hyphens as 8-4-4-4-12, which may stand in braces or brackets.
func isGUID(text string) bool {
	for _, pair := range [...]string{"{}", "()", "[]"} {
		if inner, opened := strings.CutPrefix(text, pair[:1]); opened {
			inner, closed := strings.CutSuffix(inner, pair[1:])
			return closed && isGroupedGUID(inner)
		}
	}
	return isGroupedGUID(text) || len(text) == 32 && isHex(text)
}

func isGroupedGUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for _, at := range [...]int{8, 13, 18, 23} {
		if text[at] != '-' {
			return false
		}
	}
	digits := text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	return isHex(digits)
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}
