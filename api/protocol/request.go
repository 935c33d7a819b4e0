package protocol

import (
	"net/http"
	"net/netip"
	"time"

	"antipode/services/catalog"
)

// Request is a request that was parsed, located and authorized: what a service's
// handler gets.
type Request struct {
	HTTP *http.Request
	Target
	// ClientAddr and Scheme are where the request came from and how, http or https, when it
	// reached the first front end of the deployment.
	ClientAddr netip.AddrPort
	Scheme     string

	// InBatch: it is a part of a batch of blobs, and has the version of that.
	InBatch bool

	Query   Query
	Version Version
	// ID is the x-ms-request-id of the answer.
	ID string
	// At is when the request was taken up; errors print it.
	At      time.Time
	Account *catalog.Account
	// Container is the outcome of looking up the container or table in the path, read together
	// with Account. Nil if it was not looked up; then the handler reads it when it needs it.
	Container *catalog.Found
	// Sources finds the blobs that the request copies from.
	Sources Sources
	// Access is what a shared access signature permits; nil if the request is signed with a key.
	Access *Access
}

// Header returns a request header's value, "" where it was not sent.
func (r *Request) Header(name string) string { return r.HTTP.Header.Get(name) }
