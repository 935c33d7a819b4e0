package transport

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/node"
	"antipode/stamp/transport/transporttest"
	"antipode/stamp/transport/wire"
)

func encode(t *testing.T, v any) []byte {
	t.Helper()
	out, err := newCodec().Marshal(v)
	require.NoError(t, err)
	defer out.Free()
	return out.Materialize()
}

// cut is b in buffers of n bytes, as it may arrive.
func cut(b []byte, n int) mem.BufferSlice {
	var out mem.BufferSlice
	for len(b) > 0 {
		m := min(n, len(b))
		out = append(out, mem.SliceBuffer(b[:m]))
		b = b[m:]
	}
	return out
}

// The codec of batches is that of the generated code: each reads what the other wrote.
func TestBatchIsTheGeneratedOne(t *testing.T) {
	sent := batch{envelopes: []node.Envelope{
		transporttest.Message(1, 2, 3, []byte("data")), transporttest.Message(1, 2, 4, nil), transporttest.Message(1, 2, 5, make([]byte, 70_000)),
	}}
	sent.envelopes[1].Range = 1<<32 - 1
	raw := encode(t, &sent)
	var generated wire.Batch
	require.NoError(t, proto.Unmarshal(raw, &generated))
	again, err := proto.MarshalOptions{Deterministic: true}.Marshal(&generated)
	require.NoError(t, err)
	require.Equal(t, raw, again)
	for _, n := range []int{1, 1000, len(raw)} {
		var got batch
		require.NoError(t, newCodec().Unmarshal(cut(raw, n), &got))
		require.Len(t, got.envelopes, 3)
		for i, e := range got.envelopes {
			require.Equal(t, sent.envelopes[i].Range, e.Range)
			require.EqualValues(t, e.Range, generated.Envelopes[i].Range)
			require.True(t, proto.Equal(sent.envelopes[i].Message, e.Message))
		}
	}
}

// So is that of parts of chunks, and data lands in the sink however it was cut.
func TestPartIsTheGeneratedOne(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	ref := extent.NewRef(extent.ChunkID{1, 2, 3}, data)
	raw := append(encode(t, &part{ref: ref}), encode(t, &part{data: data})...)
	var generated wire.ChunkPart
	require.NoError(t, proto.Unmarshal(raw, &generated))
	require.Equal(t, ref.ID[:], generated.Ref.Id)
	require.Equal(t, ref.Length, generated.Ref.Length)
	require.Equal(t, ref.CRC, generated.Ref.Crc)
	require.Equal(t, data, generated.Data)
	raw, err := proto.Marshal(&generated)
	require.NoError(t, err)
	for _, n := range []int{1, 1000, len(raw)} {
		got := part{sink: make([]byte, len(data))}
		require.NoError(t, newCodec().Unmarshal(cut(raw, n), &got))
		require.Equal(t, ref, got.ref)
		require.Equal(t, len(data), got.got)
		require.Equal(t, data, got.sink)
	}
	short := part{sink: make([]byte, len(data)-1)}
	require.ErrorIs(t, newCodec().Unmarshal(cut(raw, 4096), &short), ErrFrame)
}

// Whatever a peer sends gives messages or an error, and what is read is read the same
// after it was written again.
func FuzzBatch(f *testing.F) {
	seed := batch{envelopes: []node.Envelope{transporttest.Message(1, 2, 3, []byte("data"))}}
	out, err := newCodec().Marshal(&seed)
	require.NoError(f, err)
	f.Add(out.Materialize())
	f.Add([]byte{0x0a, 0x02, 0x08, 0x01})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var first, second batch
		if first.unmarshal(raw) != nil {
			return
		}
		require.NoError(t, second.unmarshal(encode(t, &first)))
		require.Len(t, second.envelopes, len(first.envelopes))
		for i, e := range first.envelopes {
			require.Equal(t, e.Range, second.envelopes[i].Range)
			require.True(t, proto.Equal(e.Message, second.envelopes[i].Message))
		}
	})
}

func FuzzPart(f *testing.F) {
	seed := part{ref: extent.NewRef(extent.ChunkID{1}, []byte("data")), data: []byte("data")}
	out, err := newCodec().Marshal(&seed)
	require.NoError(f, err)
	f.Add(out.Materialize(), 3)
	f.Fuzz(func(t *testing.T, raw []byte, n int) {
		got := part{sink: make([]byte, 100)}
		if got.unmarshal(cut(raw, max(1, n))) != nil {
			return
		}
		whole := part{sink: make([]byte, 100)}
		require.NoError(t, whole.unmarshal(cut(raw, max(1, len(raw)))))
		require.Equal(t, whole, got)
		if got.ref != (extent.Ref{}) {
			require.True(t, got.ref.Length >= 1 && got.ref.Length <= extent.ChunkBytesMax)
		}
	})
}

// A queue holds what its bounds say and no more, in order; one message above the bound
// passes alone; a closed one holds nothing (R: memory is bounded).
// It holds invariant 8.
func TestQueue(t *testing.T) {
	q := newQueue(10_000, 5)
	message := func(i uint64, n int) []node.Envelope {
		return []node.Envelope{transporttest.Message(1, 2, i, make([]byte, n))}
	}
	q.put(message(1, 10))
	require.Equal(t, PeerStats{Dropped: 1}, q.stats(), "closed")
	q.setOpen(true)
	for i := range uint64(7) {
		q.put(message(i, 10))
	}
	require.Equal(t, 5, q.stats().Queued, "by number")
	require.EqualValues(t, 3, q.stats().Dropped)
	out := q.take(nil, 1)
	require.Len(t, out, 1, "one at least")
	out = q.take(out, 1<<20)
	require.Len(t, out, 5)
	for i, e := range out {
		require.EqualValues(t, i, e.Message.GetIndex())
	}
	require.Zero(t, q.stats().QueuedBytes)
	require.Empty(t, q.take(nil, 1<<20))

	q.put(message(8, 20_000))
	q.put(message(9, 1))
	require.Equal(t, 1, q.stats().Queued, "by bytes")
	require.Len(t, q.take(nil, 1), 1)
	q.put(message(10, 4000))
	q.put(message(11, 4000))
	q.put(message(12, 4000))
	require.Equal(t, 2, q.stats().Queued)
	require.LessOrEqual(t, q.stats().QueuedBytes, int64(10_000))
	before := q.stats().Dropped
	q.setOpen(false)
	require.Equal(t, PeerStats{Dropped: before + 2, Sent: q.stats().Sent, SentBytes: q.stats().SentBytes}, q.stats())

	// Filled and half emptied for long, it does not grow.
	q.setOpen(true)
	for i := range uint64(10_000) {
		q.put(message(i, 1))
		if i%2 == 0 {
			q.put(message(i, 1))
		}
		q.take(nil, 1)
		if i%4 == 0 {
			q.take(nil, 1)
		}
	}
	require.LessOrEqual(t, cap(q.items), 16)
	require.Equal(t, geo.FirstRange(geo.Table), message(1, 1)[0].Range)
}
