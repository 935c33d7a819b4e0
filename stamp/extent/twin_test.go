package extent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"pgregory.net/rapid"

	"antipode/stamp/rawtest"
)

// twin is the store as a map: the dumb version that the clever one must equal.
type twin struct {
	held map[ChunkID][]byte
	// durable ids were covered by a Sync.
	durable map[ChunkID]bool
	// dead chunks may come back at a restart.
	dead map[ChunkID][]byte
}

// Over any sequence of puts, syncs, deletes, reads and restarts, clean and not, the
// store answers as a map does; after a crash a chunk that was not synced, or that
// was deleted, may be there or not, but never with other bytes.
func TestTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := rawtest.New()
		opts := Options{
			SliceBytes: 512, ExtentBytesMax: 30 << 10, PagedBytesMin: 5000, GarbagePercent: 30, Rand: newSource(1),
		}
		s, err := Open(fs, testDir, opts)
		must(t, err)
		w := twin{held: map[ChunkID][]byte{}, durable: map[ChunkID]bool{}, dead: map[ChunkID][]byte{}}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				id := drawID(t)
				// One id never names two payloads.
				data := bytes.Repeat([]byte{id[0], 7}, 1+int(id[0])*700)
				must(t, s.Put(NewRef(id, data), data))
				w.held[id] = data
			},
			"sync": func(t *rapid.T) {
				must(t, s.Sync(context.Background()))
				for id := range w.held {
					w.durable[id] = true
				}
			},
			"delete": func(t *rapid.T) {
				id := drawID(t)
				must(t, s.Delete(id))
				if data, ok := w.held[id]; ok {
					w.dead[id] = data
				}
				delete(w.held, id)
				delete(w.durable, id)
			},
			"read": func(t *rapid.T) { w.read(t, s) },
			"compact": func(t *rapid.T) {
				_, err := s.Compact(context.Background())
				must(t, err)
			},
			"scrub": func(t *rapid.T) {
				if _, err := s.Scrub(context.Background()); !errors.Is(err, io.EOF) {
					must(t, err)
				}
			},
			"restart": func(t *rapid.T) {
				must(t, s.Close())
				s, err = Open(fs, testDir, opts)
				must(t, err)
				for id := range w.held {
					w.durable[id] = true
				}
				w.reopened(t, s)
			},
			"crash": func(t *rapid.T) {
				seed := rapid.Uint64().Draw(t, "seed")
				percent := rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "percent")
				after := crashed(t, fs, percent, newRNG(seed))
				must(t, s.Close())
				fs = after
				s, err = Open(fs, testDir, opts)
				must(t, err)
				w.reopened(t, s)
			},
			"": func(t *rapid.T) { w.check(t, s) },
		})
		must(t, s.Close())
	})
}

// reopened takes over from the reopened store what a restart leaves open.
func (w *twin) reopened(t *rapid.T, s *Store) {
	there := map[ChunkID]bool{}
	for _, ref := range s.Refs() {
		there[ref.ID] = true
		if _, ok := w.held[ref.ID]; !ok {
			data, ok := w.dead[ref.ID]
			if !ok {
				t.Fatalf("%s was never put", ref)
			}
			w.held[ref.ID] = data
		}
		w.durable[ref.ID] = true
	}
	for id := range w.held {
		if !there[id] && w.durable[id] {
			t.Fatalf("%s was synced and is gone", id)
		}
		if !there[id] {
			delete(w.held, id)
		}
	}
}

func (w *twin) check(t *rapid.T, s *Store) {
	var total int64
	for id, data := range w.held {
		total += int64(len(data))
		// The store may know more, when it sealed an extent; then that must hold too.
		durable := s.Durable(id)
		if w.durable[id] && !durable {
			t.Fatalf("%s is not durable", id)
		}
		w.durable[id] = durable
	}
	st := s.Stats()
	if st.Chunks != len(w.held) || st.Bytes != total || st.Damaged != 0 || st.LostBytes != 0 {
		t.Fatalf("stats %+v, want %d chunks of %d bytes", st, len(w.held), total)
	}
}

func (w *twin) read(t *rapid.T, s *Store) {
	id := drawID(t)
	data, ok := w.held[id]
	if !ok {
		if _, err := s.Read(Ref{ID: id, Length: 1}, 0, make([]byte, 1)); !errors.Is(err, ErrNotFound) {
			t.Fatalf("read of %s: %v", id, err)
		}
		return
	}
	from := rapid.IntRange(0, len(data)-1).Draw(t, "from")
	to := rapid.IntRange(from, len(data)).Draw(t, "to")
	p := make([]byte, to-from)
	n, err := s.Read(NewRef(id, data), int64(from), p)
	must(t, err)
	if !bytes.Equal(p[:n], data[from:to]) {
		t.Fatalf("other bytes in [%d, %d) of %s", from, to, id)
	}
}

func drawID(t *rapid.T) ChunkID {
	return ChunkID{rapid.ByteRange(0, 9).Draw(t, "id")}
}

func must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(fmt.Sprint(err))
	}
}
