package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/command"
)

// answering is a Prometheus that has one series for each query.
func answering(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"location":"north"},"values":[[1,"2"]]}]}}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// The page is written to a file, or served until the command is interrupted. Without a Prometheus there is one line, and no file.
func TestDashboards(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	none := func(string) string { return "" }
	var errOut bytes.Buffer
	require.Equal(t, command.Done, run(t.Context(), []string{"dashboards", "--prometheus", answering(t), "--html", file}, none, io.Discard, &errOut), errOut.String())
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(page), "Antipode: geo-replication")
	require.NotContains(t, string(page), "http-equiv", "a file does not load itself again")

	for line, want := range map[string]string{
		"--prometheus http://127.0.0.1:1 --html " + filepath.Join(t.TempDir(), "no.html"): "no Prometheus answers at http://127.0.0.1:1 (",
		"--prometheus http://127.0.0.1:1":                                                 "start one with the files of deploy/prometheus",
		"--last 10s":                                                                      "--last is 10s",
		"--prometheus ://":                                                                "--prometheus",
		"--listen 192.0.2.1:1":                                                            "--listen 192.0.2.1:1",
		"photos":                                                                          "unknown command",
		"--html /nowhere/page.html":                                                       "/nowhere/page.html",
	} {
		args := strings.Fields("dashboards " + line)
		if !strings.Contains(line, "--prometheus") {
			args = append(args, "--prometheus", answering(t))
		}
		errOut.Reset()
		require.NotEqual(t, command.Done, run(t.Context(), args, none, io.Discard, &errOut), line)
		require.Contains(t, errOut.String(), want, line)
		require.Equal(t, 1, strings.Count(errOut.String(), "\n"), errOut.String())
	}
}

func TestDashboardsAreServed(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	code := make(chan command.Code, 1)
	go func() {
		code <- run(ctx, []string{"dashboards", "--prometheus", answering(t), "--listen", "127.0.0.1:0", "--host", "ops.example"}, func(string) string { return "" }, w, io.Discard)
	}()
	line := make([]byte, 200)
	n, err := r.Read(line)
	require.NoError(t, err)
	url := strings.TrimSuffix(strings.Fields(string(line[:n]))[2], ",")
	resp, err := http.Get(url)
	require.NoError(t, err)
	page, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(page), "http-equiv")
	for host, want := range map[string]int{"ops.example": http.StatusOK, "evil.example": http.StatusForbidden} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode, host)
	}
	stop()
	require.Equal(t, command.Done, <-code)
}
