package transport

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"

	"antipode/stamp/extent"
	"antipode/stamp/node"
	"antipode/stamp/transport/transporttest"
	"antipode/stamp/transport/wire"
)

// counter is a member that counts and wakes its one waiter.
type counter struct {
	*transporttest.Member
	got  atomic.Int64
	wake chan struct{}
}

func (c *counter) Receive(batch []node.Envelope) {
	c.got.Add(int64(len(batch)))
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func openPair(b *testing.B) (*loopback, *counter) {
	n := newLoopback(b)
	c := &counter{Member: transporttest.NewMember(b), wake: make(chan struct{}, 1)}
	n.Start(1, transporttest.NewMember(b))
	n.Start(2, c)
	n.waitConnected(1, 2)
	return n, c
}

// Messages with an entry each, sent in batches of 16 while at most 1024 are on their way:
// B/s of entries, messages/s, allocations of both ends together. Decoded messages are
// Raft's own type: most allocations are its fields, each a pointer.
func BenchmarkMessages(b *testing.B) {
	for _, size := range []int{128, 1 << 10, 16 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("entry=%d", size), func(b *testing.B) {
			n, c := openPair(b)
			const each, window = 16, 1024
			batch := make([]node.Envelope, each)
			for i := range batch {
				batch[i] = transporttest.Message(1, 2, uint64(i), make([]byte, size))
			}
			tr := n.get(1)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			sent := int64(0)
			for sent < int64(b.N) {
				for sent-c.got.Load() > min(window, 32<<20/int64(size)) {
					<-c.wake
				}
				tr.Send(1, 2, batch)
				sent += each
			}
			for c.got.Load() < sent {
				<-c.wake
			}
			b.StopTimer()
			require.Zero(b, tr.Stats(2).Dropped)
			b.ReportMetric(float64(sent)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// One message there and one back: what the network adds to a commit.
func BenchmarkRoundTrip(b *testing.B) {
	n := newLoopback(b)
	ends := map[bool]*counter{}
	for _, second := range []bool{false, true} {
		ends[second] = &counter{Member: transporttest.NewMember(b), wake: make(chan struct{}, 1)}
	}
	n.Start(1, ends[false])
	n.Start(2, ends[true])
	n.waitConnected(1, 2)
	n.waitConnected(2, 1)
	there, back := transporttest.Message(1, 2, 1, make([]byte, 1<<10)), transporttest.Message(2, 1, 1, nil)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		n.get(1).Send(1, 2, []node.Envelope{there})
		<-ends[true].wake
		n.get(2).Send(2, 1, []node.Envelope{back})
		<-ends[false].wake
	}
}

// A chunk put into a peer's store (in memory) and one read from it.
func BenchmarkChunks(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20, extent.ChunkBytesMax} {
		ref := extent.NewRef(extent.ChunkID{9}, make([]byte, size))
		data := make([]byte, size)
		b.Run(fmt.Sprintf("put/bytes=%d", size), func(b *testing.B) {
			n, _ := openPair(b)
			peer := n.At(1).Peer(1, 2)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for range b.N {
				// The same one again: the store takes it and writes nothing.
				require.NoError(b, peer.PutChunk(context.Background(), ref, data))
			}
		})
		b.Run(fmt.Sprintf("read/bytes=%d", size), func(b *testing.B) {
			n, _ := openPair(b)
			peer := n.At(1).Peer(1, 2)
			require.NoError(b, peer.PutChunk(context.Background(), ref, data))
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				_, err := peer.ReadChunk(ref, 0, data)
				require.NoError(b, err)
			}
		})
	}
}

// A part of a chunk, and a batch of 16 messages of 1 KiB, encoded and decoded by our codec
// and by the generated code.
func BenchmarkCodec(b *testing.B) {
	ours := newCodec()
	data, sink := make([]byte, partBytes), make([]byte, partBytes)
	var envelopes []node.Envelope
	var generated wire.Batch
	for i := range uint64(16) {
		e := transporttest.Message(1, 2, i, make([]byte, 1<<10))
		envelopes = append(envelopes, e)
	}
	there := func(b *testing.B, c encoding.CodecV2, out, in any) {
		raw, err := c.Marshal(out)
		require.NoError(b, err)
		require.NoError(b, c.Unmarshal(raw, in))
		raw.Free()
	}
	for name, f := range map[string]func(b *testing.B){
		"part/ours":      func(b *testing.B) { there(b, ours, &part{data: data}, &part{sink: sink}) },
		"part/generated": func(b *testing.B) { there(b, ours.CodecV2, &wire.ChunkPart{Data: data}, &wire.ChunkPart{}) },
		"batch/ours":     func(b *testing.B) { there(b, ours, &batch{envelopes: envelopes}, &batch{}) },
		"batch/generated": func(b *testing.B) {
			generated.Envelopes = generated.Envelopes[:0]
			for _, e := range envelopes {
				raw, err := proto.Marshal(e.Message)
				require.NoError(b, err)
				generated.Envelopes = append(generated.Envelopes, &wire.Envelope{Range: uint32(e.Range), Message: raw})
			}
			var in wire.Batch
			there(b, ours.CodecV2, &generated, &in)
			for _, e := range in.Envelopes {
				require.NoError(b, proto.Unmarshal(e.Message, &pb.Message{}))
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				f(b)
			}
		})
	}
}
