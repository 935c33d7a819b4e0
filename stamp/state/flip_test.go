package state

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

const flipRounds = 4

// filledByRounds returns the file system of a store that was flushed after each round, and
// what a store holds that was flushed after round i and not since.
func filledByRounds(t *testing.T) (fs *vfs.MemFS, states []map[string]string) {
	t.Helper()
	fs = vfs.NewMem()
	s := openState(t, fs)
	states = append(states, map[string]string{})
	for round := range flipRounds {
		write(t, s, func(b *Batch) error {
			for i := range 20 {
				if err := b.Set(fmt.Appendf(nil, "k%04d", i*(round+1)), fmt.Appendf(nil, "round %d", round)); err != nil {
					return err
				}
			}
			return b.Delete(fmt.Appendf(nil, "k%04d", round))
		})
		require.NoError(t, s.Flush())
		rows, err := allRows(s)
		require.NoError(t, err)
		states = append(states, rows)
		if round == 1 { // As most are: the manifest begins with tables.
			require.NoError(t, s.Close())
			s = openState(t, fs)
		}
	}
	require.NoError(t, s.Close())
	return fs, states
}

func allRows(s *Store) (rows map[string]string, err error) {
	it, err := s.Scan([]byte("k"), []byte("l"))
	if err != nil {
		return nil, err
	}
	rows = map[string]string{}
	for it.Next() {
		rows[string(it.Key())] = string(it.Value())
	}
	return rows, it.Close()
}

// Invariant 5: with one bit flipped anywhere in the manifest a store either is refused as
// damaged, so that the node sets it aside, or it opens and holds what some flush left: the
// newest or, where the flip cut the manifest off, an older one. What came after that is
// applied again from the log; a replica whose log begins above it is lost. A flip in the
// options costs nothing.
//
// Capability: Storage on a node: One flipped bit in log, state or extents.
func TestFlipBesideTables(t *testing.T) {
	fs, states := filledByRounds(t)
	names, err := fs.List("state")
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(5, 6))
	refused, newest, older := 0, 0, 0
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			continue
		}
		path := "state/" + name
		b, err := fs.UnsafeGetFileDataBuffer(path)
		require.NoError(t, err)
		for at := range b {
			if at >= 512 && at%8 != 0 {
				continue // OPTIONS is long, and one line of it is like the other.
			}
			bit := byte(1) << rng.IntN(8)
			copied := vfs.NewMem()
			_, err := vfs.Clone(fs, copied, "state", "state")
			require.NoError(t, err)
			c, err := copied.UnsafeGetFileDataBuffer(path)
			require.NoError(t, err)
			c[at] ^= bit
			where := fmt.Sprintf("%s, bit %08b of byte %d of %d", name, bit, at, len(b))
			s, err := Open("state", Options{FS: copied, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				require.True(t, Damaged(err) && strings.HasPrefix(name, "MANIFEST"), "%s: %v", where, err)
				refused++
				continue
			}
			rows, err := allRows(s)
			require.NoError(t, err, where)
			require.Contains(t, states, rows, where)
			if fmt.Sprint(rows) == fmt.Sprint(states[flipRounds]) {
				newest++
			} else {
				older++
			}
			// What is written next is what is read next.
			write(t, s, func(b *Batch) error {
				return errors.Join(b.Set([]byte("k0000"), []byte("new")), b.Delete([]byte("k0019")))
			})
			rows["k0000"] = "new"
			delete(rows, "k0019")
			after, err := allRows(s)
			require.NoError(t, err, where)
			require.Equal(t, rows, after, where)
			require.NoError(t, s.Close())
		}
	}
	t.Logf("%d refused, %d opened with everything, %d with an older flush", refused, newest, older)
	require.NotZero(t, refused)
	require.NotZero(t, newest)
}
