package api

import (
	"crypto/subtle"
	"net/http"
	"net/netip"

	"antipode/api/protocol"
	"antipode/geo"
)

// Headers by which a front end tells the next one who the client is. They are believed from
// front ends of this deployment alone, which prove that they are: with a certificate, on the
// listener of HopHandler; or, where all of them are one process, with the process's secret.
// What anybody else sends under these names is replaced when a request is taken up
// (Server.client), so that from then on the first two hold what is known.
const (
	clientAddrHeader  = "X-Antipode-Client-Addr"
	clientProtoHeader = "X-Antipode-Client-Proto"
	// secretHeader has the secret of Options.HopSecret.
	secretHeader = "X-Antipode-Hop-Secret"
	// serviceHeader names the service at the listener of HopHandler, which has all three.
	serviceHeader = "X-Antipode-Service"
)

// client finds who sent a request, and how: over http or https. peer says that it came over a
// connection of another front end of the deployment.
func (s *Server) client(r *http.Request, peer bool) (addr netip.AddrPort, scheme string) {
	h := r.Header
	secret := h.Get(secretHeader)
	h.Del(secretHeader)
	h.Del(serviceHeader)
	hop := peer || s.o.HopSecret != "" && subtle.ConstantTimeCompare([]byte(secret), []byte(s.o.HopSecret)) == 1
	if hop {
		told, err := netip.ParseAddrPort(h.Get(clientAddrHeader))
		scheme = h.Get(clientProtoHeader)
		if err == nil && (scheme == "http" || scheme == "https") {
			return told, scheme
		}
	}
	scheme = "http"
	if r.TLS != nil && !peer {
		scheme = "https"
	}
	addr, _ = netip.ParseAddrPort(r.RemoteAddr) // It has this form on every socket.
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	h.Set(clientAddrHeader, addr.String())
	h.Set(clientProtoHeader, scheme)
	return addr, scheme
}

// HopHandler returns the handler of a listener for the deployment's other front ends, which
// name the service. The listener's TLS configuration must verify their certificates
// (identity.Keyring.HopServerConfig): who gets through is believed who the client is. A
// request without a certificate is refused.
func (s *Server) HopHandler() http.Handler {
	handlers := map[string]http.Handler{}
	for _, service := range geo.Services {
		handlers[service.String()] = s.handler(service, true)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, ok := handlers[r.Header.Get(serviceHeader)]
		switch {
		case r.TLS == nil || len(r.TLS.PeerCertificates) == 0:
			http.Error(w, "this listener is for front ends with a certificate of the deployment", http.StatusForbidden)
		case !ok:
			http.Error(w, "the header "+serviceHeader+" must name a service", http.StatusBadRequest)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// logged is what a log says of the request.
func logged(r *protocol.Request) []any {
	return []any{"request_id", r.ID, "client", r.ClientAddr.String(), "scheme", r.Scheme}
}
