package payload

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
	"antipode/replication/link"
	"antipode/stamp/extent"
)

// askedStamp is a far stamp that has some chunks, and counts what it is sent.
type askedStamp struct {
	// answer is in place of the true one, where set.
	answer func(ctx context.Context, refs []extent.Ref) ([]bool, error)

	mu        sync.Mutex
	has       map[extent.Ref]bool
	put       []extent.Ref
	bytes     int
	questions []int
	putErr    error
}

func (a *askedStamp) PutChunk(_ context.Context, ref extent.Ref, data []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.put = append(a.put, ref)
	a.bytes += len(data)
	return a.putErr
}

func (a *askedStamp) ReadChunk(context.Context, extent.Ref, []byte) error {
	return errors.New("not asked for")
}

func (a *askedStamp) MissingChunks(ctx context.Context, refs []extent.Ref) ([]bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.questions = append(a.questions, len(refs))
	if a.answer != nil {
		return a.answer(ctx, refs)
	}
	missing := make([]bool, len(refs))
	for i, ref := range refs {
		missing[i] = !a.has[ref]
	}
	return missing, nil
}

func (a *askedStamp) hold(refs ...extent.Ref) {
	a.has = map[extent.Ref]bool{}
	for _, ref := range refs {
		a.has[ref] = true
	}
}

// chunksOf returns refs of n chunks of so many bytes.
func chunksOf(n int, bytes uint32) []extent.Ref {
	refs := make([]extent.Ref, n)
	for i := range refs {
		binary.BigEndian.PutUint32(refs[i].ID[:], uint32(i))
		refs[i].Length = bytes
	}
	return refs
}

// pushTo pushes over a new link, and waits for the end.
func pushTo(t *testing.T, far Far, refs []extent.Ref) error {
	t.Helper()
	l := link.New()
	defer l.Close()
	done := make(chan error, 1)
	NewPusher(l, anyChunks{}, far, clock.System{}).Push(refs, func(err error) { done <- err })
	return <-done
}

// A push sends nothing that the far stamp has: for a copy of 5,000 chunks five questions cross, and no payload. If a
// copy has new chunks between them, only the new ones cross, each once, whichever question they were in.
func TestPushSendsWhatIsMissing(t *testing.T) {
	refs := chunksOf(5000, ChunkBytes)
	pages := []int{AskedMax, AskedMax, AskedMax, AskedMax, 5000 - 4*AskedMax}
	for name, lacks := range map[string][]int{
		"nothing": nil, "some": {0, 7, AskedMax - 1, AskedMax, AskedMax + 1, 4999}, "the last": {4999},
	} {
		t.Run(name, func(t *testing.T) {
			far := &askedStamp{}
			far.hold(refs...)
			var want []extent.Ref
			for _, i := range lacks {
				delete(far.has, refs[i])
				want = append(want, refs[i])
			}
			require.NoError(t, pushTo(t, far, refs))
			slices.SortFunc(far.put, func(a, b extent.Ref) int { return slices.Compare(a.ID[:], b.ID[:]) })
			require.Equal(t, want, far.put)
			require.Equal(t, len(want)*ChunkBytes, far.bytes)
			require.Equal(t, pages, far.questions)
		})
	}
}

// What a question costs: one round trip for 1,024 chunks. A copy of 5,000 chunks takes five of them in all. An upload
// of just above the border takes one more than its chunks take. The first two of those cross at once on a line of
// unknown width.
func TestWhatAQuestionCosts(t *testing.T) {
	const roundTrip = 100 * time.Millisecond
	for name, c := range map[string]struct {
		chunks int
		has    bool
		want   time.Duration
	}{
		"copy":                 {5000, true, 5 * roundTrip},
		"upload":               {5, false, (1 + 2) * roundTrip},
		"upload at the border": {4, false, 2 * roundTrip},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far, refs := &askedStamp{}, chunksOf(c.chunks, ChunkBytes)
				if c.has {
					far.hold(refs...)
				}
				l := link.New()
				defer l.Close()
				l.Delay(roundTrip)
				done := make(chan error, 1)
				began := time.Now()
				NewPusher(l, anyChunks{}, far, bubbleClock{began: began}).Push(refs, func(err error) { done <- err })
				require.NoError(t, <-done)
				require.Equal(t, c.want, time.Since(began))
			})
		})
	}
}

// A push that crosses in one round trip has no question before it, also if the far stamp has all of it: Last Sync Time
// does not wait for one more. The next larger one has.
func TestPushOfOneRoundTripAsksNothing(t *testing.T) {
	for name, refs := range map[string][]extent.Ref{
		"one byte":    chunksOf(1, 1),
		"one block":   chunksOf(4, ChunkBytes),
		"many small":  chunksOf(1000, 4<<10),
		"one chunk":   chunksOf(1, ChunkBytes),
		"three large": chunksOf(3, askAbove/3),
	} {
		far := &askedStamp{}
		far.hold(refs...)
		require.NoError(t, pushTo(t, far, refs), name)
		require.Empty(t, far.questions, name)
		require.Len(t, far.put, len(refs), name)
	}
	far, refs := &askedStamp{}, append(chunksOf(4, ChunkBytes), extent.Ref{ID: extent.ChunkID{1}, Length: 1})
	far.hold(refs...)
	require.NoError(t, pushTo(t, far, refs))
	require.Equal(t, []int{5}, far.questions)
	require.Empty(t, far.put)
}

// A location that does not know the question, or answers it wrongly, gets all chunks, as from a version that does not
// ask; it is asked once for each push, whatever the push names. One that fails later gets what is left.
func TestPushWithoutAnAnswer(t *testing.T) {
	refs := chunksOf(AskedMax+100, ChunkBytes)
	for name, c := range map[string]struct {
		answer    func(asked int, n int) ([]bool, error)
		questions int
		put       int
	}{
		"earlier version": {func(int, int) ([]bool, error) { return nil, errors.New("nobody answers such calls here") }, 1, len(refs)},
		"no answers":      {func(int, int) ([]bool, error) { return nil, nil }, 1, len(refs)},
		"too few":         {func(_, n int) ([]bool, error) { return make([]bool, n-1), nil }, 1, len(refs)},
		"too many":        {func(_, n int) ([]bool, error) { return make([]bool, n+1), nil }, 1, len(refs)},
		"fails later": {func(asked, n int) ([]bool, error) {
			if asked > 1 {
				return nil, errors.New("two nodes do not answer")
			}
			return make([]bool, n), nil
		}, 2, 100},
	} {
		far := &askedStamp{}
		far.answer = func(_ context.Context, some []extent.Ref) ([]bool, error) {
			return c.answer(len(far.questions), len(some))
		}
		require.NoError(t, pushTo(t, far, refs), name)
		require.Len(t, far.questions, c.questions, name)
		require.Len(t, far.put, c.put, name)
		require.ElementsMatch(t, refs[len(refs)-c.put:], far.put, name)
	}
}

// A link that is cut while the question is under way ends the push, with nothing sent. A question that is never
// answered ends with its call; then the chunks are pushed, of which the first that fails ends the push.
func TestPushWithoutALine(t *testing.T) {
	refs := chunksOf(100, ChunkBytes)
	hang := func(ctx context.Context, _ []extent.Ref) ([]bool, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		far := &askedStamp{answer: hang, putErr: errors.New("stopped")}
		l := link.New()
		defer l.Close()
		p := NewPusher(l, anyChunks{}, far, bubbleClock{began: time.Now()})
		done := make(chan error, 1)
		p.Push(refs, func(err error) { done <- err })
		synctest.Wait()
		began := time.Now()
		l.Cut()
		require.ErrorIs(t, <-done, link.ErrCut)
		require.Equal(t, began, time.Now())
		require.Empty(t, far.put)
		require.Len(t, far.questions, 1)

		l.Heal()
		p.Push(refs, func(err error) { done <- err })
		require.ErrorIs(t, <-done, far.putErr)
		require.Equal(t, link.CallTimeout, time.Since(began))
		require.LessOrEqual(t, len(far.put), pushPerCall)
		require.Len(t, far.questions, 2)
	})
}
