package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"antipode/test/rest"
)

const (
	// tofuPart is which part of the contended cycles OpenTofu goes through: each starts it, for some seconds.
	tofuPart = 20
	// tofuState is one resource that is made again each time. Its command runs under the lock: it fails if another one runs.
	tofuState = `
terraform {
  backend "azurerm" {
    storage_account_name = "%s"
    container_name       = "tfstate"
    key                  = "terraform.tfstate"
    access_key           = "%s"
    snapshot             = true
    use_cli              = false
  }
}
variable "run" { type = string }
resource "terraform_data" "one" {
  triggers_replace = var.run
  provisioner "local-exec" { command = "mkdir '%[3]s' && sleep $${HOLD:-0.1} && echo x >> '%[3]s.runs' && rmdir '%[3]s'" }
}
output "run" { value = var.run }
`
)

// OpenTofu keeps its state here by its azurerm backend, with locks and snapshots: four of them apply at once. No two hold the
// lock, and each apply is a state.
func TestOpenTofu(t *testing.T) {
	needTools(t)
	path := built(t, "tofu")
	p := startDev(t)
	f := newRelay(t, p.PortBase)
	key, err := azblob.NewSharedKeyCredential(string(rest.DevAccount), rest.DevKey)
	require.NoError(t, err)
	service, err := azblob.NewClientWithSharedKeyCredential(f.url+"/"+string(rest.DevAccount), key,
		&azblob.ClientOptions{ClientOptions: clientOptions(p.HTTP)})
	require.NoError(t, err)
	_, err = service.CreateContainer(t.Context(), "tfstate", nil)
	require.NoError(t, err)

	held := filepath.Join(t.TempDir(), "held")
	env := append(append(os.Environ(), f.secure()...), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	ctx, cancel := context.WithTimeout(t.Context(), lockWait)
	defer cancel()
	rounds := max(1, *cycles/tofuPart/lockClients)
	var clients errgroup.Group
	for id := range lockClients {
		w := newWorkspace(t, path, held, env)
		clients.Go(func() error {
			for round := range rounds {
				if _, err := w.apply(ctx, fmt.Sprintf("%d-%d", id, round), "15m"); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, clients.Wait())
	runs, err := os.ReadFile(held + ".runs")
	require.NoError(t, err)
	require.Equal(t, lockClients*rounds, strings.Count(string(runs), "x"), "each apply ran once, and alone")

	state, snapshots := stateOf(t, service)
	require.GreaterOrEqual(t, state.Serial, lockClients*rounds, "each apply is a state that follows the one before")
	require.GreaterOrEqual(t, snapshots, lockClients*rounds-1, "a snapshot of each state but the first")
	requireLocks(t, service, newWorkspace(t, path, held, env), newWorkspace(t, path, held, append(env, "HOLD=600")), held)
	require.Empty(t, withStatus(f.take(), 501))
	t.Logf("OpenTofu: %d applies by %d clients, serial %d, %d snapshots", lockClients*rounds, lockClients, state.Serial, snapshots)
}

// workspace is a folder in which OpenTofu runs.
type workspace struct {
	path, dir string
	env       []string
}

func newWorkspace(t *testing.T, path, held string, env []string) *workspace {
	t.Helper()
	w := &workspace{path, t.TempDir(), env}
	text := fmt.Sprintf(tofuState, rest.DevAccount, rest.DevKey, held)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(text), 0o600))
	_, err := w.run(t.Context(), "init", "-no-color")
	require.NoError(t, err)
	return w
}

// run runs OpenTofu. When ctx ends it is killed with its children.
func (w *workspace) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, w.path, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = w.dir, w.env, &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("tofu %s: %w\n%s", args[0], err, out)
	}
	return string(out), err
}

func (w *workspace) apply(ctx context.Context, run, lockTimeout string) (string, error) {
	return w.run(ctx, "apply", "-no-color", "-auto-approve", "-lock-timeout="+lockTimeout, "-var=run="+run)
}

// requireLocks requires that the lock of a client that was killed stands until it is taken away by its id.
func requireLocks(t *testing.T, service *azblob.Client, w, dies *workspace, held string) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := dies.apply(ctx, "dies", "15m")
		ended <- err
	}()
	require.Eventually(t, func() bool {
		_, err := os.Stat(held)
		return err == nil
	}, startWait, 10*time.Millisecond, "its command runs")
	kill()
	require.Error(t, <-ended)
	require.NoError(t, os.Remove(held))
	_, err := w.apply(t.Context(), "locked", "0s")
	require.ErrorContains(t, err, "Error acquiring the state lock")
	_, id, found := strings.Cut(err.Error(), "ID:")
	require.True(t, found, "%v", err)
	_, err = w.run(t.Context(), "force-unlock", "-force", strings.Fields(id)[0])
	require.NoError(t, err)
	_, err = w.apply(t.Context(), "last", "0s")
	require.NoError(t, err)
	state, _ := stateOf(t, service)
	require.Equal(t, "last", state.Outputs.Run.Value)
}

// tofuDoc is what the test reads of a state.
type tofuDoc struct {
	Serial  int
	Outputs struct{ Run struct{ Value string } }
}

// stateOf is the state, and how many snapshots it has.
func stateOf(t *testing.T, service *azblob.Client) (state tofuDoc, snapshots int) {
	t.Helper()
	got, err := service.DownloadStream(t.Context(), "tfstate", "terraform.tfstate", nil)
	require.NoError(t, err)
	text, err := io.ReadAll(got.Body)
	require.NoError(t, errors.Join(err, got.Body.Close()))
	require.NoError(t, json.Unmarshal(text, &state))
	pages := service.NewListBlobsFlatPager("tfstate", &azblob.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Snapshots: true}})
	for pages.More() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		snapshots += len(page.Segment.BlobItems)
	}
	return state, snapshots - 1
}
