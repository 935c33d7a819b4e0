package extent

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// longest returns the most steps that were done under one hold of mu while f ran.
func (s *Store) longest(f func()) (most int) {
	s.mu.Lock()
	s.mu.unlocking = func(steps int) { most = max(most, steps) }
	s.mu.Unlock()
	f()
	s.mu.Lock()
	s.mu.unlocking = nil
	s.mu.Unlock()
	return most
}

// manyChunks puts n chunks of a byte into small extents.
func manyChunks(t *testing.T, n int) (*Store, []Ref) {
	t.Helper()
	s, source := open(t, vfs.NewMem(), Options{ExtentBytesMax: 256 << 10, GarbagePercent: 30}), newSource(1)
	refs := make([]Ref, n)
	for i := range refs {
		refs[i], _ = put(t, s, source, 1)
	}
	mustSync(t, s)
	return s, refs
}

// However many chunks a store holds, no call does more than holdSteps steps under one hold of
// mu, and the calls that others wait for a few: of a store with several times as many
// chunks, each call is watched.
func TestHoldsAreBounded(t *testing.T) {
	s, refs := manyChunks(t, 3*holdSteps)
	collect := func(named []Ref, want int) {
		for range 2 {
			s.BeginRound(true)
			for _, ref := range named {
				require.True(t, s.Mark(ref))
			}
			s.EndRound()
		}
		chunks, _, err := s.Sweep(1 << 30)
		require.NoError(t, err)
		require.Equal(t, want, chunks)
	}
	scrub := func(want int) {
		n := 0
		for {
			_, err := s.Scrub(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			n++
		}
		require.Equal(t, want, n)
	}
	half, bad := refs[len(refs)/2:], refs[len(refs)-10:]
	for _, c := range []struct {
		name string
		most int
		call func()
	}{
		{"a sweep that finds nothing", holdSteps, func() { collect(refs, 0) }},
		{"Compact that finds nothing", holdSteps, func() { require.Zero(t, compactAll(t, s)) }},
		{"Scrub", holdSteps, func() { scrub(len(refs)) }},
		{"Refs", holdSteps, func() { require.Len(t, s.Refs(), len(refs)) }},
		{"Files", holdSteps, func() { require.Greater(t, len(s.Files()), 3) }},
		{"Places", holdSteps, func() { require.Greater(t, len(s.Places(2)), 100) }},
		{"Stats", 0, func() { require.Equal(t, len(refs), s.Stats().Chunks) }},
		{"Durable", 1, func() { require.True(t, s.Durable(refs[0].ID)) }},
		{"Read", 1, func() { requireHolds(t, s, refs[0], readAll(t, s, refs[0])) }},
		{"Put of what is held", 1, func() { require.NoError(t, s.Put(refs[0], readAll(t, s, refs[0]))) }},
		{"Put", 3, func() { put(t, s, newSource(2), 1); mustSync(t, s) }},
		{"damage of the last ones", 3, func() {
			for _, ref := range bad {
				e, c := s.find(ref.ID)
				s.setDamaged(entry{e, *c})
			}
		}},
		{"Damaged", holdSteps, func() { require.Len(t, s.Damaged(4), 4); require.Len(t, s.Damaged(100), len(bad)) }},
		{"a sweep of the first half", holdSteps, func() { collect(half[:len(half)-len(bad)], len(refs)/2+len(bad)+1) }},
		{"Delete", 2, func() {
			for i := 0; i < len(half); i += 3 {
				require.NoError(t, s.Delete(half[i].ID))
			}
		}},
		{"Compact", holdSteps, func() { require.NotZero(t, compactAll(t, s)) }},
	} {
		most := s.longest(c.call)
		require.LessOrEqual(t, most, c.most, c.name)
	}
	require.Equal(t, s.Stats().Bytes, int64(len(s.Refs())))
}

func readAll(t *testing.T, s *Store, ref Ref) []byte {
	t.Helper()
	data := make([]byte, ref.Length)
	_, err := s.Read(ref, 0, data)
	require.NoError(t, err)
	return data
}

// compactAll compacts until there is nothing to do.
func compactAll(t *testing.T, s *Store) (total int64) {
	t.Helper()
	for {
		n, err := s.Compact(context.Background())
		require.NoError(t, err)
		if n == 0 {
			return total
		}
		total += n
	}
}

// R9 while a sweep goes on, which others come in between: a caller that learned that a
// chunk is here, or put it again, finds it here when the sweep is done, although nothing
// named it for two rounds; and the rest is gone.
func TestSweepBesideTouches(t *testing.T) {
	s, refs := manyChunks(t, 4*holdSteps)
	for range 2 {
		s.BeginRound(true)
		s.EndRound()
	}
	var mu sync.Mutex
	pinned := map[ChunkID]bool{}
	begin, done := make(chan struct{}), make(chan struct{})
	var askers sync.WaitGroup
	for worker := range 3 {
		rng := rand.New(rand.NewPCG(uint64(worker), 1))
		askers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				ref := refs[rng.IntN(len(refs))]
				here := false
				switch worker {
				case 0:
					here = s.Durable(ref.ID)
				case 1:
					here = s.Mark(ref)
				default:
					fresh, data := newChunk(newSource(uint64(1000+i)), 1)
					if err := s.Put(fresh, data); err != nil {
						t.Errorf("put: %v", err)
						return
					}
					ref, here = fresh, true
				}
				if here {
					mu.Lock()
					pinned[ref.ID] = true
					mu.Unlock()
				}
				if i == 10 && worker == 0 {
					close(begin)
				}
			}
		})
	}
	<-begin
	for {
		chunks, _, err := s.Sweep(100)
		require.NoError(t, err)
		if chunks == 0 {
			break
		}
	}
	close(done)
	askers.Wait()
	held := map[ChunkID]bool{}
	for _, ref := range s.Refs() {
		held[ref.ID] = true
	}
	require.Equal(t, pinned, held)
}

// A chunk that a sweep found unnamed is examined again when it is dropped: it stays if
// somebody asked for it in between, or if another round has begun, of which the names are
// not all marked.
// It holds R9.
func TestSweepExaminesWhenItDrops(t *testing.T) {
	for name, between := range map[string]func(s *Store, ref Ref){
		"asked for":           func(s *Store, ref Ref) { require.True(t, s.Durable(ref.ID)) },
		"marked":              func(s *Store, ref Ref) { require.True(t, s.Mark(ref)) },
		"another round begun": func(s *Store, _ Ref) { s.BeginRound(true) },
	} {
		t.Run(name, func(t *testing.T) {
			s, refs := manyChunks(t, 3)
			require.Zero(t, round(t, s))
			s.BeginRound(true)
			require.True(t, s.Mark(refs[0]))
			s.EndRound()
			found, _ := s.nextUnnamed(nil, 10)
			require.Len(t, found, 2)
			between(s, refs[1])
			dropped, err := s.drop(refs[1].ID, s.unnamed)
			require.NoError(t, err)
			require.False(t, dropped)
		})
	}
}
