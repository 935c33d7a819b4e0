package tools

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// smallFiles is how many files of a tree are small.
const smallFiles = 200

// newTree fills a new folder with -bytes of random data: three large files and many small ones.
func newTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i := range int64(3) {
		writeFile(t, dir, fmt.Sprintf("large-%d.bin", i), *size/3-(1<<20)+i)
	}
	for i := range int64(smallFiles) {
		writeFile(t, dir, fmt.Sprintf("small/%d/a file, %d.txt", i%7, i), i*1500/10)
	}
	return dir
}

// writeFile writes random bytes to a file of a tree.
func writeFile(t *testing.T, dir, name string, n int64) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.Create(path)
	require.NoError(t, err)
	var seed [32]byte
	copy(seed[:], fmt.Sprint(name, n))
	_, err = io.CopyN(f, rand.NewChaCha8(seed), n)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// change adds, changes and removes files of a tree.
func change(t *testing.T, dir string) {
	t.Helper()
	writeFile(t, dir, "small/new.txt", 4321)
	writeFile(t, dir, "large-1.bin", 5<<20)
	require.NoError(t, os.Remove(filepath.Join(dir, "large-2.bin")))
}

// sums are the digests of a tree's files, by their names.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		out[filepath.ToSlash(name)] = fmt.Sprintf("%x", h.Sum(nil))
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		return err
	}))
	return out
}

// requireSame requires that two trees are equal.
func requireSame(t *testing.T, want, got string) {
	t.Helper()
	files := sums(t, want)
	require.Greater(t, len(files), smallFiles)
	require.Equal(t, files, sums(t, got))
}
