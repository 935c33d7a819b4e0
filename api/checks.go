package api

import (
	"net/http"
	"slices"
	"strings"

	"antipode/api/accounts"
	"antipode/api/protocol"
	"antipode/api/routing"
	"antipode/geo"
	"antipode/services/storageerr"
)

// allowOrigin adds the CORS headers to an answer of this front end, also to an error: whatever becomes known before the
// account is (a wrong version, an overload) has none. It is called when the header is written. Preflights set their own.
func (x *exchange) allowOrigin() {
	if x.req.Version >= protocol.Version20130815 && x.r.Method != http.MethodOptions {
		accounts.AllowOrigin(x.w.Header(), x.r, x.rules)
	}
}

// trimHeader drops the white space at the ends of values. net/http leaves it where a folded line ends in it, and no
// signature covers it.
func trimHeader(h http.Header) {
	for name, values := range h {
		for i, value := range values {
			if trimmed := strings.Trim(value, " \t"); trimmed != value {
				h[name] = slices.Clone(h[name]) // The array may be that of other names, too.
				h[name][i] = trimmed
			}
		}
	}
}

// addressed refuses a request that was sent to a name of somebody else: a web page whose name its owner lets lead to this
// port (DNS rebinding) is of one origin with it, and could sign with a key that is known, as the development key is. A
// name of a zone belongs to the deployment. What another front end passes on was sent to that one.
func (x *exchange) addressed() error {
	if x.passed || !x.req.PathStyle || x.hosts.Allow(x.r) {
		return nil
	}
	return storageerr.InvalidHeaderValue.Saying("The request was sent to a host that is not a name of this port. If it is one, "+
		"name it in hosts of node.yaml or gateway.yaml, or by --data-host of antipode dev.").With("HeaderName", "Host", "HeaderValue", x.r.Host)
}

// strange reports whether the request claims that another front end has passed it on, and neither proves it nor has a
// right signature: strangers do not learn where an account is served. A gateway without a certificate has no proof.
func (x *exchange) strange() bool {
	return !x.passed && routing.Forwarded(x.r) && x.signed(x.req.Account) != nil
}

// checkLength refuses a PUT or a POST that says nothing about its body: one of blobs must
// say how long it is, the others may send it in chunks (protocol/blob.md 2.4, protocol/queue.md 3,
// protocol/table.md 8).
func checkLength(r *http.Request, s geo.Service) error {
	put := r.Method == http.MethodPut
	if !put && r.Method != http.MethodPost || r.ContentLength > 0 || r.Header.Get("Content-Length") != "" {
		return nil
	}
	if r.ContentLength < 0 && (s != geo.Blob || !put) {
		return nil
	}
	return storageerr.MissingContentLength
}
