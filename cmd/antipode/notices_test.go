package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The receiver of antipode dev comes from flags, or from the environment; a bad URL is refused, and not repeated, since it may
// hold a token.
func TestNoticesFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(" of the file\n"), 0o600))
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	const one, two = "http://127.0.0.1:9/hook?token=1", "https://pager.example/antipode"
	for _, c := range []struct {
		flags    noticesFlags
		env      map[string]string
		url, key string
		err      string
	}{
		{},
		{env: map[string]string{noticesKeyEnv: "alone"}},
		{flags: noticesFlags{url: one}, url: one},
		{env: map[string]string{noticesEnv: two, noticesKeyEnv: "k"}, url: two, key: "k"},
		{flags: noticesFlags{url: one, keyFile: file}, env: map[string]string{noticesEnv: two, noticesKeyEnv: "k"}, url: one, key: "of the file"},
		{flags: noticesFlags{keyFile: file}, err: "goes with --notices-url"},
		{flags: noticesFlags{url: one, keyFile: empty}, err: "has no key"},
		{flags: noticesFlags{url: one, keyFile: file + "x"}, err: "no such file"},
		{flags: noticesFlags{url: "ftp://secret"}, err: "write the URL of the receiver"},
		{env: map[string]string{noticesEnv: "secret"}, err: "write the URL of the receiver"},
	} {
		o, err := c.flags.options(func(name string) string { return c.env[name] })
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			require.NotContains(t, err.Error(), "secret")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.url, o.URL)
		require.Equal(t, c.key, string(o.Key))
	}
}
