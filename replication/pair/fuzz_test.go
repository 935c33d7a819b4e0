package pair

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/replication/link"
	"antipode/replication/pair/wire"
	"antipode/replication/ship"
	"antipode/stamp/change"
	"antipode/stamp/extent"
)

func methods() []string {
	return []string{methodRecords, methodClosed, methodAcknowledge, methodReadChunk, methodPutChunk, methodMissingChunks}
}

// Whatever a location is asked, it answers with a message of at most a call, or an error.
func FuzzServe(f *testing.F) {
	st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: 3, Lane: 31}
	ref := extent.NewRef(extent.ChunkID{1}, []byte("data"))
	for i, m := range []proto.Message{
		&wire.RecordsRequest{Stream: wireStream(st), From: 1, BytesMax: 1 << 20},
		&wire.RecordsRequest{Stream: wireStream(st), From: 2, BytesMax: 1 << 30, Offset: 1 << 20},
		&wire.ClosedRequest{Range: 3, After: wireStream(st)},
		&wire.AcknowledgeRequest{Range: 3, Cursors: []*wire.Cursor{{Stream: wireStream(st), Seq: 1, Hash: 2}}},
		&wire.ReadChunkRequest{Ref: wireRef(ref)},
		&wire.PutChunkRequest{Ref: wireRef(ref), Data: []byte("data")},
		&wire.MissingChunksRequest{Refs: []*wire.ChunkRef{wireRef(ref), wireRef(extent.Ref{Length: 1})}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(max(i-1, 0)), b)
	}
	near := newMemEnd()
	near.outbox[st] = [][]byte{make([]byte, 100), make([]byte, change.RecordBytesMax)}
	near.closed = func() *change.Closed {
		return &change.Closed{Origin: "north", Range: 3, Full: true, Heads: []change.StreamHead{{Account: "acct", Epoch: st.Epoch}}}
	}
	l := link.New()
	defer l.Close()
	w := newWire()
	Serve(w, l, near)
	f.Fuzz(func(t *testing.T, method byte, body []byte) {
		out, err := w.Call(t.Context(), methods()[int(method)%len(methods())], body)
		if err == nil && len(out) > callBytesMax {
			t.Fatalf("answer of %d bytes", len(out))
		}
	})
}

// answers gives the same answer to every call, a bounded number of times.
type answers struct {
	t    *testing.T
	body []byte
	left int
}

func (a *answers) Call(context.Context, string, []byte) ([]byte, error) {
	if a.left--; a.left < 0 {
		a.t.Fatal("asks for ever")
	}
	return a.body, nil
}

// Whatever a location answers, the caller takes it or errs, and never asks for ever.
func FuzzRemote(f *testing.F) {
	st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: 3, Lane: 31}
	closed := change.AppendClosed(nil, &change.Closed{
		Origin: "north", Range: 3, Full: true, T: 5, Heads: []change.StreamHead{{Account: "acct", Epoch: st.Epoch, Lane: 1, Seq: 4}},
	})
	for i, m := range []proto.Message{
		&wire.RecordsAnswer{Records: [][]byte{{1}, {2}}},
		&wire.RecordsAnswer{Part: make([]byte, 10), Length: 20},
		&wire.ClosedAnswer{Closed: closed, More: true},
		wireMismatches([]ship.Mismatch{{Stream: st, Reason: change.StopForked, Here: geo.Head{Seq: 1, Hash: 2}, Stopped: true}}),
		&wire.ReadChunkAnswer{Data: []byte("data")},
		&wire.PutChunkAnswer{},
		&wire.MissingChunksAnswer{Missing: []bool{true, false}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(max(i-1, 0)), b)
	}
	ref := extent.NewRef(extent.ChunkID{1}, []byte("data"))
	f.Fuzz(func(t *testing.T, method byte, body []byte) {
		far := NewRemote(&answers{t, body, change.RecordBytesMax})
		ctx := t.Context()
		var err error
		switch method % 6 {
		case 0:
			var got [][]byte
			if got, err = far.Records(ctx, st, 1, 10); err == nil {
				for _, b := range got {
					_, _ = change.ParseRecord(b)
				}
			}
		case 1:
			var c *change.Closed
			if c, err = far.Closed(ctx, 3); err == nil && (c == nil || !c.Full || c.Range != 3) {
				t.Fatalf("took %+v", c)
			}
		case 2:
			_, err = far.Acknowledge(ctx, 3, ship.Acknowledgement{Full: true, Cursors: []ship.StreamCursor{{Stream: st}}})
		case 3:
			err = far.ReadChunk(ctx, ref, make([]byte, ref.Length))
		case 4:
			err = far.PutChunk(ctx, ref, []byte("data"))
		case 5:
			var missing []bool
			if missing, err = far.MissingChunks(ctx, []extent.Ref{ref, ref}); err == nil && len(missing) != 2 {
				t.Fatalf("took %v", missing)
			}
		}
		_ = err
	})
}
