package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/test/devproc"
)

// A server that cannot start says in one line what is in the way and what to do, and
// exits with 1: a data folder in use, unusable or of another format, a busy port, a
// flag that makes no sense.
func TestStartRefused(t *testing.T) {
	p := startDev(t)
	free, err := devproc.FreePortBase()
	require.NoError(t, err)

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	newer := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(newer, "VERSION"), []byte("antipode data 99\n"), 0o600))

	older := t.TempDir() // With a Pebble for the log.
	require.NoError(t, os.WriteFile(filepath.Join(older, "VERSION"), []byte("antipode data 1\n"), 0o600))

	for name, c := range map[string]struct {
		data string
		base int
		args []string
		want []string
	}{
		"folder in use":        {p.DataDir(), free, nil, []string{p.DataDir(), "in use", "--data"}},
		"folder is a file":     {file, free, nil, []string{file, "--data"}},
		"folder of the future": {newer, free, nil, []string{newer, "antipode data 99", "--data"}},
		"folder of the past":   {older, free, nil, []string{older, "antipode data 1", "antipode data 2", "--data"}},
		"busy port":            {t.TempDir(), p.PortBase, nil, []string{strconv.Itoa(p.PortBase), "in use", "--port-base"}},
		"port out of range":    {t.TempDir(), 65000, nil, []string{"--port-base", "65000"}},
		"account without key":  {t.TempDir(), free, []string{"--accounts", "photos"}, []string{"--accounts", "photos"}},
		"key not base64":       {t.TempDir(), free, []string{"--accounts", "photos:???"}, []string{"photos", "base64"}},
		"unknown log level":    {t.TempDir(), free, []string{"--log-level", "loud"}, []string{"--log-level", "loud", "debug"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"dev", "--quiet", "--data", c.data, "--port-base", strconv.Itoa(c.base)}, c.args...)
			out, err := exec.CommandContext(t.Context(), p.Binary, args...).CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 1, exit.ExitCode(), "%s", out)
			text := strings.TrimRight(string(out), "\n")
			require.NotContains(t, text, "\n", "one line")
			for _, part := range c.want {
				require.Contains(t, text, part)
			}
		})
	}
}
