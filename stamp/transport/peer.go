package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/stamp/node"
	"antipode/stamp/transport/wire"
)

// peerLink is the way to one peer:
//
//	away ──open: connect, stream, headers──> stands ──pump until an error──> away
//
// gRPC waits between attempts to connect, run between streams; both times grow from
// RetryMin to RetryMax, with jitter.
type peerLink struct {
	t     *Transport
	id    geo.NodeID
	queue *queue
	// messages, chunks and calls are separate connections: see doc.go.
	messages, chunks, calls *grpc.ClientConn

	// run only
	rng *rand.Rand
}

func newPeerLink(t *Transport, id geo.NodeID, address string, rng *rand.Rand) (*peerLink, error) {
	p := &peerLink{t: t, id: id, queue: newQueue(t.o.QueueBytesMax, t.o.QueueMessagesMax), rng: rng}
	for _, conn := range []**grpc.ClientConn{&p.messages, &p.chunks, &p.calls} {
		var err error
		if *conn, err = t.dial(address, t.o.Keyring.ClientConfig(id)); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

// dial returns a connection that is made when it is first used.
func (t *Transport) dial(address string, config *tls.Config) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(creds{credentials.NewTLS(config), t.refusals}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(newCodec()), grpc.MaxCallRecvMsgSize(frameBytesMax)),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: t.o.KeepaliveTime, Timeout: t.o.KeepaliveTimeout, PermitWithoutStream: true,
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: t.o.RetryMin, Multiplier: 2, Jitter: 0.25, MaxDelay: t.o.RetryMax},
			MinConnectTimeout: t.o.OpenTimeout,
		}),
	)
}

func (p *peerLink) close() error {
	var errs []error
	for _, conn := range []*grpc.ClientConn{p.messages, p.chunks, p.calls} {
		if conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	return errors.Join(errs...)
}

// run keeps a stream to the peer until ctx ends.
func (p *peerLink) run(ctx context.Context) {
	logger := p.t.o.Logger.With("peer", p.id, "address", p.t.o.Peers[p.id])
	pause, logged := p.t.o.RetryMin, ""
	for {
		err := p.attempt(ctx, func() {
			logger.Info("peer reached")
			pause, logged = p.t.o.RetryMin, ""
		})
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errAttached) {
			continue
		}
		// A peer that stays away for one reason is named once.
		if text := err.Error(); text != logged {
			logged = text
			logger.Warn("peer not reachable; messages to it are dropped", "error", err)
		}
		if errors.Is(err, errTooLate) {
			continue // gRPC waits between its attempts to connect.
		}
		timer := time.NewTimer(pause - time.Duration(p.rng.Int64N(int64(pause)/2+1)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = min(2*pause, p.t.o.RetryMax)
	}
}

var (
	errTooLate = errors.New("no answer in time")
	// errAttached: what the headers of the stream say is of before a member was attached.
	errAttached = errors.New("a node was attached here")
)

// attempt opens a stream, calls reached, and sends until it breaks. All it started has
// ended when it returns.
func (p *peerLink) attempt(ctx context.Context, reached func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	here, next := p.t.attachmentNow()
	stream, err := p.open(ctx, cancel, here)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		err := stream.RecvMsg(&wire.Empty{})
		cancel() // Frees a SendMsg that waits for the peer's window.
		ended <- err
	}()
	p.chunks.ResetConnectBackoff()
	p.calls.ResetConnectBackoff()
	p.queue.setOpen(true)
	reached()
	attached := p.pump(ctx, stream, next)
	p.queue.setOpen(false)
	cancel()
	err = <-ended
	if attached {
		return errAttached
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errors.New("the peer ended the stream")
	}
	return err
}

// open connects if need be, and opens a stream that the peer has answered. cancel must
// be that of ctx: it ends what takes longer than OpenTimeout. The stream is of the member attached here.
func (p *peerLink) open(ctx context.Context, cancel context.CancelFunc, here *attachment) (grpc.ClientStream, error) {
	timer := time.AfterFunc(p.t.o.OpenTimeout, cancel)
	var header metadata.MD
	ctx = metadata.NewOutgoingContext(ctx, here.stampPairs())
	stream, err := wire.NewStampClient(p.messages).Messages(ctx, grpc.WaitForReady(true))
	if err == nil {
		header, err = stream.Header()
	}
	if err == nil && len(header.Get(nodeHeader)) == 0 {
		// Refused, with an answer that says why.
		if err = stream.RecvMsg(&wire.Empty{}); err == nil {
			err = errors.New("the peer ended the stream")
		}
	}
	if err == nil {
		err = here.meet(p.id, header)
	}
	if !timer.Stop() {
		return nil, fmt.Errorf("%w (%s): %w", errTooLate, p.t.o.OpenTimeout, err)
	}
	return stream, err
}

// pump sends what is queued until ctx, which is the stream's, ends, or another member is attached: next is closed.
func (p *peerLink) pump(ctx context.Context, stream grpc.ClientStream, next <-chan struct{}) (attached bool) {
	var b batch
	for {
		select {
		case <-ctx.Done():
			return false
		case <-next:
			return true
		case <-p.queue.filled:
		}
		for {
			select {
			case <-next:
				return true
			default:
			}
			b.envelopes = p.queue.take(b.envelopes[:0], frameBytes)
			if len(b.envelopes) == 0 {
				break
			}
			for i, e := range b.envelopes {
				if e.Report != nil {
					b.envelopes[i] = node.Envelope{Range: e.Range, Message: reportOnWire(p.t.o.Self, e.Report)}
				}
			}
			if p.tooLong(b.envelopes) {
				continue
			}
			if err := stream.SendMsg(&b); err != nil {
				return false // The stream's end shows why.
			}
			clear(b.envelopes)
		}
	}
}

// tooLong reports, in the log too, a message that no peer would take: it would break
// the stream, again and again.
func (p *peerLink) tooLong(envelopes []node.Envelope) bool {
	// Several are of frameBytes together.
	if len(envelopes) > 1 || envelopes[0].Bytes() < messageBytesMax/2 {
		return false
	}
	m := envelopes[0].Message
	size := proto.Size(m)
	if size <= messageBytesMax {
		return false
	}
	p.t.o.Logger.Error("message is too long for the transport and dropped", "peer", p.id, "range", envelopes[0].Range,
		"type", m.GetType(), "bytes", size, "bytes_max", messageBytesMax)
	return true
}
