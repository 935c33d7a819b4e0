package check_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

// drainRoom is what systemd, compose and Kubernetes give a process at least between SIGTERM and the end: it drains.
const drainRoom = 90 * time.Second

// composed reads the file as Docker Compose does: by the schema of the compose specification, with what it refers to.
func composed(t *testing.T) *types.Project {
	t.Helper()
	o, err := cli.NewProjectOptions([]string{"compose/compose.yaml"}, cli.WithEnv([]string{"GRAFANA_PASSWORD=secret"}), cli.WithProfiles([]string{"*"}))
	require.NoError(t, err)
	p, err := o.LoadProject(t.Context())
	require.NoError(t, err)
	return p
}

// runs reports whether a service runs what these tests can run: Grafana is not among it, and Prometheus only where it is
// installed.
func runs(s types.ServiceConfig) bool {
	return strings.HasPrefix(s.Image, "antipode:") || strings.HasPrefix(s.Image, "nats:") || s.Name == "prometheus" && hasPrometheus()
}

func hasPrometheus() bool {
	_, err := exec.LookPath("prometheus")
	return err == nil
}

// imageEntrypoint reads the entrypoint of our image.
func imageEntrypoint(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ENTRYPOINT \["([^"]+)"\]$`).FindStringSubmatch(textOf(t, "Dockerfile"))
	require.NotNil(t, m)
	return m[1]
}

func textOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// containerOf takes what a service says.
func containerOf(t *testing.T, p *types.Project, s types.ServiceConfig) container {
	t.Helper()
	c := container{
		name: s.Name, hosts: []string{s.Name},
		env: map[string]string{}, volumes: map[string]string{}, binds: map[string]string{}, files: map[string]string{},
	}
	c.argv = slices.Concat([]string(s.Entrypoint), []string(s.Command))
	if s.Entrypoint == nil {
		entrypoint := imageEntrypoint(t)
		if s.Name == "prometheus" {
			entrypoint = "prometheus" // That of its image.
		}
		c.argv = slices.Concat([]string{entrypoint}, []string(s.Command))
	}
	for k, v := range s.Environment {
		require.NotNil(t, v, "%s: %s", s.Name, k)
		c.env[k] = *v
	}
	for _, v := range s.Volumes {
		if v.Type == types.VolumeTypeBind {
			c.binds[v.Target] = v.Source
			continue
		}
		require.Equal(t, types.VolumeTypeVolume, v.Type, s.Name)
		c.volumes[v.Target] = v.Source
	}
	for _, file := range s.Configs {
		c.files[file.Target] = textOf(t, p.Configs[file.Source].File)
	}
	if h := s.HealthCheck; h != nil && !h.Disable {
		require.Equal(t, "CMD", h.Test[0], "%s: the image has no shell", s.Name)
		c.check = h.Test[1:]
	}
	if s.StopGracePeriod != nil {
		c.stop = time.Duration(*s.StopGracePeriod)
	}
	return c
}

// inOrder are the services of one kind, each after those that it depends on, in groups that may start together.
func inOrder(t *testing.T, all map[string]types.ServiceConfig) (groups [][]string) {
	t.Helper()
	done := map[string]bool{}
	for len(done) < len(all) {
		var group []string
		for name, s := range all {
			ready := !done[name]
			for d := range s.DependsOn {
				_, known := all[d]
				ready = ready && (!known || done[d])
			}
			if ready {
				group = append(group, name)
			}
		}
		require.NotEmpty(t, group, "services that depend on each other")
		for _, name := range group {
			done[name] = true
		}
		slices.Sort(group)
		groups = append(groups, group)
	}
	return groups
}

// What compose.yaml says runs: the certificates are made by its own services, then every command is started with the
// configuration that it mounts, in the sequence that depends_on has, until the health checks of the file pass. The
// commands of docs/deploy/compose.md make the account, and a blob written at the primary is read at -secondary.
//
// Capability: Deploy: Docker Compose.
// Capability: Deploy: `antipode health`.
func TestComposeRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("starts 15 processes")
	}
	p := composed(t)
	certificates, services := map[string]types.ServiceConfig{}, map[string]types.ServiceConfig{}
	var containers []container
	for name, s := range p.Services {
		switch {
		case !runs(s):
			continue
		case slices.Contains(s.Profiles, "certificates"):
			certificates[name] = s
		default:
			services[name] = s
			containers = append(containers, containerOf(t, p, s))
		}
	}
	require.Contains(t, []int{15, 16}, len(services))
	f := newFleet(t, containers)
	for _, group := range inOrder(t, certificates) {
		for _, name := range group {
			c := containerOf(t, p, certificates[name])
			c.hosts = []string{"gateway"} // It listens nowhere.
			f.once(c)
		}
	}
	for _, group := range inOrder(t, services) {
		for _, name := range group {
			f.start(containerOf(t, p, services[name]))
		}
		f.awaitHealthy(group...)
	}
	var shown string
	for _, line := range execLines(t, "compose.md", "docker compose exec ") {
		if out := f.exec(line[0], line[1:]); slices.Contains(line, "show") {
			shown = out
		}
	}
	throughBoth(t, f.address["gateway"], shown)
	require.Contains(t, f.exec("north-2", []string{ctlPath, "status"}), "3 of 3")
	f.answersByName(p)
	until(t, "the name server knows the account", func(ctx context.Context) error {
		found, err := resolverAt(f.address["dns"]+":10053").LookupHost(ctx, "pictures.blob.antipode.test")
		if err == nil {
			require.Equal(t, []string{"127.0.0.1"}, found)
		}
		return err
	})
	f.pausedIsUnhealthy("north-3", "north-1", "north-2")
	if hasPrometheus() {
		until(t, "Prometheus scrapes all", func(ctx context.Context) error { return scrapes(ctx, f.address["prometheus"]+":9090") })
	}
	f.stop()
}

// pausedIsUnhealthy pauses a node: it is not in sync soon, while the health checks of the others pass, and it is healthy
// again when it goes on.
func (f *fleet) pausedIsUnhealthy(name string, others ...string) {
	f.t.Helper()
	p := f.running[name]
	require.NoError(f.t, p.cmd.Process.Signal(syscall.SIGSTOP))
	asked := slices.Clone(p.check)
	until(f.t, "the leaders see that the paused node is not in sync", func(ctx context.Context) error {
		out, err := f.command(ctx, f.running[others[0]], asked).CombinedOutput()
		if err == nil || !strings.Contains(string(out), name+" is not in sync") {
			return fmt.Errorf("it answers: %s", out)
		}
		return nil
	})
	f.awaitHealthy(others...)
	require.NoError(f.t, p.cmd.Process.Signal(syscall.SIGCONT))
	f.awaitHealthy(name)
}

// scrapes asks Prometheus whether it reaches each of its nine targets, and has rules and alerts.
func scrapes(ctx context.Context, address string) error {
	var targets struct {
		Data struct {
			ActiveTargets []struct{ Health, LastError string }
		}
	}
	if err := getJSON(ctx, "http://"+address+"/api/v1/targets?state=active", &targets); err != nil {
		return err
	}
	for _, target := range targets.Data.ActiveTargets {
		if target.Health != "up" {
			return fmt.Errorf("a target is %s: %s", target.Health, target.LastError)
		}
	}
	var rules struct {
		Data struct{ Groups []any }
	}
	if err := getJSON(ctx, "http://"+address+"/api/v1/rules", &rules); err != nil {
		return err
	}
	if targets, groups := len(targets.Data.ActiveTargets), len(rules.Data.Groups); targets != 9 || groups < 2 {
		return fmt.Errorf("%d targets, %d groups of rules", targets, groups)
	}
	return nil
}

func getJSON(ctx context.Context, url string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	return errors.Join(json.NewDecoder(answer.Body).Decode(into), answer.Body.Close())
}

// resolverAt asks one name server alone.
func resolverAt(address string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}}
}

// answersByName asks each admin port by the name under which gateways, name servers and Prometheus ask it: a port
// answers under the names of its configuration only.
func (f *fleet) answersByName(p *types.Project) {
	f.t.Helper()
	asked := map[string]bool{}
	for _, config := range []string{"gateway", "dns", "prometheus"} {
		for _, m := range regexp.MustCompile(`"([a-z0-9-]+):(10080|10054|10301)"`).FindAllStringSubmatch(textOf(f.t, p.Configs[config].File), -1) {
			host, port := m[1], m[2]
			asked[host] = true
			require.Equal(f.t, 200, statusByName(f.t, f.address[host]+":"+port, host+":"+port), "%s has no admin.hosts with its name", host)
		}
	}
	require.Len(f.t, asked, 9)
}

// The rules that every service keeps: no root, a root file system that cannot be written, no capability, limits, a
// policy of restarts, a health check, and time to drain.
//
// Capability: Deploy: Docker Compose.
// Capability: Deploy: Time to stop.
func TestComposeIsTight(t *testing.T) {
	p := composed(t)
	for name, s := range p.Services {
		require.True(t, s.ReadOnly, name)
		require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, s.User, name)
		require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		require.Empty(t, s.CapAdd, name)
		require.False(t, s.Privileged, name)
		require.Equal(t, []string{"no-new-privileges:true"}, s.SecurityOpt, name)
		require.NotEmpty(t, s.Tmpfs, name)
		require.Contains(t, s.Image, ":", "%s: a version of the image", name)
		for _, port := range s.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, "%s: plain HTTP stays on loopback", name)
		}
		if slices.Contains(s.Profiles, "certificates") {
			require.Equal(t, "no", s.Restart, name)
			continue
		}
		require.Equal(t, "unless-stopped", s.Restart, name)
		require.NotNil(t, s.HealthCheck, name)
		require.False(t, s.HealthCheck.Disable, name)
		limits := s.Deploy.Resources.Limits
		require.NotZero(t, limits.MemoryBytes, name)
		require.NotZero(t, limits.NanoCPUs, name)
		require.NotZero(t, limits.Pids, name)
		if strings.HasPrefix(s.Image, "antipode:") {
			require.NotNil(t, s.StopGracePeriod, name)
			require.GreaterOrEqual(t, time.Duration(*s.StopGracePeriod), drainRoom, name)
		}
	}
	for _, location := range []string{"north", "south"} {
		for _, n := range []string{"-1", "-2", "-3"} {
			require.Contains(t, p.Services, location+n)
			require.Contains(t, p.Services, "nats-"+location+n)
		}
	}
}

// What the file mounts exists, and every volume is one that it declares and uses.
//
// Capability: Deploy: Docker Compose.
func TestComposeMountsExist(t *testing.T) {
	p := composed(t)
	used := map[string]bool{}
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeVolume {
				require.Contains(t, p.Volumes, v.Source, name)
				used[v.Source] = true
				continue
			}
			require.DirExists(t, v.Source, name)
			require.True(t, v.ReadOnly, "%s: %s", name, v.Source)
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(p.Volumes)), slices.Collect(maps.Keys(used)))
	for name, c := range p.Configs {
		require.FileExists(t, c.File, name)
	}
}

// The image: Go of the version that the tests run with, the NATS of go.mod, a static binary whose version the linker
// sets, and a user that is not root.
//
// Capability: Deploy: Docker Compose.
func TestImage(t *testing.T) {
	text := textOf(t, "Dockerfile")
	require.Contains(t, text, "\nFROM scratch\n")
	require.Contains(t, text, "\nUSER 65532:65532\n")
	require.Contains(t, text, "FROM golang:"+goVersion(t)+"-bookworm AS build\n")
	require.Contains(t, text, "-extldflags -static")
	require.Contains(t, text, "-X main.version=${VERSION}")
	m := regexp.MustCompile(`github.com/nats-io/nats-server/v2 v(\S+)`).FindStringSubmatch(textOf(t, root+"/go.mod"))
	for name, s := range composed(t).Services {
		if strings.HasPrefix(name, "nats-") {
			require.Equal(t, "nats:"+m[1]+"-alpine", s.Image, name)
		}
	}
	for _, path := range []string{antipodePath, ctlPath} {
		require.Contains(t, text, "./cmd/"+filepath.Base(path))
	}
	require.Equal(t, antipodePath, imageEntrypoint(t))
}
