package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/stamp/transport/wire"
)

// refusalEvery is how often the log repeats that one host is refused.
const refusalEvery = time.Minute

// refusalHosts bounds the hosts that are remembered; while there are more, they are
// refused without a line.
const refusalHosts = 256

// refusals logs handshakes that failed, once per host and span.
type refusals struct {
	clock  clock.Clock
	logger *slog.Logger

	mu   sync.Mutex
	last map[string]time.Duration
}

func newRefusals(c clock.Clock, logger *slog.Logger) *refusals {
	return &refusals{clock: c, logger: logger, last: map[string]time.Duration{}}
}

// log writes a line about key, unless there was one just now.
func (r *refusals) log(key, message string, args ...any) {
	now := r.clock.Mono()
	r.mu.Lock()
	for k, at := range r.last {
		if now-at >= refusalEvery {
			delete(r.last, k)
		}
	}
	_, again := r.last[key]
	silent := again || len(r.last) >= refusalHosts
	if !silent {
		r.last[key] = now
	}
	r.mu.Unlock()
	if !silent {
		r.logger.Error(message, args...)
	}
}

// creds is TLS that says in the log whom it refused and why.
type creds struct {
	credentials.TransportCredentials
	refusals *refusals
}

// ServerHandshake implements credentials.TransportCredentials.
func (c creds) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	remote := conn.RemoteAddr().String()
	out, info, err := c.TransportCredentials.ServerHandshake(conn)
	host, _, _ := net.SplitHostPort(remote)
	var alert *net.OpError
	switch {
	case err == nil || errors.Is(err, io.EOF): // Who hangs up without a word checks the port, or gave up.
	case errors.As(err, &alert) && alert.Op == "remote error":
		c.refusals.log("by "+host, "the other end refuses this node's certificate; its log says why", "from", remote, "error", err)
	default:
		c.refusals.log("from "+host, "connection refused: not a peer of this node", "from", remote, "error", err)
	}
	return out, info, err
}

// ClientHandshake implements credentials.TransportCredentials.
func (c creds) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	remote := conn.RemoteAddr().String()
	out, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if errors.Is(err, identity.ErrRefused) {
		c.refusals.log("to "+remote, "peer refused: another answers at its address", "to", remote, "error", err)
	}
	return out, info, err
}

// Clone implements credentials.TransportCredentials.
func (c creds) Clone() credentials.TransportCredentials {
	return creds{c.TransportCredentials.Clone(), c.refusals}
}

// caller is the node at the other end of a call, by its certificate.
func caller(ctx context.Context) (identity.Identity, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return identity.Identity{}, identity.ErrName
	}
	return named(p.AuthInfo)
}

// named is the node that a connection's certificate names.
func named(auth credentials.AuthInfo) (identity.Identity, error) {
	info, ok := auth.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return identity.Identity{}, identity.ErrName
	}
	return identity.Of(info.State.PeerCertificates[0])
}

// admit lets nodes of the own stamp call all but CallPair, and those of the paired
// location that alone.
func (t *Transport) admit(ctx context.Context, method string) error {
	from, err := caller(ctx)
	if err != nil {
		return status.Error(codes.Unauthenticated, err.Error())
	}
	if ofPair := from.Location != t.o.Keyring.Self().Location; ofPair != (method == wire.Stamp_CallPair_FullMethodName) {
		t.refusals.log("call of "+from.String(), "call refused: not for a node of that location", "from", from, "method", method)
		return status.Error(codes.PermissionDenied, fmt.Sprintf("%s may not call %s here", from, method))
	}
	return nil
}

func (t *Transport) admitUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := t.admit(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (t *Transport) admitStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := t.admit(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	return next(srv, stream)
}
