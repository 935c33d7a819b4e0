package seglog

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/stamp/rawfile"
	"antipode/stamp/rawtest"
	"antipode/stamp/state"
)

// What is written past the page cache is read back through it, while the segments are
// used again and after each open (random commits on the machine's disk against the model).
func TestDirectWrites(t *testing.T) {
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	requireDirect(t, dir)
	open := func() *Log {
		l, err := Open(dir, state.Options{LogSegmentBytes: testSegment})
		require.NoError(t, err)
		return l
	}
	s := newStory(t, open(), rng)
	for i := range 300 {
		require.NoError(t, s.commit(rng.IntN(4) > 0))
		require.NotNil(t, s.l.direct, "commit %d went through the page cache", i)
		if i%10 == 9 {
			files, err := s.l.Files()
			require.NoError(t, err)
			for _, f := range files {
				require.NoError(t, s.l.Verify(f))
			}
		}
		if i%60 == 59 {
			require.NoError(t, s.l.Close())
			s.l = open()
			found, err := logState(s.l)
			require.NoError(t, err)
			require.Equal(t, s.states[len(s.states)-1], found)
		}
	}
	require.NoError(t, s.l.Close())
}

// requireDirect skips the test where the file system has no direct writes.
func requireDirect(t *testing.T, dir string) {
	t.Helper()
	raw := rawfile.Of(vfs.Default)
	if raw == nil {
		t.Skip("no direct writes on this system")
	}
	page := make([]byte, 2*pageBytes)
	page = page[(pageBytes-offPage(page))%pageBytes:][:pageBytes]
	path := filepath.Join(dir, "probe")
	f, err := raw.OpenRaw(path, true)
	if err == nil {
		err = errors.Join(f.WriteVec(0, page), f.Close())
	}
	if errors.Is(err, rawfile.ErrNoDirect) {
		t.Skip("the file system has no direct writes")
	}
	require.NoError(t, errors.Join(err, os.Remove(path)))
}

// requireRefusal skips the test where the file system takes direct writes from any address, as tmpfs does.
func requireRefusal(t *testing.T, dir string) {
	t.Helper()
	page := make([]byte, 2*pageBytes)
	page = page[(pageBytes-offPage(page))%pageBytes+1:][:pageBytes]
	path := filepath.Join(dir, "refuses")
	f, err := rawfile.Of(vfs.Default).OpenRaw(path, true)
	require.NoError(t, err)
	refused := f.WriteVec(0, page)
	require.NoError(t, errors.Join(f.Close(), os.Remove(path)))
	if refused == nil {
		t.Skip("the file system takes direct writes from any address")
	}
}

// Where the file system refuses direct writes, as late as at the first one, the same
// bytes go through the page cache (a write from an address that is no multiple of a page).
func TestDirectRefused(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"on the machine's disk": vfs.Default, "in memory": rawtest.New()} {
		t.Run(name, func(t *testing.T) {
			dir := testDir
			if fs == vfs.Default {
				dir = t.TempDir()
				requireDirect(t, dir)
				requireRefusal(t, dir)
			}
			l, err := Open(dir, state.Options{FS: fs, LogSegmentBytes: testSegment})
			require.NoError(t, err)
			require.NotNil(t, l.direct)
			want := make([]byte, pageBytes+1)[1:]
			want[0], want[pageBytes-1] = 1, 2
			s := l.active()
			require.NoError(t, l.writePages(s, want, s.end))
			require.Nil(t, l.direct)
			found := make([]byte, pageBytes)
			require.NoError(t, readFull(s.file, found, s.end))
			require.Equal(t, want, found)
			require.NoError(t, l.Close())
		})
	}
}
