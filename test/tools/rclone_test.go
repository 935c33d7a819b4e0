package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/test/rest"
)

// rclone copies, syncs, compares, lists, moves and deletes: Debian's, which insists on HTTPS, and the newest.
func TestRclone(t *testing.T) {
	needTools(t)
	t.Run("debian", func(t *testing.T) { testRclone(t, "/usr/bin/rclone", true) })
	t.Run("newest", func(t *testing.T) { testRclone(t, built(t, "rclone"), false) })
}

func testRclone(t *testing.T, path string, secure bool) {
	p := startDev(t)
	f := newRelay(t, p.PortBase)
	rclone := program{name: "rclone", path: path, relay: f, env: []string{
		"RCLONE_CONFIG=" + filepath.Join(t.TempDir(), "rclone.conf"), "RCLONE_RETRIES=1",
		"RCLONE_CONFIG_AZ_TYPE=azureblob", "RCLONE_CONFIG_AZ_ACCOUNT=" + string(rest.DevAccount), "RCLONE_CONFIG_AZ_KEY=" + rest.DevKey,
	}}
	if secure {
		rclone.env = append(rclone.env, f.secure()...)
	} else {
		rclone.env = append(rclone.env, "RCLONE_CONFIG_AZ_ENDPOINT="+f.url+"/"+string(rest.DevAccount))
	}
	version, _, _ := strings.Cut(rclone.must(t, "version"), "\n")
	rclone.name = version
	tree := newTree(t)
	rclone.must(t, "copy", tree, "az:one")
	rclone.must(t, "check", "--download", tree, "az:one")
	change(t, tree)
	rclone.must(t, "sync", tree, "az:one")
	rclone.must(t, "check", "--download", tree, "az:one")
	files := sums(t, tree)
	require.ElementsMatch(t, names(files), lines(rclone.must(t, "lsf", "-R", "--files-only", "az:one")))
	back := t.TempDir()
	rclone.must(t, "copy", "az:one", back)
	requireSame(t, tree, back)

	moved := filepath.Join(t.TempDir(), "moved.bin")
	require.NoError(t, os.WriteFile(moved, []byte("a file that moves"), 0o600))
	rclone.must(t, "move", moved, "az:one/in")
	require.NoFileExists(t, moved)
	require.Equal(t, "a file that moves", rclone.must(t, "cat", "az:one/in/moved.bin"))
	for _, verb := range []string{"copyto", "moveto"} { // Copies at the server.
		rclone.must(t, verb, "az:one/in/moved.bin", "az:one/out/"+verb)
		require.Equal(t, "a file that moves", rclone.must(t, "cat", "az:one/out/"+verb))
	}

	rclone.must(t, "delete", "az:one/small")
	for name := range files {
		if strings.HasPrefix(name, "small/") {
			delete(files, name)
		}
	}
	left := lines(rclone.must(t, "lsf", "-R", "--files-only", "--exclude", "/in/**", "--exclude", "/out/**", "az:one"))
	require.ElementsMatch(t, names(files), left)
	rclone.must(t, "purge", "az:one")
	require.NotContains(t, lines(rclone.must(t, "lsf", "az:")), "one/")
}

func names(files map[string]string) (out []string) {
	for name := range files {
		out = append(out, name)
	}
	return out
}

func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}
