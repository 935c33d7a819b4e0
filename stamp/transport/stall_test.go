package transport

import (
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/node"
	"antipode/stamp/transport/transporttest"
)

// proxy carries TCP to an address until it is stalled: then it reads nothing more, as a
// peer whose process is stopped does, and keeps its connections.
type proxy struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu    sync.Mutex
	moved *sync.Cond
	stall bool
	done  bool
	conns []net.Conn
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l, target: target}
	p.moved = sync.NewCond(&p.mu)
	p.running.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			done := p.done
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			if done { // The test's end has closed those before it.
				_, _ = in.Close(), out.Close()
				return
			}
			p.running.Go(func() { p.carry(in, out) })
			p.running.Go(func() { p.carry(out, in) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		p.done = true
		p.moved.Broadcast()
		conns := p.conns
		p.mu.Unlock()
		for _, c := range conns {
			_ = c.Close()
		}
		p.running.Wait()
	})
	return p
}

func (p *proxy) carry(from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		p.mu.Lock()
		for p.stall && !p.done {
			p.moved.Wait()
		}
		p.mu.Unlock()
		n, err := from.Read(buf)
		if err == nil {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			_, _ = from.Close(), to.Close()
			return
		}
	}
}

func (p *proxy) setStall(stall bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stall = stall
	p.moved.Broadcast()
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A peer that stops reading costs what the queue's bound says and no more, whatever is
// sent; Send goes on at its pace; a chunk for it fails at its deadline. When it reads
// again messages arrive.
// It holds invariant 8.
func TestStalledPeer(t *testing.T) {
	const queueBytes, messageBytes, messages = 4 << 20, 64 << 10, 3000
	n := newLoopback(t)
	m := transporttest.NewMember(t)
	p := newProxy(t, n.addresses[2])
	n.tune = func(id geo.NodeID, o *Options) {
		if id == 1 {
			o.Peers[2] = p.listener.Addr().String()
			o.QueueBytesMax = queueBytes
			o.ChunkTimeout = 200 * time.Millisecond
		}
	}
	n.Start(1, transporttest.NewMember(t))
	n.Start(2, m)
	n.waitConnected(1, 2)
	chunks := n.At(1).Peer(1, 2)
	require.NoError(t, chunks.SyncChunks(t.Context()))

	p.setStall(true)
	before := heapBytes()
	var slowest time.Duration
	for i := range uint64(messages) {
		batch := []node.Envelope{transporttest.Message(1, 2, i, make([]byte, messageBytes))}
		begin := time.Now()
		n.At(1).Send(1, 2, batch)
		slowest = max(slowest, time.Since(begin))
	}
	stats := n.get(1).Stats(2)
	require.Less(t, slowest, 2*time.Second, "on a machine that others use, too")
	require.LessOrEqual(t, stats.QueuedBytes, int64(queueBytes))
	require.Positive(t, stats.Dropped)
	// Beside the queue: frames on their way, and what tests of other packages leave us.
	require.Less(t, heapBytes()-before, int64(queueBytes+16<<20), "of %d MiB sent", messages*messageBytes>>20)

	ref := extent.NewRef(extent.ChunkID{1}, make([]byte, extent.ChunkBytesMax))
	begin := time.Now()
	require.Error(t, chunks.PutChunk(t.Context(), ref, make([]byte, extent.ChunkBytesMax)))
	require.Error(t, chunks.SyncChunks(t.Context()))
	_, err := chunks.ReadChunk(ref, 0, make([]byte, 10))
	require.Error(t, err)
	require.NotErrorIs(t, err, io.EOF)
	require.Less(t, time.Since(begin), testWait)

	p.setStall(false)
	require.Eventually(t, func() bool {
		n.At(1).Send(1, 2, []node.Envelope{transporttest.Message(1, 2, messages, nil)})
		got := m.Received()
		return len(got) > 0 && got[len(got)-1].Message.GetIndex() == messages
	}, testWait, 10*time.Millisecond)
	require.Eventually(t, func() bool { return chunks.SyncChunks(t.Context()) == nil }, testWait, time.Millisecond)
}

// A peer that is silent for KeepaliveTime and KeepaliveTimeout, with nothing said to it
// either, is given up, and is no peer for chunks any more. gRPC takes no less than 10 s.
func TestSilentPeerIsGivenUp(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s")
	}
	t.Parallel()
	n := newLoopback(t)
	p := newProxy(t, n.addresses[2])
	n.tune = func(id geo.NodeID, o *Options) {
		if id == 1 {
			o.Peers[2] = p.listener.Addr().String()
			o.KeepaliveTimeout = 500 * time.Millisecond
		}
	}
	n.Start(1, transporttest.NewMember(t))
	n.Start(2, transporttest.NewMember(t))
	n.waitConnected(1, 2)
	p.setStall(true)
	require.Eventually(t, func() bool { return n.At(1).Peer(1, 2) == nil }, 3*testWait, 10*time.Millisecond)
}

// A peer whose process is up without its node (it failed, or starts) is not reachable,
// and is reached when its node is attached, without a new connection.
func TestPeerWithoutNode(t *testing.T) {
	n := newLoopback(t)
	n.Start(1, transporttest.NewMember(t))
	n.Start(2, transporttest.NewMember(t))
	n.waitConnected(1, 2)
	chunks := n.At(1).Peer(1, 2)
	n.At(2).Attach(2, nil)
	require.Eventually(t, func() bool { return n.At(1).Peer(1, 2) == nil }, testWait, time.Millisecond)
	require.ErrorContains(t, chunks.SyncChunks(t.Context()), "no node is attached")
	require.ErrorContains(t, chunks.PutChunk(t.Context(), extent.NewRef(extent.ChunkID{1}, []byte("x")), []byte("x")), "no node is attached")
	_, err := chunks.ReadChunk(extent.NewRef(extent.ChunkID{1}, []byte("x")), 0, make([]byte, 1))
	require.ErrorContains(t, err, "no node is attached")
	m := transporttest.NewMember(t)
	n.At(2).Attach(2, m)
	n.waitConnected(1, 2)
	n.At(1).Send(1, 2, []node.Envelope{transporttest.Message(1, 2, 1, nil)})
	require.Eventually(t, func() bool { return len(m.Received()) == 1 }, testWait, time.Millisecond)
	require.Panics(t, func() { n.At(2).Attach(1, m) })
}

// A message that is too long for the wire is dropped with a line in the log, and the
// stream lives on.
func TestTooLong(t *testing.T) {
	n := newLoopback(t)
	log := &logBuffer{}
	n.log = log
	m := transporttest.NewMember(t)
	n.Start(1, transporttest.NewMember(t))
	n.Start(2, m)
	n.waitConnected(1, 2)
	n.At(1).Send(1, 2, []node.Envelope{transporttest.Message(1, 2, 1, make([]byte, messageBytesMax)), transporttest.Message(1, 2, 2, nil)})
	require.Eventually(t, func() bool { return len(m.Received()) == 1 }, testWait, time.Millisecond)
	require.EqualValues(t, 2, m.Received()[0].Message.GetIndex())
	require.Contains(t, log.String(), "too long")
	require.True(t, n.get(1).Stats(2).Connected)
}
