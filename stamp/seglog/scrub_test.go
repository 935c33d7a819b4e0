package seglog

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/stamp/seglog/logtest"
	"antipode/stamp/state"
)

func verifyAll(l *Log) error {
	files, err := l.Files()
	errs := []error{err}
	for _, f := range files {
		errs = append(errs, l.Verify(f))
	}
	return errors.Join(errs...)
}

// Invariant 5: a bit flipped in a segment in use, the active one included, is found while
// the log runs, or it does not matter: then the log reads from the disk as it is.
func TestVerifyFindsFlips(t *testing.T) {
	mem := vfs.NewMem()
	l := mustOpen(t, mem)
	defer func() { require.NoError(t, l.Close()) }()
	rng := rand.New(rand.NewPCG(1, 2))
	s := newStory(t, l, rng)
	for range 60 {
		require.NoError(t, s.commit(true))
	}
	want, err := logState(l)
	require.NoError(t, err)
	require.NoError(t, verifyAll(l))
	files, err := l.Files()
	require.NoError(t, err)
	require.Greater(t, len(files), 2)
	found, harmless := 0, 0
	for _, f := range files {
		b, err := mem.UnsafeGetFileDataBuffer(f.Path)
		require.NoError(t, err)
		for range 60 {
			at, bit := rng.IntN(len(b)), byte(1)<<rng.IntN(8)
			b[at] ^= bit
			if err := l.Verify(f); err != nil {
				require.ErrorIs(t, err, state.ErrLogCorrupt)
				found++
			} else {
				other, err := open(readDisk(t, mem).fs(t), rng.Uint64())
				require.NoError(t, err, "byte %d of %s", at, f.Path)
				got, err := logState(other)
				require.NoError(t, err)
				require.Equal(t, want, got, "byte %d of %s", at, f.Path)
				require.NoError(t, other.Close())
				harmless++
			}
			b[at] ^= bit
			require.NoError(t, l.Verify(f))
		}
	}
	require.NotZero(t, found)
	require.NotZero(t, harmless)
	require.NoError(t, l.Verify(state.File{Path: testDir + "/99999999.seg"}), "not in use")
}

// Verifying beside commits, which fill, recycle and remove segments, calls nothing damaged.
func TestVerifyBesideCommits(t *testing.T) {
	l := mustOpen(t, vfs.NewMem())
	defer func() { require.NoError(t, l.Close()) }()
	s := newStory(t, l, rand.New(rand.NewPCG(3, 4)))
	ended := make(chan struct{})
	var g sync.WaitGroup
	verified := 0
	g.Go(func() {
		for {
			if err := verifyAll(l); err != nil {
				t.Errorf("verify: %v", err)
				return
			}
			verified++
			select {
			case <-ended:
				return
			default:
			}
		}
	})
	for range 300 {
		require.NoError(t, s.commit(true))
	}
	close(ended)
	g.Wait()
	require.NotZero(t, verified)
	_, err := logtest.Read(logtest.Range(t, l, testRanges()[0]))
	require.NoError(t, err)
}
