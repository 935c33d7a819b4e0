package check_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
)

// applied are the documents that the commands for Prometheus' operator apply, by namespace: the page's code is run with
// a kubectl that keeps what it is given.
func applied(t *testing.T) map[string][]string {
	t.Helper()
	bin, made := t.TempDir(), t.TempDir()
	stub := `#!/bin/sh
[ "$1 $2 $4" = "apply --namespace --filename" ] || exit 2
(cat "$5"; echo ---) >> "` + made + `/$3"
`
	require.NoError(t, os.WriteFile(filepath.Join(bin, "kubectl"), []byte(stub), 0o755))
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", section(t, "kubernetes.md", "Prometheus"))
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	files, err := os.ReadDir(made)
	require.NoError(t, err)
	found := map[string][]string{}
	for _, f := range files {
		found[f.Name()] = strings.Split(strings.TrimSuffix(textOf(t, filepath.Join(made, f.Name())), "---\n"), "---\n")
	}
	return found
}

// For the operator of Prometheus: one monitor in the namespace of each location, and rules and alerts once, all of
// which are what its types take.
//
// Capability: Deploy: Kubernetes.
func TestForTheOperator(t *testing.T) {
	m := built(t, "dev")
	found := applied(t)
	require.Len(t, found, len(m.namespaces))
	rules := 0
	for _, n := range m.namespaces {
		monitors := 0
		for _, d := range found[n.Name] {
			if strings.Contains(d, "kind: PrometheusRule") {
				rule := decoded[monitoring.PrometheusRule](t, []byte(d))
				require.NotEmpty(t, rule.Spec.Groups, rule.Name)
				rules++
				continue
			}
			m.checkMonitor(t, n.Name, decoded[monitoring.ServiceMonitor](t, []byte(d)))
			monitors++
		}
		require.Equal(t, 1, monitors, n.Name)
	}
	require.Equal(t, 2, rules)
}

// checkMonitor checks that every admin port is scraped: of nodes, gateways and name servers.
func (m *manifests) checkMonitor(t *testing.T, namespace string, sm *monitoring.ServiceMonitor) {
	t.Helper()
	require.Equal(t, "ServiceMonitor", sm.Kind)
	require.Empty(t, sm.Namespace, "it is applied to the namespace of each location")
	var scraped []string
	for _, s := range m.services {
		if s.Namespace != namespace || !selects(t, &sm.Spec.Selector, s.Labels) {
			continue
		}
		for _, port := range s.Spec.Ports {
			for _, e := range sm.Spec.Endpoints {
				if e.Port == port.Name {
					scraped = append(scraped, s.Name)
				}
			}
		}
	}
	require.ElementsMatch(t, []string{"node", "gateway-admin", "dns-admin"}, scraped, namespace)
	for _, r := range sm.Spec.Endpoints[0].RelabelConfigs {
		if r.TargetLabel == "job" {
			require.Regexp(t, "^antipode", *r.Replacement, "the alerts select jobs by that")
		}
	}
}
