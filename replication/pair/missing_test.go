package pair

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"antipode/internal/clock"
	"antipode/replication/link"
	"antipode/replication/pair/wire"
	"antipode/replication/payload"
	"antipode/stamp/extent"
)

// A question about chunks has the answer over calls that it has directly, in order, up to its bound, in a call of some
// 32 KiB. One above the bound, or about what is no chunk, is refused.
func TestRemoteMissingChunks(t *testing.T) {
	near := newMemEnd()
	far, w := remoteOf(t, near)
	refs := make([]extent.Ref, payload.AskedMax)
	for i := range refs {
		var id extent.ChunkID
		binary.BigEndian.PutUint32(id[:], uint32(i))
		refs[i] = extent.Ref{ID: id, Length: payload.ChunkBytes, CRC: 0xffffffff}
		if i%3 == 0 {
			near.chunks[refs[i]] = []byte("here")
		}
	}
	want, err := near.MissingChunks(t.Context(), refs)
	require.NoError(t, err)
	got, err := far.MissingChunks(t.Context(), refs)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Less(t, w.longest, 36<<10)

	_, err = far.MissingChunks(t.Context(), append(refs, refs[0]))
	require.ErrorIs(t, err, ErrMalformed)
	_, err = far.MissingChunks(t.Context(), []extent.Ref{{ID: extent.ChunkID{1}}})
	require.ErrorIs(t, err, ErrMalformed)
	near.err = errors.New("two nodes do not answer")
	_, err = far.MissingChunks(t.Context(), refs)
	require.ErrorIs(t, err, near.err)
}

// An answer about fewer or more chunks than the question has is refused: it could not be known which it is about.
func TestMissingChunksOfAnotherLength(t *testing.T) {
	refs := []extent.Ref{{ID: extent.ChunkID{1}, Length: 1}, {ID: extent.ChunkID{2}, Length: 1}}
	for _, n := range []int{0, 1, 3} {
		b, err := proto.Marshal(&wire.MissingChunksAnswer{Missing: make([]bool, n)})
		require.NoError(t, err)
		_, err = NewRemote(&canned{reply: b}).MissingChunks(t.Context(), refs)
		require.ErrorIs(t, err, ErrMalformed, "%d answers", n)
	}
}

// earlier is the wire to a location of the version before, which does not know the question.
type earlier struct{ *wireCalls }

func (e earlier) Call(ctx context.Context, method string, body []byte) ([]byte, error) {
	if method == methodMissingChunks {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.calls++
		return nil, errors.New("nobody answers such calls here")
	}
	return e.wireCalls.Call(ctx, method, body)
}

// storedChunks is a near stamp with the chunks of a test.
type storedChunks map[extent.Ref][]byte

func (s storedChunks) ReadChunk(ref extent.Ref, off int64, p []byte) (int, error) {
	return copy(p, s[ref][off:]), nil
}

// A push over calls sends what the other location lacks, and all to one of the version before. What is sent is measured
// on the wire.
func TestPushOverCalls(t *testing.T) {
	const n = 12
	near := storedChunks{}
	var refs []extent.Ref
	for i := range n {
		data := fmt.Appendf(make([]byte, 0, payload.ChunkBytes), "chunk %d", i)[:payload.ChunkBytes]
		refs = append(refs, extent.NewRef(extent.ChunkID{byte(i)}, data))
		near[refs[i]] = data
	}
	for name, c := range map[string]struct {
		earlier bool
		has     int
		calls   int
		bytes   int
	}{
		"has all":                 {has: n, calls: 1, bytes: 40 * n},
		"has most":                {has: n - 2, calls: 1 + 2, bytes: 40*n + 2*(payload.ChunkBytes+chunkHeader)},
		"has all, version before": {earlier: true, has: n, calls: 1 + n, bytes: 40*n + n*(payload.ChunkBytes+chunkHeader)},
	} {
		there := newMemEnd()
		for _, ref := range refs[:c.has] {
			there.chunks[ref] = near[ref]
		}
		_, w := remoteOf(t, there)
		sent := &metered{far: w}
		if c.earlier {
			sent.far = earlier{w}
		}
		l := link.New()
		done := make(chan error, 1)
		payload.NewPusher(l, near, NewRemote(sent), clock.System{}).Push(refs, func(err error) { done <- err })
		require.NoError(t, <-done, name)
		l.Close()
		require.Equal(t, c.calls, w.calls, name)
		require.LessOrEqual(t, sent.bytes, c.bytes, name)
		for _, ref := range refs {
			require.Equal(t, near[ref], there.chunks[ref], name)
		}
	}
}

// metered counts the bytes of calls.
type metered struct {
	far link.Caller

	mu    sync.Mutex
	bytes int
}

func (m *metered) Call(ctx context.Context, method string, body []byte) ([]byte, error) {
	answer, err := m.far.Call(ctx, method, body)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes += len(body) + len(answer)
	return answer, err
}
