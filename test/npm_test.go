package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/devproc"
	"antipode/test/rest"
)

// testNPM runs npm/tables.mjs, the JavaScript client's half of TestSDK, with the
// packages that its lock file names. Without npm or Node it fails.
func testNPM(t *testing.T, p *devproc.Process) {
	ctx, cancel := contextFor(t, 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc", "tables.mjs"} {
		b, err := os.ReadFile(filepath.Join("npm", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	install := exec.CommandContext(ctx, "npm", "ci", "--prefer-offline")
	install.Dir = dir
	out, err := install.CombinedOutput()
	require.NoError(t, err, "npm ci:\n%s", out)

	ctx, cancel = contextFor(t, 2*time.Minute)
	defer cancel()
	script := exec.CommandContext(ctx, "node", "tables.mjs")
	script.Dir = dir
	script.Env = append(os.Environ(),
		"PRIMARY="+endpoint(p, hostStyle, geo.Table, false),
		"SECONDARY="+endpoint(p, hostStyle, geo.Table, true),
		"ACCOUNT="+string(rest.DevAccount), "KEY="+rest.DevKey)
	out, err = script.CombinedOutput()
	require.NoError(t, err, "node tables.mjs:\n%s", out)
	require.Contains(t, string(out), "all checks passed")
}
