package routing

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"

	"antipode/geo"
)

// hopScheme begins the address of a front end that is reached over TLS at the listener of
// HopHandler.
const hopScheme = "hop"

// HopAddress is the address of a service at the hop listener of a node, host:port, for
// endpoints and Leader. It needs WithTLS.
func HopAddress(hostPort string, s geo.Service) string {
	return hopScheme + "://" + hostPort + "/" + s.String()
}

// WithTLS makes addresses of HopAddress reachable: config presents this front end's
// certificate and verifies the node's. It is called before the first use.
func (f *Forwarder) WithTLS(config *tls.Config) *Forwarder {
	t := f.transport.Clone()
	dial := t.DialContext
	t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialMax)
		defer cancel()
		plain, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(plain, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = plain.Close()
			// As an error of dialling: no byte of a request was sent.
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		return conn, nil
	}
	f.hops = t
	return f
}

// WithSecret makes the forwarder present the secret that front ends of the same process take
// as a proof (api.Options.HopSecret). It is called before the first use.
func (f *Forwarder) WithSecret(secret string) *Forwarder {
	f.secret = secret
	return f
}

// destination is a front end's address taken apart.
type destination struct {
	scheme, host string
	// service is named to a hop listener; empty elsewhere.
	service string
}

func parseAddress(addr string) destination {
	scheme, rest, named := strings.Cut(addr, "://")
	if !named {
		return destination{scheme: "http", host: addr}
	}
	if scheme != hopScheme {
		return destination{scheme: scheme, host: rest}
	}
	host, service, _ := strings.Cut(rest, "/")
	return destination{scheme: "https", host: host, service: service}
}

// url has the parts of a request's URL that the destination decides.
func (d destination) url() *url.URL { return &url.URL{Scheme: d.scheme, Host: d.host} }

// via returns the transport for a destination.
func (f *Forwarder) via(d destination) *http.Transport {
	if d.service != "" && f.hops != nil {
		return f.hops
	}
	return f.transport
}

// introduce sends the client's address and scheme to a front end that believes them.
func (f *Forwarder) introduce(h http.Header, d destination) {
	h.Del(secretHeader)
	h.Del(serviceHeader)
	switch {
	case d.service != "":
		h.Set(serviceHeader, d.service)
	case f.secret != "":
		h.Set(secretHeader, f.secret)
	default:
		h.Del(clientAddrHeader)
		h.Del(clientProtoHeader)
	}
}
