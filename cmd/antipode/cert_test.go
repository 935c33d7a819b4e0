package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
	"antipode/internal/identity"
)

// run executes a command line without its first words.
func run(cmd *cobra.Command, args ...string) (string, error) {
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.Execute()
	return out.String(), err
}

// What `antipode cert` writes opens as the node it is for; keys are for the owner alone;
// nothing is ever overwritten, and a refusal leaves nothing half written.
func TestCert(t *testing.T) {
	dir := t.TempDir()
	ca, out := filepath.Join(dir, "ca"), filepath.Join(dir, "deep", "north-1")
	said, err := run(certCommand(), "ca", "--out", ca, "--name", "prod")
	require.NoError(t, err)
	require.Contains(t, said, "ca.key")
	node := []string{"node", "--ca", ca, "--location", "north", "--node", "1", "--host", "n1.example,10.0.0.1", "--out", out}
	said, err = run(certCommand(), node...)
	require.NoError(t, err)
	require.Contains(t, said, "antipode://prod/north/node/1")

	files := identity.Files{CA: filepath.Join(out, caCertFile), Cert: filepath.Join(out, nodeCertFile), Key: filepath.Join(out, nodeKeyFile)}
	self := identity.Identity{Stamp: "prod", Location: "north", Node: 1}
	k, err := identity.OpenKeyring(self, files, clock.System{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Equal(t, self, k.Self())
	for _, file := range []string{filepath.Join(ca, caCertFile), filepath.Join(ca, caKeyFile), files.CA, files.Cert, files.Key} {
		for path, want := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, want, info.Mode().Perm(), path)
		}
	}

	before, err := os.ReadFile(files.Key)
	require.NoError(t, err)
	_, err = run(certCommand(), node...)
	require.ErrorContains(t, err, "not overwritten")
	_, err = run(certCommand(), "ca", "--out", ca)
	require.ErrorContains(t, err, "not overwritten")
	after, err := os.ReadFile(files.Key)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoError(t, os.Remove(files.Key))
	require.NoError(t, os.Remove(files.Cert))
	_, err = run(certCommand(), node...)
	require.ErrorContains(t, err, "ca.crt is there already")
	require.NoFileExists(t, files.Key)
}

// Bad flags are refused with what to write, and nothing is written (table).
func TestCertRefuses(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca")
	_, err := run(certCommand(), "ca", "--out", ca, "--days", "100")
	require.NoError(t, err)
	node := func(change ...string) []string {
		args := []string{"node", "--ca", ca, "--location", "north", "--node", "1", "--host", "h", "--days", "90", "--out", filepath.Join(dir, "out")}
		return append(args, change...)
	}
	for says, args := range map[string][]string{
		"required flag":                {"ca"},
		"stamp name":                   {"ca", "--out", filepath.Join(dir, "out"), "--name", "Prod 1"},
		"above zero":                   {"ca", "--out", filepath.Join(dir, "out"), "--days", "0"},
		"--days 300000: want":          {"ca", "--out", filepath.Join(dir, "out"), "--days", "300000"},
		"--days -1: want":              node("--days", "-1"),
		"--days 36501: want":           {"gateway", "--ca", ca, "--name", "east", "--out", filepath.Join(dir, "out"), "--days", "36501"},
		"antipode cert ca":             node("--ca", dir),
		"location":                     node("--location", "North"),
		"numbered from 1":              node("--node", "0"),
		"without ports":                node("--host", "h:10100"),
		"after that of its authority":  node("--days", "365"),
		"unknown command":              {"nodes"},
		"did you mean node?":           {"nodes"},
		"did you mean gateway?":        {formerGatewayCommands()[1]},
		"required flag(s) \"ca\", \"h": {"node", "--location", "north"},
	} {
		_, err := run(certCommand(), args...)
		require.ErrorContains(t, err, says, "%v", args)
	}
	require.NoDirExists(t, filepath.Join(dir, "out"))
	said, err := run(certCommand())
	require.NoError(t, err)
	require.Contains(t, said, "antipode cert node --ca ca")
}

// The certificate of a gateway opens as that, and not as a node's.
func TestCertGateway(t *testing.T) {
	dir := t.TempDir()
	ca, out := filepath.Join(dir, "ca"), filepath.Join(dir, "gateway")
	_, err := run(certCommand(), "ca", "--out", ca, "--name", "prod")
	require.NoError(t, err)
	said, err := run(certCommand(), "gateway", "--ca", ca, "--name", "east-1", "--out", out)
	require.NoError(t, err)
	require.Contains(t, said, "antipode://prod/gateway/east-1, 365 days")
	files := identity.Files{CA: filepath.Join(out, caCertFile), Cert: filepath.Join(out, nodeCertFile), Key: filepath.Join(out, nodeKeyFile)}
	log := slog.New(slog.DiscardHandler)
	k, err := identity.OpenGatewayKeyring(files, clock.System{}, log)
	require.NoError(t, err)
	require.Equal(t, identity.Identity{Stamp: "prod", Gateway: "east-1"}, k.Self())
	_, err = identity.OpenKeyring(identity.Identity{Stamp: "prod", Location: "north", Node: 1}, files, clock.System{}, log)
	require.ErrorIs(t, err, identity.ErrRefused)
	_, err = run(certCommand(), "node", "--ca", ca, "--location", "north", "--node", "1", "--host", "h", "--out", filepath.Join(dir, "n"))
	require.NoError(t, err)
	node := identity.Files{CA: filepath.Join(dir, "n", caCertFile), Cert: filepath.Join(dir, "n", nodeCertFile), Key: filepath.Join(dir, "n", nodeKeyFile)}
	_, err = identity.OpenGatewayKeyring(node, clock.System{}, log)
	require.ErrorContains(t, err, "not of a gateway")
	for _, name := range []string{"", "East", "a/b"} {
		_, err = run(certCommand(), "gateway", "--ca", ca, "--name", name, "--out", filepath.Join(dir, "bad"))
		require.Error(t, err, name)
	}
	_, err = os.Stat(filepath.Join(dir, "bad"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
