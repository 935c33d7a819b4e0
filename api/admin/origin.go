package admin

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	wire "antipode/client/admin"
)

// A web page of any site can send requests to a port that the user's browser reaches. Two checks keep it out, on every
// route: Host (package hosts), and Origin and Sec-Fetch-Site, which a browser adds to what pages send: only pages that
// this port served itself may send anything, be it a GET.

// sameOrigin reports whether no page of another origin sent the request.
func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none": // None: typed in by the user.
	default:
		return false
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	return true
}

// guard refuses what a page of another site sends.
func (p *port) guard(r *http.Request) error {
	if !p.hosts.Allow(r) {
		return &wire.Error{Status: http.StatusForbidden, Code: codeHost, Message: Sentence("serve", route(r), fmt.Sprintf(
			"it was sent to the host %q, which is not a name of this port: use its address, or add the name to the configuration", r.Host))}
	}
	if !sameOrigin(r) {
		return &wire.Error{Status: http.StatusForbidden, Code: codeCrossOrigin, Message: Sentence(
			"serve", route(r), "a page of another origin sent it: use antipodectl")}
	}
	return nil
}
