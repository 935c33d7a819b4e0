package durable_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"antipode/stamp/durable"
)

// A crash before or after any operation of Replace leaves the old contents or the new, whole,
// however much of what was not synced survives; after it returned, the new.
func TestReplaceCrash(t *testing.T) {
	// Strings: under the race detector the file system in memory overwrites what Write is given.
	old, replaced := strings.Repeat("old", 1000), strings.Repeat("new", 2000)
	mem := vfs.NewCrashableMem()
	require.NoError(t, durable.MkdirAll(mem, "a/b"))
	require.NoError(t, durable.Write(mem, "a/b", "f", []byte(old)))
	path := mem.PathJoin("a/b", "f")
	steps := 0
	check := func(allowed ...string) {
		for seed := range uint64(8) {
			for _, percent := range []int{0, 50, 100} {
				after := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 1))})
				got, err := durable.Read(after, path)
				require.NoError(t, err)
				require.Contains(t, allowed, string(got), "step %d, %d %% of what was not synced", steps, percent)
			}
		}
	}
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
		steps++
		check(old, replaced)
		return nil
	}))
	require.NoError(t, durable.Replace(fs, "a/b", "f", []byte(replaced)))
	require.GreaterOrEqual(t, steps, 6, "create, write, sync, rename, sync of the folder")
	check(replaced)
}

// A Replace that fails at any operation leaves the old contents or the new, and the next one
// succeeds.
func TestReplaceFails(t *testing.T) {
	broken := errors.New("broken")
	for fail := 1; ; fail++ {
		mem, steps := vfs.NewMem(), 0
		require.NoError(t, durable.MkdirAll(mem, "a"))
		require.NoError(t, durable.Write(mem, "a", "f", []byte("old")))
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
			if steps++; steps == fail {
				return broken
			}
			return nil
		}))
		err := durable.Replace(fs, "a", "f", []byte("new"))
		got, readErr := durable.Read(mem, "a/f")
		require.NoError(t, readErr)
		if err == nil {
			require.Equal(t, "new", string(got))
			require.Greater(t, fail, 5, "no operation's error is dropped")
			return
		}
		require.ErrorIs(t, err, broken)
		require.Contains(t, []string{"old", "new"}, string(got))
		require.NoError(t, durable.Replace(mem, "a", "f", []byte("newer")))
	}
}

// A folder that MkdirAll made, and a file that Write made in it, are there after a crash.
func TestMkdirAllCrash(t *testing.T) {
	mem := vfs.NewCrashableMem()
	require.NoError(t, durable.MkdirAll(mem, "a/b/c"))
	require.NoError(t, durable.Write(mem, "a/b/c", "f", []byte("x")))
	after := mem.CrashClone(vfs.CrashCloneCfg{})
	got, err := durable.Read(after, "a/b/c/f")
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
	got, err = durable.Read(after, "a/b/c/g")
	require.NoError(t, err)
	require.Nil(t, got)
}

// ParseTwice takes the first copy that parse accepts.
func TestTwice(t *testing.T) {
	parse := func(b []byte) (string, error) {
		if !strings.HasPrefix(string(b), "good") {
			return "", errors.New("damaged")
		}
		return string(b[:4]), nil
	}
	for _, damaged := range []int{-1, 0, durable.SecondCopy} {
		b := durable.Twice([]byte("good"))
		if damaged >= 0 {
			b[damaged]++
		}
		got, err := durable.ParseTwice(b, parse)
		require.NoError(t, err)
		require.Equal(t, "good", got)
	}
	_, err := durable.ParseTwice([]byte("bad"), parse)
	require.Error(t, err)
}
