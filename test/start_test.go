package test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
	"antipode/test/devproc"
	"antipode/test/rest"
)

// A server that cannot start says in one line what is in the way and what to do, and exits with 1: a data folder in use,
// unusable or of another format, a busy port. With 2 where the command line was wrong: a flag that makes no sense.
func TestStartRefused(t *testing.T) {
	p := startDev(t)
	requirePrivate(t, p.DataDir())
	free, err := devproc.FreePortBase(t)
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
		exit command.Code
		want []string
	}{
		"folder in use":        {p.DataDir(), free, nil, command.Failed, []string{p.DataDir(), "in use", "--data"}},
		"folder is a file":     {file, free, nil, command.Failed, []string{file, "--data"}},
		"folder of the future": {newer, free, nil, command.Failed, []string{newer, "antipode data 99", "--data"}},
		"folder of the past":   {older, free, nil, command.Failed, []string{older, "antipode data 1", "antipode data 3", "--data"}},
		"busy port":            {t.TempDir(), p.PortBase, nil, command.Failed, []string{strconv.Itoa(p.PortBase), "in use", "--port-base"}},
		"port out of range":    {t.TempDir(), 65000, nil, command.Usage, []string{"--port-base", "65000"}},
		"account without key":  {t.TempDir(), free, []string{"--accounts", "photos"}, command.Usage, []string{"--accounts", "photos"}},
		"key not base64":       {t.TempDir(), free, []string{"--accounts", "photos:???"}, command.Usage, []string{"photos", "base64"}},
		"unknown log level":    {t.TempDir(), free, []string{"--log-level", "loud"}, command.Usage, []string{"--log-level", "loud", "debug"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"dev", "--quiet", "--data", c.data, "--port-base", strconv.Itoa(c.base)}, c.args...)
			out, err := exec.CommandContext(t.Context(), p.Binary, args...).CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.EqualValues(t, c.exit, exit.ExitCode(), "%s", out)
			text := strings.TrimRight(string(out), "\n")
			require.NotContains(t, text, "\n", "one line")
			for _, part := range c.want {
				require.Contains(t, text, part)
			}
		})
	}
}

// A server that is stopped while it starts ends as one that runs: with 0 and without an
// error.
func TestStopWhileStarting(t *testing.T) {
	if testing.Short() {
		t.Skip("end-to-end tests need more time than -short has")
	}
	base, err := devproc.FreePortBase(t)
	require.NoError(t, err)
	dir := t.TempDir()
	server, err := devproc.Run("antipode dev", filepath.Join(dir, "output"), devproc.Binary(),
		"dev", "--data", filepath.Join(dir, "data"), "--port-base", strconv.Itoa(base))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Kill9()) })
	eventually(t, readyWait, "it reports that it starts", func(context.Context) error {
		if text := server.Output(); !strings.Contains(text, "Starting ") {
			return fmt.Errorf("it said %q", text)
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), stopWait)
	defer cancel()
	require.NoError(t, server.Stop(ctx))
	require.Contains(t, server.Output(), "Stopping: ")
	require.NotContains(t, server.Output(), "antipode: ")
}

// The keys of --accounts are printed nowhere, work, and are the same in the next start; a
// start with another one is refused by name.
func TestAccountsOfOnesOwn(t *testing.T) {
	const key1, key2 = "Zmlyc3Qga2V5IG9mIHBob3Rvcw==", "c2Vjb25kIGtleSBvZiBwaG90b3M="
	p := startDev(t, "--accounts", string(rest.DevAccount)+":"+rest.DevKey+",photos:"+key1+":"+key2, "--data-host", "storage.internal")
	ctx, cancel := context.WithTimeout(t.Context(), stopWait)
	defer cancel()
	requireHosts(t, p, "storage.internal")
	var keys admin.Keys
	// The process is ready before it has made all accounts of its command line.
	eventually(t, readyWait, "photos is made", func(ctx context.Context) (err error) {
		keys, err = p.Admin().Keys(ctx, "photos")
		return err
	})
	require.Equal(t, admin.Keys{Name: "photos", Key1: key1, Key2: key2}, keys)
	require.NoError(t, p.Stop(ctx))

	args := []string{"dev", "--data", p.DataDir(), "--port-base", strconv.Itoa(p.PortBase), "--accounts", "photos:" + key2 + ":b3RoZXI="}
	out, err := exec.CommandContext(ctx, p.Binary, args...).CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Contains(t, string(out), "account photos exists and does not take the given key2")

	output := filepath.Join(t.TempDir(), "output")
	server, err := devproc.Run("antipode dev", output, p.Binary, append(args[:len(args)-1], "photos:"+key2)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Kill9()) })
	eventually(t, readyWait, "it runs", func(context.Context) error {
		if text := server.Output(); !strings.Contains(text, "Antipode runs: ") {
			return fmt.Errorf("it said %q", text)
		}
		return nil
	})
	for _, text := range []string{p.Output(), string(out), server.Output()} {
		require.NotContains(t, text, key1)
		require.NotContains(t, text, key2)
	}
	require.Contains(t, server.Output(), "AccountName=photos;AccountKey=<key1>;")
}

// requireHosts checks that the data ports of dev answer under the name that was configured, and not under another one:
// those of the gateway, and of each location, in all services.
func requireHosts(t *testing.T, p *devproc.Process, name string) {
	t.Helper()
	for _, ports := range []int{0, devproc.NorthPorts, devproc.SouthPorts} {
		for service := range 3 {
			for host, want := range map[string]string{name: "404 401 403", "LOCALHOST": "404 401 403", "198.51.100.7": "404 401 403", "evil.example": "400", name + ".evil.example": "400"} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/%s/things", p.PortBase+ports+service, rest.DevAccount), nil)
				require.NoError(t, err)
				r.Host = host
				resp, err := p.HTTP.Do(r)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Contains(t, want, strconv.Itoa(resp.StatusCode), "%s at port base + %d", host, ports+service)
			}
		}
	}
}
