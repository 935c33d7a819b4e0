package check_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

func networksShared(a, b types.ServiceConfig) (shared []string) {
	for name := range a.Networks {
		if _, both := b.Networks[name]; both {
			shared = append(shared, name)
		}
	}
	return shared
}

// Who watches reaches no NATS server, every process reaches the hosts that its files name, and nothing but the link
// joins the nodes of one location with those of the other.
//
// Capability: Deploy: Docker Compose.
func TestComposeNetworks(t *testing.T) {
	p := composed(t)
	named := 0
	for name, s := range p.Services {
		for _, file := range s.Configs {
			for _, m := range regexp.MustCompile(`[" ](?:tls://)?([a-z][a-z0-9-]*):\d{4,5}\b`).FindAllStringSubmatch(textOf(t, p.Configs[file.Source].File), -1) {
				host, known := p.Services[m[1]]
				require.True(t, known, "%s: %s", name, m[0])
				require.NotEmpty(t, networksShared(s, host), "%s cannot reach %s", name, m[0])
				named++
			}
		}
		if !strings.HasPrefix(name, "nats-") {
			continue
		}
		for _, watcher := range []string{"prometheus", "grafana"} {
			require.Empty(t, networksShared(s, p.Services[watcher]), "%s reaches the client port of %s", watcher, name)
		}
	}
	require.GreaterOrEqual(t, named, 60)
	require.Equal(t, []string{"between"}, networksShared(p.Services["north-1"], p.Services["south-1"]))
	for name, s := range p.Services {
		shared := networksShared(s, p.Services["grafana"])
		require.Equal(t, slices.Contains([]string{"prometheus", "grafana"}, name), len(shared) > 0, "grafana reaches %s", name)
	}
	used := map[string]bool{}
	for _, s := range p.Services {
		for network := range s.Networks {
			used[network] = true
		}
	}
	for name := range p.Networks {
		require.True(t, used[name] || name == "default", name)
	}
}

// A broken node does not keep the gateway from starting, and neither does the token that a node would have made.
//
// Capability: Deploy: Docker Compose.
func TestComposeGatewayWaitsForNone(t *testing.T) {
	gateway := composed(t).Services["gateway"]
	require.Empty(t, gateway.DependsOn)
	i := slices.IndexFunc(gateway.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Source == "admin" })
	require.False(t, gateway.Volumes[i].ReadOnly, "it makes the token if it starts first")
}

// After a clone under umask 077 the page's command lets the users of the containers read what is mounted, and does not
// open the file with the password.
//
// Capability: Deploy: Docker Compose.
func TestComposeMountsAreReadable(t *testing.T) {
	clone := t.TempDir()
	for _, dir := range []string{"compose", "prometheus", "grafana"} {
		require.NoError(t, os.CopyFS(filepath.Join(clone, "deploy", dir), os.DirFS(dir)))
	}
	at := filepath.Join(clone, "deploy", "compose")
	require.NoError(t, os.WriteFile(filepath.Join(at, ".env"), nil, 0o600))
	require.NoError(t, filepath.WalkDir(clone, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(file, 0o700)
		}
		return os.Chmod(file, 0o600)
	}))
	p := composed(t)
	deploy, err := os.Getwd()
	require.NoError(t, err)
	var mounted []string
	for _, c := range p.Configs {
		mounted = append(mounted, c.File)
	}
	for _, s := range p.Services {
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				mounted = append(mounted, v.Source)
			}
		}
	}
	unreadable := func() (found []string) {
		for _, source := range mounted {
			rel, err := filepath.Rel(deploy, source)
			require.NoError(t, err)
			require.NoError(t, filepath.WalkDir(filepath.Join(clone, "deploy", rel), func(file string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := d.Info()
				if want := fs.FileMode(0o004); err == nil && (info.Mode()&want != want || d.IsDir() && info.Mode()&0o001 == 0) {
					found = append(found, file)
				}
				return err
			}))
		}
		return found
	}
	require.GreaterOrEqual(t, len(unreadable()), len(mounted), "the clone itself is closed")
	chmod := slices.DeleteFunc(commands(t, pages+"compose.md"), func(line string) bool { return !strings.HasPrefix(line, "chmod ") })
	require.Len(t, chmod, 1)
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", chmod[0])
	cmd.Dir = at
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, unreadable())
	info, err := os.Stat(filepath.Join(at, ".env"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), "the password of Grafana")
}
