package config

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata")

// Every example of the documents is good, with the warnings and the values, defaults
// included, that stand in testdata (golden).
func TestExamples(t *testing.T) {
	examples, err := filepath.Glob("../../docs/node/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, examples)
	for _, file := range examples {
		n, problems, err := Load(file)
		require.NoError(t, err, file)
		got, err := json.MarshalIndent(struct {
			Node     Node
			Warnings Problems
		}{n, problems}, "", "  ")
		require.NoError(t, err)
		golden(t, strings.TrimSuffix(filepath.Base(file), ".yaml")+".json", string(got)+"\n")
	}
}

// Each file in testdata/bad is refused, and what is said of it stands beside it: all
// problems at once, with line, field, value and remedy (golden).
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		_, problems, err := Load(file)
		require.Error(t, err, file)
		require.Equal(t, problems, err, file)
		golden(t, "bad/"+strings.TrimSuffix(filepath.Base(file), ".yaml")+".txt", problems.Error()+"\n")
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, file)
}

// A file of more than the bound is refused unread, and one that is not there is an error
// of its own kind.
func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("#", BytesMax+1)), 0o600))
	_, _, err := Load(file)
	require.ErrorContains(t, err, "longer than")
	_, problems, err := Load(file + ".none")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Empty(t, problems)
}

// Any text gives a node or problems; a node that was accepted is accepted again as it is
// written out, and stays what it is.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"../../docs/node/*.yaml", "testdata/bad/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, problems, err := Parse(data)
		if err != nil {
			require.NotZero(t, problems.Errors())
			for _, p := range problems {
				require.NotEmpty(t, p.Message)
			}
			return
		}
		require.Zero(t, problems.Errors())
		out, err := yaml.Marshal(n)
		require.NoError(t, err)
		again, _, err := Parse(out)
		require.NoError(t, err, "%s", out)
		if len(n.Peers)+len(again.Peers) == 0 {
			n.Peers, again.Peers = nil, nil
		}
		first, err := json.Marshal(n)
		require.NoError(t, err)
		second, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, strings.ReplaceAll(string(first), "[]", "null"), strings.ReplaceAll(string(second), "[]", "null"))
	})
}

// Sizes, counts and times that cannot be are refused with the field, the value and what is allowed:
// zero, negative, not whole, and too large (table).
func TestNumbers(t *testing.T) {
	single, err := os.ReadFile("../../docs/node/single.yaml")
	require.NoError(t, err)
	const outside = "nats: {mode: outside, urls: ['nats://a:1'], replicas: "
	const (
		whole   = "want a whole number, from 1"
		reserve = "write a number of bytes from 1 to 1125899906842624, or leave it out for the default of 512 MiB"
		cache   = "write a number of bytes from 100663296 to 1099511627776, or leave it out for the default of 256 MiB"
		rest    = "write a span of time, such as 40s, or 0s for none"
		hydrate = "write a span of time up to 360h, such as 1h, or 0s for none"
		target  = "write a span of time above zero, such as 15m"
		budget  = "write a number of bytes from 1 to 1125899906842624, or leave it out for the default"
		age     = "write a span of time above zero, such as 72h"
		copies  = "write a name such as storage.example, *.storage.example for all names under it, or an address; perhaps with a port"
		count   = "write 1, 3 or 5, and no more than the cluster has servers"
	)
	for _, c := range []struct{ line, field, value, want string }{
		{"cache_bytes: 100663296", "", "", ""},
		{"cache_bytes: 0", "", "", ""},
		{"cache_bytes: 100663295", "cache_bytes", "100663295", cache},
		{"cache_bytes: 1099511627777", "cache_bytes", "1099511627777", cache},
		{"reserve_bytes: 1", "", "", ""},
		{"reserve_bytes: 1125899906842624", "", "", ""},
		{"reserve_bytes: 0", "", "", ""}, // As `cluster start` writes it: the default.
		{"reserve_bytes: -1", "reserve_bytes", "-1", whole},
		{"reserve_bytes: 1GiB", "reserve_bytes", "1GiB", whole},
		{"reserve_bytes: 1.5", "reserve_bytes", "1.5", whole},
		{"reserve_bytes: 1125899906842625", "reserve_bytes", "1125899906842625", reserve},
		{"reserve_bytes: 18446744073709551616", "reserve_bytes", "18446744073709551616", whole},
		{"name_rest: 0s", "", "", ""},
		{"name_rest: 0", "", "", ""},
		{"name_rest: -1s", "name_rest", "-1s", rest},
		{"name_rest: 40", "name_rest", "40", rest},
		{"name_rest: 9999999h", "name_rest", "9999999h", rest},
		{"rehydration: 0s", "", "", ""},
		{"rehydration: 360h", "", "", ""},
		{"rehydration: 361h", "rehydration", "361h", hydrate},
		{"rehydration: -1s", "rehydration", "-1s", hydrate},
		{"rehydration: 1", "rehydration", "1", hydrate},
		{"copy_sources: [{host: storage.example}, {host: '*.Blob.example.:8443'}, {host: minio.internal:9000, allow_private: true}]", "", "", ""},
		{"copy_sources: [{host: 10.0.0.7}, {host: '127.0.0.1:9000'}, {host: '2001:db8::1'}, {host: '[2001:db8::1]:9000'}]", "", "", ""},
		{"copy_sources: [{host: 'http://storage.example'}]", "copy_sources[0].host", "http://storage.example", copies},
		{"copy_sources: [{host: storage.example/path}]", "copy_sources[0].host", "storage.example/path", copies},
		{"copy_sources: [{host: '*'}]", "copy_sources[0].host", "*", copies},
		{"copy_sources: [{host: 's*.example'}]", "copy_sources[0].host", "s*.example", copies},
		{"copy_sources: [{host: '*.10'}]", "copy_sources[0].host", "*.10", copies},
		{"copy_sources: [{host: 'storage.example:0'}]", "copy_sources[0].host", "storage.example:0", copies},
		{"copy_sources: [{host: 'storage.example:65536'}]", "copy_sources[0].host", "storage.example:65536", copies},
		{"copy_sources: [{host: 0.0.0.0}]", "copy_sources[0].host", "0.0.0.0", copies},
		{"copy_sources: [{host: '[::]:80'}]", "copy_sources[0].host", "[::]:80", copies},
		{"copy_sources: [{host: 10.0.0.0/8}]", "copy_sources[0].host", "10.0.0.0/8", copies},
		{"copy_sources: [{host: storage.example, allow_private: yes}]", "copy_sources[0].allow_private", "yes", "want true or false"},
		{"rpo_target: 90s", "", "", ""},
		{"rpo_target: 0s", "rpo_target", "0s", target},
		{"rpo_target: -1m", "rpo_target", "-1m", target},
		{"rpo_target: 15", "rpo_target", "15", target},
		{"outbox_bytes: 1", "", "", ""},
		{"outbox_bytes: 0", "", "", ""},
		{"outbox_bytes: 64GiB", "outbox_bytes", "64GiB", whole},
		{"outbox_bytes: 1125899906842625", "outbox_bytes", "1125899906842625", budget},
		{"outbox_account_bytes: 1", "", "", ""},
		{"outbox_account_bytes: 1125899906842625", "outbox_account_bytes", "1125899906842625", budget},
		{"bootstrap_bytes_per_second: 20000000", "", "", ""},
		{"bootstrap_bytes_per_second: 0", "", "", ""},
		{"bootstrap_bytes_per_second: -1", "bootstrap_bytes_per_second", "-1", whole},
		{"bootstrap_bytes_per_second: 1125899906842625", "bootstrap_bytes_per_second", "1125899906842625", budget},
		{"outbox_age: 168h", "", "", ""},
		{"outbox_age: 0s", "outbox_age", "0s", age},
		{"outbox_age: 3 days", "outbox_age", "3 days", age},
		{outside + "1}", "", "", ""},
		{outside + "2}", "nats.replicas", "2", count},
		{outside + "-1}", "nats.replicas", "-1", whole},
	} {
		n, problems, err := Parse([]byte(string(single) + "\n" + c.line + "\n"))
		if c.want == "" {
			require.NoError(t, err, c.line)
			require.NotZero(t, n.ReserveBytes, c.line)
			continue
		}
		require.Error(t, err, c.line)
		require.Equal(t, 1, problems.Errors(), "%s: %v", c.line, problems)
		require.ErrorContains(t, err, c.field+` "`+c.value+`": `+c.want, c.line)
	}
}
