package protocol

import (
	"net/http"
	"strings"

	"antipode/api/wire"
)

// CheckRepeated refuses a request that sends one of the protocol's headers, or the type, a
// hash or the range of a body, more than once. Signatures join the values with commas (protocol/auth.md 7),
// and no such header takes a list: to act on one of them would be a choice that the
// client did not make. Metadata has other rules, and an x-ms-client-request-id
// that came twice is just not echoed.
func CheckRepeated(h http.Header) error {
	first := ""
	for name, values := range h {
		if len(values) < 2 || first != "" && name > first {
			continue
		}
		own := strings.HasPrefix(name, "X-Ms-") && !strings.HasPrefix(name, "X-Ms-Meta-") && name != headerClientRequestID
		if own || name == "Content-Md5" || name == "Content-Type" || name == "Range" {
			first = name
		}
	}
	if first == "" {
		return nil
	}
	return wire.BadHeader(strings.ToLower(first), h[first]...)
}
