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

// npmScript is one script and how it addresses the account.
type npmScript struct {
	service geo.Service
	style   style
}

// npmScripts are the JavaScript clients' half of TestSDK. azure-storage 2.10.7 resolves no
// *.localhost.
func npmScripts() map[string]npmScript {
	return map[string]npmScript{
		"tables.mjs": {geo.Table, hostStyle}, "old-tables.cjs": {geo.Table, pathStyle},
		"tables-2013.cjs": {geo.Table, hostStyle}, "tables-2014.cjs": {geo.Table, hostStyle}, "blobs.mjs": {geo.Blob, hostStyle}, "old-blobs.cjs": {geo.Blob, pathStyle},
		"queues.mjs": {geo.Queue, hostStyle}, "old-queues.cjs": {geo.Queue, pathStyle},
	}
}

// testNPM runs the scripts with the packages that the lock file names. Without npm or
// Node it fails.
func testNPM(t *testing.T, p *devproc.Process) {
	var names []string
	for name := range npmScripts() {
		names = append(names, name)
	}
	dir := npmFolder(t, append(names, generations)...)
	for name, s := range npmScripts() {
		t.Run(name, func(t *testing.T) { runScript(t, p, dir, name, s) })
	}
	t.Run("quickstart", func(t *testing.T) { testQuickstart(t, p, dir) })
	t.Run("generations", func(t *testing.T) { testGenerations(t, p, dir) })
}

// npmFolder returns a folder with scripts and the packages that the lock file names.
func npmFolder(t *testing.T, scripts ...string) string {
	ctx, cancel := contextFor(t, 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	for _, name := range append([]string{"package.json", "package-lock.json", ".npmrc"}, scripts...) {
		b, err := os.ReadFile(filepath.Join("npm", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	install := exec.CommandContext(ctx, "npm", "ci", "--prefer-offline")
	install.Dir = dir
	out, err := install.CombinedOutput()
	require.NoError(t, err, "npm ci:\n%s", out)
	return dir
}

// runScript runs a script with variables of its own in its environment.
func runScript(t *testing.T, p *devproc.Process, dir, name string, s npmScript, variables ...string) {
	ctx, cancel := contextFor(t, 2*time.Minute)
	defer cancel()
	script := exec.CommandContext(ctx, "node", name)
	script.Dir = dir
	script.Env = append(append(os.Environ(), variables...),
		"PRIMARY="+endpoint(p, s.style, s.service, false),
		"SECONDARY="+endpoint(p, s.style, s.service, true),
		"ACCOUNT="+string(rest.DevAccount), "KEY="+rest.DevKey)
	out, err := script.CombinedOutput()
	require.NoError(t, err, "node %s:\n%s", name, out)
	require.Contains(t, string(out), "all checks passed")
}
