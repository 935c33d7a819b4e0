package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/node"
	"antipode/stamp/transport/wire"
)

// Transport is node.Transport for one node that is a separate process. Methods may
// be called concurrently.
type Transport struct {
	o        Options
	refusals *refusals
	peers    map[geo.NodeID]*peerLink
	server   *grpc.Server
	// chunksIn counts the bytes of chunks that are coming in.
	chunksIn *semaphore.Weighted
	// calls are those of the own stamp, pairCalls those of the paired location, stoppedCalls
	// those that are answered while no node is attached.
	calls, pairCalls, stoppedCalls *handlers
	pair                           *pair
	metrics                        *metrics

	cancel context.CancelFunc
	// running are the goroutines of peers and of the server.
	running   sync.WaitGroup
	closeOnce sync.Once
	closeErr  error

	mu       sync.Mutex
	attached *attachment
	// begun is closed, and made again, when a member is attached.
	begun chan struct{}
}

// attachment is one member's time at this transport.
type attachment struct {
	member node.Member
	// ended is closed when the member is detached.
	ended chan struct{}
}

// Open listens, and starts to connect to all peers. Peers that cannot be reached are
// tried for ever.
func Open(o Options) (*Transport, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	t := &Transport{
		o: o, refusals: newRefusals(o.Clock, o.Logger), peers: map[geo.NodeID]*peerLink{}, cancel: cancel,
		begun: make(chan struct{}), chunksIn: semaphore.NewWeighted(int64(o.ChunksInMax) * extent.ChunkBytesMax),
		calls: newHandlers(o.CallBytesInMax), pairCalls: newHandlers(o.CallBytesInMax), stoppedCalls: newHandlers(o.CallBytesInMax),
	}
	var err error
	if t.pair, err = newPair(t); err != nil {
		cancel()
		return nil, err
	}
	for id, address := range o.Peers {
		p, err := newPeerLink(t, id, address, rand.New(rand.NewPCG(o.Seed, uint64(id))))
		if err != nil {
			cancel()
			return nil, errors.Join(fmt.Errorf("peer %d at %s: %w", id, address, err), t.closeConns())
		}
		t.peers[id] = p
	}
	if t.metrics, err = newMetrics(t); err != nil {
		cancel()
		return nil, errors.Join(err, t.closeConns())
	}
	t.server = t.newServer()
	wire.RegisterStampServer(t.server, &service{t: t})
	t.running.Go(func() { _ = t.server.Serve(o.Listener) }) // Ends with the listener, in Close.
	for _, p := range t.peers {
		t.running.Go(func() { p.run(ctx) })
	}
	return t, nil
}

// streamsPerPeerMax bounds the calls of one connection at once: one stream of
// messages, or chunks on the other connection.
const streamsPerPeerMax = 256

func (t *Transport) newServer() *grpc.Server {
	isPeer := func(id geo.NodeID) bool { return t.o.Peers[id] != "" }
	tls := credentials.NewTLS(t.o.Keyring.ServerConfig(isPeer, t.o.Pair.Location))
	return grpc.NewServer(
		grpc.Creds(creds{tls, t.refusals}),
		grpc.UnaryInterceptor(t.admitUnary), grpc.StreamInterceptor(t.admitStream),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(frameBytesMax),
		grpc.MaxConcurrentStreams(streamsPerPeerMax),
		grpc.ConnectionTimeout(t.o.OpenTimeout),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: t.o.KeepaliveTime, Timeout: t.o.KeepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: t.o.KeepaliveTime / 2, PermitWithoutStream: true}),
	)
}

// Addr is where peers reach this node.
func (t *Transport) Addr() net.Addr { return t.o.Listener.Addr() }

// Attach implements node.Transport. id must be the transport's own. Without a member
// the peers see this node as not reachable.
func (t *Transport) Attach(id geo.NodeID, m node.Member) {
	if id != t.o.Self {
		panic(fmt.Sprintf("transport of node %d: node %d attached", t.o.Self, id))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attached != nil {
		close(t.attached.ended)
		t.attached = nil
	}
	if m != nil {
		t.attached = &attachment{member: m, ended: make(chan struct{})}
		close(t.begun)
		t.begun = make(chan struct{})
	}
}

// attachment returns the present one, nil while no node is attached.
func (t *Transport) attachment() *attachment {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.attached
}

// attachmentNow also returns what is closed when the next member is attached.
func (t *Transport) attachmentNow() (a *attachment, next <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.attached, t.begun
}

// Send implements node.Transport: messages are queued, or dropped where the queue is
// full or no stream to the peer stands. They must not be changed afterwards.
func (t *Transport) Send(_, to geo.NodeID, batch []node.Envelope) {
	if p := t.peers[to]; p != nil {
		p.queue.put(batch)
	}
}

// Peer implements node.Transport: nil while no stream to the peer stands. Each call of
// the result ends within Options.ChunkTimeout; where the way there broke or the time
// ran out, whether a put or a sync took effect is unknown, and both may be repeated.
func (t *Transport) Peer(_, to geo.NodeID) node.ChunkPeer {
	p := t.peers[to]
	if p == nil || !p.queue.stats().Connected {
		return nil
	}
	return chunkPeer{p}
}

// Stats returns what is known of a peer; zero for one that is not configured.
func (t *Transport) Stats(to geo.NodeID) PeerStats {
	if p := t.peers[to]; p != nil {
		return p.queue.stats()
	}
	return PeerStats{}
}

// Close ends all streams and calls, drops what waits, and returns when nothing of the
// transport runs any more. A second Close returns what the first did.
func (t *Transport) Close() error {
	t.closeOnce.Do(func() {
		t.Attach(t.o.Self, nil)
		t.cancel()
		t.server.Stop()
		t.closeErr = t.closeConns()
		t.running.Wait()
		t.metrics.unregister()
	})
	return t.closeErr
}

func (t *Transport) closeConns() error {
	errs := []error{t.pair.close()}
	for _, p := range t.peers {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}
