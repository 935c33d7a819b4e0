package check_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
)

// variable is how a manifest names a variable of the environment in arguments.
var variable = regexp.MustCompile(`\$\((\w+)\)`)

// containersOf are the containers of pods, three of the nodes and NATS servers, one of what keeps no data.
func (m *manifests) containersOf(t *testing.T, p pod, secrets string) (out []container) {
	t.Helper()
	if p.service == "" {
		return []container{m.containerOf(t, p, p.owner, p.owner+"."+p.namespace+".svc", secrets)}
	}
	count := 1
	if p.first == 1 {
		count = 3
	}
	for i := range count {
		name := fmt.Sprintf("%s-%d", p.owner, int(p.first)+i)
		out = append(out, m.containerOf(t, p, name, name+"."+p.service+"."+p.namespace+".svc", secrets))
	}
	return out
}

func (m *manifests) containerOf(t *testing.T, p pod, name, host, secrets string) container {
	t.Helper()
	from := p.template.Spec.Containers[0]
	c := container{
		name: p.namespace + "." + name, hosts: []string{host}, env: map[string]string{}, volumes: map[string]string{}, files: map[string]string{},
		stop: time.Duration(*p.template.Spec.TerminationGracePeriodSeconds) * time.Second,
	}
	expand := func(text string) string {
		return variable.ReplaceAllStringFunc(text, func(v string) string {
			value, known := c.env[v[2:len(v)-1]]
			require.True(t, known, "%s: %s", c.name, v)
			return value
		})
	}
	for _, e := range from.Env { // In their sequence: each may name those before it.
		switch {
		case e.ValueFrom == nil:
			c.env[e.Name] = expand(e.Value)
		case e.ValueFrom.ConfigMapKeyRef != nil:
			c.env[e.Name] = m.configs[p.namespace+"/"+e.ValueFrom.ConfigMapKeyRef.Name].Data[e.ValueFrom.ConfigMapKeyRef.Key]
		case e.ValueFrom.FieldRef.FieldPath == "metadata.name":
			c.env[e.Name] = name
		case e.ValueFrom.FieldRef.FieldPath == "metadata.labels['apps.kubernetes.io/pod-index']":
			c.env[e.Name] = name[strings.LastIndexByte(name, '-')+1:]
		default:
			require.Fail(t, "a variable that nothing sets", "%s: %s", c.name, e.Name)
		}
		require.NotEmpty(t, c.env[e.Name], "%s: %s", c.name, e.Name)
	}
	c.argv = slices.Concat(from.Command, from.Args)
	if from.Command == nil {
		c.argv = slices.Concat([]string{imageEntrypoint(t)}, from.Args)
	}
	for i := range c.argv {
		c.argv[i] = expand(c.argv[i])
	}
	c.check = probeOf(from, from.ReadinessProbe)
	for _, mount := range from.VolumeMounts {
		if slices.ContainsFunc(p.claims, func(v core.PersistentVolumeClaim) bool { return v.Name == mount.Name }) {
			c.volumes[mount.MountPath] = c.name + "." + mount.Name
			continue
		}
		i := slices.IndexFunc(p.template.Spec.Volumes, func(v core.Volume) bool { return v.Name == mount.Name })
		for at, text := range m.contentsOf(t, p, p.template.Spec.Volumes[i], secrets) {
			c.files[mount.MountPath+"/"+at] = text
		}
	}
	return c
}

// probeOf is a probe as a command.
func probeOf(c core.Container, p *core.Probe) []string {
	if p.Exec != nil {
		return p.Exec.Command
	}
	return []string{"wget", "-q", "--spider", fmt.Sprintf("http://127.0.0.1:%d%s", portNamed(c, p.HTTPGet.Port.StrVal), p.HTTPGet.Path)}
}

// contentsOf are the files of a volume; secrets are those that the commands of the page have made.
func (m *manifests) contentsOf(t *testing.T, p pod, v core.Volume, secrets string) map[string]string {
	t.Helper()
	out := map[string]string{}
	secret := func(name string) string { return filepath.Join(secrets, p.namespace, name) }
	switch {
	case v.ConfigMap != nil:
		return m.configs[p.namespace+"/"+v.ConfigMap.Name].Data
	case v.Secret != nil:
		files, err := os.ReadDir(secret(v.Secret.SecretName))
		require.NoError(t, err, "the page makes no such secret")
		for _, file := range files {
			out[file.Name()] = textOf(t, filepath.Join(secret(v.Secret.SecretName), file.Name()))
		}
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			for _, item := range source.Secret.Items {
				out[item.Path] = textOf(t, filepath.Join(secret(source.Secret.Name), item.Key))
			}
		}
	}
	return out
}

// What the overlay dev starts runs: the commands of docs/deploy/kubernetes.md make the certificates and secrets, every
// container's command is started with its configuration, until the readiness probes pass; the page's commands make the
// account, and a blob written in one location is read at -secondary.
//
// Capability: Deploy: Kubernetes.
func TestManifestsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("starts 16 processes")
	}
	m := built(t, "dev")
	// The addresses are needed before the certificates of NATS are made for them.
	bin, secrets := stubs(t)
	var hosts []container
	for _, p := range m.pods() {
		hosts = append(hosts, m.hostsOf(p)...)
	}
	f := newFleet(t, hosts)
	script := exec.CommandContext(t.Context(), "sh", "-e", "-c", replaceNames(section(t, "kubernetes.md", "Certificates"), f.address, `(^|[\s,])(`, `)($|[\s,])`))
	script.Dir = t.TempDir()
	script.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := script.CombinedOutput()
	require.NoError(t, err, "%s", out)

	var all []string
	for _, p := range m.pods() {
		for _, c := range m.containersOf(t, p, secrets) {
			f.start(c)
			all = append(all, c.name)
		}
	}
	require.Len(t, all, 16)
	f.awaitHealthy(all...)
	var shown string
	for _, words := range execLines(t, "kubernetes.md", "kubectl exec --namespace ") {
		require.Equal(t, "--", words[2])
		text := f.exec(words[0]+"."+strings.TrimPrefix(words[1], "deployment/"), words[3:])
		if slices.Contains(words, "show") {
			shown = text
		}
	}
	throughBoth(t, f.address["gateway.antipode-south.svc"], shown)
	for name, config := range m.configs {
		for _, asked := range regexp.MustCompile(`"([a-z0-9.-]+):10080"`).FindAllStringSubmatch(config.Data["gateway.yaml"]+config.Data["dns.yaml"], -1) {
			require.Equal(t, 200, statusByName(t, f.address[asked[1]]+":10080", asked[1]+":10080"), "%s: %s", name, asked[1])
		}
	}
	f.stop()
}

// hostsOf are a pod's containers with their host names alone.
func (m *manifests) hostsOf(p pod) (out []container) {
	if p.service == "" {
		return []container{{hosts: []string{p.owner + "." + p.namespace + ".svc"}}}
	}
	for i := range 3 {
		out = append(out, container{hosts: []string{fmt.Sprintf("%s-%d.%s.%s.svc", p.owner, int(p.first)+i, p.service, p.namespace)}})
	}
	return out
}

// section is the code of a section of a page.
func section(t *testing.T, page, title string) string {
	t.Helper()
	_, text, found := strings.Cut(textOf(t, pages+page), "\n## "+title+"\n")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "\n## ")
	blocks := strings.Split(text, "```")
	var out []string
	for i := 1; i < len(blocks); i += 2 {
		out = append(out, blocks[i])
	}
	require.NotEmpty(t, out)
	return strings.Join(out, "\n")
}
