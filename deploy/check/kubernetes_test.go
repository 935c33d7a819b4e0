package check_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	security "k8s.io/pod-security-admission/api"
	checks "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// overlays are the folders that are applied.
var overlays = []string{"north", "south", "dev"}

// manifests are the objects of an overlay by kind.
type manifests struct {
	namespaces   []*core.Namespace
	configs      map[string]*core.ConfigMap
	services     []*core.Service
	sets         []*apps.StatefulSet
	deployments  []*apps.Deployment
	budgets      []*policy.PodDisruptionBudget
	policies     []*networking.NetworkPolicy
	definedTwice []string
}

// built builds an overlay as `kubectl apply --kustomize` does, and decodes every object into the type that its API
// publishes: a field that the type lacks, and a value of another type, is an error.
func built(t *testing.T, overlay string) *manifests {
	t.Helper()
	found, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "kubernetes/overlays/"+overlay)
	require.NoError(t, err)
	m := &manifests{configs: map[string]*core.ConfigMap{}}
	seen := map[string]bool{}
	for _, r := range found.Resources() {
		text, err := r.AsYAML()
		require.NoError(t, err)
		if id := r.CurId().String(); seen[id] {
			m.definedTwice = append(m.definedTwice, id)
		} else {
			seen[id] = true
		}
		switch kind := r.GetApiVersion() + " " + r.GetKind(); kind {
		case "v1 Namespace":
			m.namespaces = append(m.namespaces, decoded[core.Namespace](t, text))
		case "v1 ConfigMap":
			c := decoded[core.ConfigMap](t, text)
			m.configs[c.Namespace+"/"+c.Name] = c
		case "v1 Service":
			m.services = append(m.services, decoded[core.Service](t, text))
		case "apps/v1 StatefulSet":
			m.sets = append(m.sets, decoded[apps.StatefulSet](t, text))
		case "apps/v1 Deployment":
			m.deployments = append(m.deployments, decoded[apps.Deployment](t, text))
		case "policy/v1 PodDisruptionBudget":
			m.budgets = append(m.budgets, decoded[policy.PodDisruptionBudget](t, text))
		case "networking.k8s.io/v1 NetworkPolicy":
			m.policies = append(m.policies, decoded[networking.NetworkPolicy](t, text))
		default: // Kinds of an operator too: a cluster without it would refuse the overlay.
			require.Fail(t, "an object of a kind that nothing checks", kind)
		}
	}
	return m
}

func decoded[T any](t *testing.T, text []byte) *T {
	t.Helper()
	out := new(T)
	require.NoError(t, yaml.UnmarshalStrict(text, out), "%s", text)
	return out
}

// pod is a pod's template and who makes it.
type pod struct {
	namespace, owner string
	selector         *meta.LabelSelector
	template         core.PodTemplateSpec
	// service and first are those of a StatefulSet: its headless service, and its first ordinal; claims its volumes.
	service string
	first   int32
	claims  []core.PersistentVolumeClaim
}

func (m *manifests) pods() (out []pod) {
	for _, s := range m.sets {
		p := pod{namespace: s.Namespace, owner: s.Name, selector: s.Spec.Selector, template: s.Spec.Template, service: s.Spec.ServiceName}
		if s.Spec.Ordinals != nil {
			p.first = s.Spec.Ordinals.Start
		}
		p.claims = s.Spec.VolumeClaimTemplates
		out = append(out, p)
	}
	for _, d := range m.deployments {
		out = append(out, pod{namespace: d.Namespace, owner: d.Name, selector: d.Spec.Selector, template: d.Spec.Template})
	}
	return out
}

// Every overlay: what it names exists, what selects selects, every container keeps the rules of the level restricted,
// has a limit of memory and probes, and time to drain.
//
// Capability: Deploy: Kubernetes.
// Capability: Deploy: Time to stop.
func TestManifests(t *testing.T) {
	evaluator, err := checks.NewEvaluator(checks.DefaultChecks(), nil)
	require.NoError(t, err)
	for _, overlay := range overlays {
		m := built(t, overlay)
		require.Empty(t, m.definedTwice, overlay)
		require.NotEmpty(t, m.pods())
		for _, n := range m.namespaces {
			require.Equal(t, "restricted", n.Labels["pod-security.kubernetes.io/enforce"], n.Name)
			require.Equal(t, "antipode", n.Labels["app.kubernetes.io/part-of"], "network policies select by it")
		}
		for _, p := range m.pods() {
			at := overlay + ": " + p.namespace + "/" + p.owner
			level := security.LevelVersion{Level: security.LevelRestricted, Version: security.LatestVersion()}
			for _, r := range evaluator.EvaluatePod(level, &p.template.ObjectMeta, &p.template.Spec) {
				require.True(t, r.Allowed, "%s: %s %s", at, r.ForbiddenReason, r.ForbiddenDetail)
			}
			require.True(t, selects(t, p.selector, p.template.Labels), at)
			require.Equal(t, "antipode", p.template.Labels["app.kubernetes.io/part-of"], at)
			require.NotNil(t, p.template.Spec.TerminationGracePeriodSeconds, at)
			grace := time.Duration(*p.template.Spec.TerminationGracePeriodSeconds) * time.Second
			if p.owner != "nats" {
				require.GreaterOrEqual(t, grace, drainRoom, at)
			}
			// deploy/prometheus/kubernetes.yaml finds pods and ports by these.
			require.Equal(t, "antipode", p.template.Labels["app.kubernetes.io/name"], at)
			require.Equal(t, p.owner, p.template.Labels["app.kubernetes.io/component"], at)
			require.Equal(t, p.owner != "nats", portNamed(p.template.Spec.Containers[0], "metrics") != 0, at)
			m.checkContainer(t, at, p)
			m.checkCovered(t, at, p)
		}
		for _, s := range m.services {
			m.checkService(t, s)
		}
	}
}

func selects(t *testing.T, s *meta.LabelSelector, l map[string]string) bool {
	t.Helper()
	selector, err := meta.LabelSelectorAsSelector(s)
	require.NoError(t, err)
	return !selector.Empty() && selector.Matches(labels.Set(l))
}

// checkContainer checks mounts, sources, probes and limits of a pod's one container.
func (m *manifests) checkContainer(t *testing.T, at string, p pod) {
	t.Helper()
	require.Len(t, p.template.Spec.Containers, 1, at)
	c := p.template.Spec.Containers[0]
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, at)
	require.False(t, c.Resources.Limits.Memory().IsZero(), at)
	require.False(t, c.Resources.Requests.Cpu().IsZero(), at)
	require.Contains(t, c.Image, ":", at)
	var volumes []string
	for _, v := range p.template.Spec.Volumes {
		volumes = append(volumes, v.Name)
		if v.ConfigMap != nil {
			require.Contains(t, m.configs, p.namespace+"/"+v.ConfigMap.Name, at)
		}
	}
	for _, v := range p.claims {
		volumes = append(volumes, v.Name)
	}
	var mounted []string
	for _, mount := range c.VolumeMounts {
		mounted = append(mounted, mount.Name)
	}
	require.ElementsMatch(t, volumes, mounted, at)
	require.NotNil(t, c.LivenessProbe, at)
	require.NotNil(t, c.ReadinessProbe, at)
	for _, probe := range []*core.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if probe != nil && probe.HTTPGet != nil {
			require.NotZero(t, portNamed(c, probe.HTTPGet.Port.StrVal), "%s: %s", at, probe.HTTPGet.Port.StrVal)
		}
	}
	// Who is not in sync, or without a leader, is not to be restarted for it.
	require.Nil(t, c.LivenessProbe.Exec, at)
}

func portNamed(c core.Container, name string) int32 {
	for _, p := range c.Ports {
		if p.Name == name {
			return p.ContainerPort
		}
	}
	return 0
}

// checkCovered checks that one budget and one network policy are for a pod, and how the three of a location are spread.
func (m *manifests) checkCovered(t *testing.T, at string, p pod) {
	t.Helper()
	budgets := slices.DeleteFunc(slices.Clone(m.budgets), func(b *policy.PodDisruptionBudget) bool {
		return b.Namespace != p.namespace || !selects(t, b.Spec.Selector, p.template.Labels)
	})
	require.Len(t, budgets, 1, at)
	require.Equal(t, "1", budgets[0].Spec.MaxUnavailable.String(), at)
	var own, all int
	for _, n := range m.policies {
		if n.Namespace != p.namespace {
			continue
		}
		require.Equal(t, []networking.PolicyType{networking.PolicyTypeIngress}, n.Spec.PolicyTypes, n.Name)
		if len(n.Spec.PodSelector.MatchLabels) == 0 {
			all++
			require.Empty(t, n.Spec.Ingress, "%s: the default lets nothing in", n.Name)
		} else if selects(t, &n.Spec.PodSelector, p.template.Labels) {
			own++
			m.checkPolicy(t, n, p.template.Spec.Containers[0])
		}
	}
	require.Equal(t, []int{1, 1}, []int{own, all}, at)
	if p.owner != "node" && p.owner != "nats" || strings.HasPrefix(at, "dev:") {
		return
	}
	spread := p.template.Spec.TopologySpreadConstraints
	require.Len(t, spread, 1, at)
	require.Equal(t, "topology.kubernetes.io/zone", spread[0].TopologyKey, at)
	require.Equal(t, core.DoNotSchedule, spread[0].WhenUnsatisfiable, at)
	require.Equal(t, int32(3), *spread[0].MinDomains, at)
	require.True(t, selects(t, spread[0].LabelSelector, p.template.Labels), at)
	apart := p.template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	require.Len(t, apart, 1, at)
	require.True(t, selects(t, apart[0].LabelSelector, p.template.Labels), at)
}

// checkPolicy checks that a policy opens ports that the container has, and no other.
func (m *manifests) checkPolicy(t *testing.T, n *networking.NetworkPolicy, c core.Container) {
	t.Helper()
	for _, rule := range n.Spec.Ingress {
		require.NotEmpty(t, rule.Ports, n.Name)
		for _, open := range rule.Ports {
			require.True(t, slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool {
				return p.ContainerPort == open.Port.IntVal && (p.Protocol == *open.Protocol || p.Protocol == "" && *open.Protocol == core.ProtocolTCP)
			}), "%s opens %s", n.Name, open.Port)
		}
	}
}

// checkService checks that a service selects one kind of pod, which has its ports.
func (m *manifests) checkService(t *testing.T, s *core.Service) {
	t.Helper()
	var selected []pod
	for _, p := range m.pods() {
		if p.namespace == s.Namespace && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.template.Labels)) {
			selected = append(selected, p)
		}
	}
	require.Len(t, selected, 1, s.Name)
	for _, port := range s.Spec.Ports {
		c := selected[0].template.Spec.Containers[0]
		if name := port.TargetPort.StrVal; name != "" {
			require.NotZero(t, portNamed(c, name), "%s: %s", s.Name, name)
			continue
		}
		require.True(t, slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool { return p.ContainerPort == port.Port }), "%s: %d", s.Name, port.Port)
	}
}

// The check itself: an unknown field and a value of another type are found.
func TestManifestsCheck(t *testing.T) {
	for _, text := range []string{"spec: {replicas: three}", "spec: {replica: 3}", "spec: {template: {spec: {container: []}}}"} {
		require.Error(t, yaml.UnmarshalStrict([]byte(text), &apps.StatefulSet{}), text)
	}
}

// stubs writes a folder of commands for the scripts of the pages: antipode, and a kubectl that keeps the secrets
// which it is given below the folder that it returns.
func stubs(t *testing.T) (bin, secrets string) {
	t.Helper()
	bin, secrets = t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(binaries[antipodePath], filepath.Join(bin, "antipode")))
	kubectl := `#!/bin/sh
set -e
[ "$1 $2 $3" = "create secret generic" ] || exit 0
[ "$5" = --namespace ] || exit 1
dir="` + secrets + `/$6/$4"
shift 6
mkdir -p "$dir"
for file in "$@"; do cp "${file#--from-file=}" "$dir/"; done
`
	require.NoError(t, os.WriteFile(filepath.Join(bin, "kubectl"), []byte(kubectl), 0o755))
	return bin, secrets
}
