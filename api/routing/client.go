package routing

import (
	"crypto/subtle"
	"net/http"
	"net/netip"

	"antipode/geo"
)

// Headers by which a front end names the client to the next one. They are believed from
// front ends of this deployment alone, which prove that they are: with a certificate, on the
// listener of Listener; or, if all of them are one process, with the process's secret. What
// anybody else sends under these names is replaced when a request is taken up (Client), so
// that from then on the first two hold what is known.
const (
	clientAddrHeader  = "X-Antipode-Client-Addr"
	clientProtoHeader = "X-Antipode-Client-Proto"
	// secretHeader has the secret of Forwarder.WithSecret.
	secretHeader = "X-Antipode-Hop-Secret"
	// serviceHeader names the service at the listener of Listener, which has all three.
	serviceHeader = "X-Antipode-Service"
)

// Client finds who sent a request, and how: over http or https; and whether another front end of the deployment has
// passed it on, which was proven. Peer reports that it came over a connection of one. A request with the secret, which
// may be empty, came from one of this process.
func Client(r *http.Request, peer bool, secret string) (addr netip.AddrPort, scheme string, proven bool) {
	h := r.Header
	sent := h.Get(secretHeader)
	h.Del(secretHeader)
	h.Del(serviceHeader)
	proven = peer || secret != "" && subtle.ConstantTimeCompare([]byte(sent), []byte(secret)) == 1
	if proven {
		addr, err := netip.ParseAddrPort(h.Get(clientAddrHeader))
		scheme = h.Get(clientProtoHeader)
		if err == nil && (scheme == "http" || scheme == "https") {
			return addr, scheme, proven
		}
	}
	scheme = "http"
	if r.TLS != nil && !peer {
		scheme = "https"
	}
	addr, _ = netip.ParseAddrPort(r.RemoteAddr) // It has this form on every socket.
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	Inside(h, addr, scheme)
	return addr, scheme, proven
}

// Inside writes into the header of a request that this process makes by itself who it is for, in place of what the header
// has: see Client.
func Inside(h http.Header, addr netip.AddrPort, scheme string) {
	h.Set(clientAddrHeader, addr.String())
	h.Set(clientProtoHeader, scheme)
}

// ofGateways are the headers of a request that only a gateway sends.
func ofGateways() [3]string { return [...]string{gatewayHeader, gatewayAskHeader, epochHeader} }

// ForgetGateway makes a request one of a client that claims to be one of a gateway.
func ForgetGateway(r *http.Request) {
	for _, name := range ofGateways() {
		r.Header.Del(name)
	}
}

// Listener returns the handler of a listener for the deployment's other front ends, which
// name the service that serve returns the handler of. The listener's TLS configuration must
// verify their certificates (identity.Keyring.HopServerConfig): a peer that gets through is
// believed who its client is. A request without a certificate is refused.
func Listener(serve func(geo.Service) http.Handler) http.Handler {
	handlers := map[string]http.Handler{}
	for _, service := range geo.Services {
		handlers[service.String()] = serve(service)
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
