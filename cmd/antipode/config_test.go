package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// `config check` passes the examples of the documents, and names field, line, value and
// remedy of what is wrong, for people and for programs; its error makes the exit 1.
func TestConfigCheck(t *testing.T) {
	said, err := run(configCommand(), "check", "../../docs/node/north-1.yaml")
	require.NoError(t, err)
	require.Contains(t, said, "good; warnings: 0")
	said, err = run(configCommand(), "check", "--gateway", "../../docs/gateway/gateway.yaml")
	require.NoError(t, err)
	require.Contains(t, said, "good; warnings: 0")

	file := filepath.Join(t.TempDir(), "node.yaml")
	require.NoError(t, os.WriteFile(file, []byte("node: 1\nlocation: North\nport: 1\n"), 0o600))
	said, err = run(configCommand(), "check", file)
	require.ErrorContains(t, err, "errors: 1, warnings: 0")
	require.Contains(t, said, "line 3: port: there is no such field")

	require.NoError(t, os.WriteFile(file, []byte("node: 1\nlocation: North\ndata: /d\n"), 0o600))
	said, err = run(configCommand(), "check", "--output", "json", file)
	require.ErrorContains(t, err, "errors: 5, warnings: 1")
	var got checked
	require.NoError(t, json.Unmarshal([]byte(said), &got))
	require.False(t, got.Valid)
	require.Equal(t, file, got.File)
	last := got.Problems[len(got.Problems)-1]
	require.Equal(t, "location", last.Field)
	require.Equal(t, "North", last.Value)
	require.Equal(t, 2, last.Line)

	witness := filepath.Join(t.TempDir(), "witness.yaml")
	require.NoError(t, os.WriteFile(witness, []byte("location: place\nlease: 1h\n"), 0o600))
	said, err = run(configCommand(), "check", "--witness", witness)
	require.Error(t, err)
	require.Contains(t, said, "lease")
	require.NotContains(t, said, "fault_domain")
	_, err = run(configCommand(), "check", "--witness", "--dns", witness)
	require.ErrorContains(t, err, "want one of them")

	_, err = run(configCommand(), "check", filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = run(configCommand(), "check", file, "--output", "xml")
	require.ErrorContains(t, err, "text or json")
}
