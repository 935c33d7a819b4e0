package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/test/devproc"
	"antipode/test/rest"
)

// devConnection is how the program of the quick start names the account on the default ports.
const devConnection = `"UseDevelopmentStorage=true"`

var (
	quickProgram = regexp.MustCompile("(?s)```js\n(.*?)```")
	quickInstall = regexp.MustCompile("`npm install @azure/storage-blob@([0-9.]+)`")
	quickPrinted = regexp.MustCompile(`(?m)\Aat the secondary: hello\nlive up to (\S+Z)\n\z`)
)

// testQuickstart runs the program of the quick start as it stands there, but for the ports of this server, with the
// version that the page installs.
func testQuickstart(t *testing.T, p *devproc.Process, dir string) {
	text, err := os.ReadFile("../docs/quickstart.md")
	require.NoError(t, err)
	var manifest struct{ Dependencies map[string]string }
	b, err := os.ReadFile("npm/package.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &manifest))
	install := quickInstall.FindSubmatch(text)
	require.NotNil(t, install)
	require.Equal(t, manifest.Dependencies["@azure/storage-blob"], string(install[1]), "the quick start installs another version than the tests")

	programs := quickProgram.FindAllSubmatch(text, -1)
	require.Len(t, programs, 1)
	program := string(programs[0][1])
	require.Equal(t, 1, strings.Count(program, devConnection))
	connection, err := json.Marshal(fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=http://127.0.0.1:%d/%[1]s",
		rest.DevAccount, rest.DevKey, p.PortBase))
	require.NoError(t, err)
	program = strings.Replace(program, devConnection, string(connection), 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "first.mjs"), []byte(program), 0o600))

	ctx, cancel := contextFor(t, 2*time.Minute)
	defer cancel()
	node := exec.CommandContext(ctx, "node", "first.mjs")
	node.Dir = dir
	out, err := node.CombinedOutput()
	require.NoError(t, err, "node first.mjs:\n%s", out)
	printed := quickPrinted.FindSubmatch(out)
	require.NotNil(t, printed, "%s", out)
	synced, err := time.Parse(time.RFC3339, string(printed[1]))
	require.NoError(t, err)
	requirePlausible(t, "live", &synced)
}
