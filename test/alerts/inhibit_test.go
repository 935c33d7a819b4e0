package alerts

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/test/devproc"
)

// Every alert that the configuration of Alertmanager names exists.
//
// Capability: Operation in Prometheus: The rules as they are, in an hour of load.
func TestInhibitedAlertsExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deploy, "alertmanager.yaml"))
	require.NoError(t, err)
	exist := map[string]bool{}
	for _, r := range rules(t) {
		exist[r.Alert] = true
	}
	named := regexp.MustCompile(`Antipode[A-Z][A-Za-z]+`).FindAllString(string(text), -1)
	require.Greater(t, len(named), 15)
	for _, name := range named {
		require.Contains(t, exist, name)
	}
}

// posted is an alert as Prometheus posts it, with the labels that its rule leaves.
type posted map[string]string

func (p posted) with(name, value string) posted {
	out := maps.Clone(p)
	out[name] = value
	return out
}

// A real Alertmanager shows a cause, and not what follows from it; what follows alone is shown.
func TestInhibited(t *testing.T) {
	alert := func(name string) posted { return posted{"alertname": name} }
	at := func(name, location string) posted { return alert(name).with("location", location) }
	cases := map[string]struct{ shown, silent []posted }{
		"location down": {
			shown: []posted{
				at("AntipodeLocationDown", "north"),
				alert("AntipodeTargetDown").with("instance", "north-1"),
				alert("AntipodeGatewayErrors").with("service", "blob"),
				at("AntipodeOutboxNearBudget", "south"),
				at("AntipodeRangeWithoutLeader", "south").with("range", "3"),
			},
			silent: []posted{
				at("AntipodeBusDisconnected", "south").with("bus", "north"),
				at("AntipodeReplicationUnavailable", "south").with("service", "blob"),
				at("AntipodeRangeWithoutLeader", "north").with("range", "3"),
				alert("AntipodeGatewayRequestsFail").with("service", "blob"),
			},
		},
		"link cut": {shown: []posted{
			at("AntipodeBusDisconnected", "south").with("bus", "north"),
			at("AntipodeReplicationUnavailable", "south").with("service", "blob"),
		}},
		"no leader": {
			shown: []posted{
				at("AntipodeRangeWithoutLeader", "north").with("range", "3"),
				at("AntipodeInSyncBelowConfigured", "north").with("range", "4"),
				at("AntipodeInSyncBelowConfigured", "south").with("range", "3"),
			},
			silent: []posted{at("AntipodeInSyncBelowConfigured", "north").with("range", "3")},
		},
		"disk full": {
			shown: []posted{
				at("AntipodeDiskFull", "north").with("node", "1"),
				at("AntipodeDiskNearlyFull", "north").with("node", "2"),
			},
			silent: []posted{
				at("AntipodeDiskNearlyFull", "north").with("node", "1"),
				at("AntipodeInSyncBelowConfigured", "north").with("range", "3"),
			},
		},
		"stream stopped": {
			shown: []posted{
				at("AntipodeStreamsStopped", "south").with("service", "blob"),
				at("AntipodeReplicationUnavailable", "south").with("service", "table"),
			},
			silent: []posted{at("AntipodeReplicationUnavailable", "south").with("service", "blob")},
		},
		"certificate": {
			shown: []posted{
				alert("AntipodeCertificateExpires").with("instance", "a"), alert("AntipodeCertificateExpiresSoon").with("instance", "b"),
			},
			silent: []posted{alert("AntipodeCertificateExpiresSoon").with("instance", "a")},
		},
	}
	binary := program(t, "prometheus-alertmanager")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startAlertmanager(t, binary)
			s.post(t, slices.Concat(c.silent, c.shown))
			var got map[string][]string
			states := func() map[string][]string {
				var all []struct {
					Labels posted
					Status struct{ State string }
				}
				if !s.get(t, "/api/v2/alerts", &all) {
					return nil
				}
				out := map[string][]string{}
				for _, a := range all {
					out[a.Status.State] = append(out[a.Status.State], key(t, a.Labels))
				}
				return out
			}
			s.eventually(t, "all alerts in their state", func() bool {
				got = states()
				return len(got["active"]) == len(c.shown) && len(got["suppressed"]) == len(c.silent)
			})
			require.ElementsMatch(t, keys(t, c.shown), got["active"])
			require.ElementsMatch(t, keys(t, c.silent), got["suppressed"])
		})
	}
}

func key(t *testing.T, p posted) string {
	t.Helper()
	text, err := json.Marshal(p)
	require.NoError(t, err)
	return string(text)
}

func keys(t *testing.T, all []posted) (out []string) {
	t.Helper()
	for _, p := range all {
		out = append(out, key(t, p))
	}
	return out
}

// startAlertmanager runs an Alertmanager with the shipped configuration until the test ends. Its groups wait for no more
// alerts: what is suppressed is decided when a group is notified.
func startAlertmanager(t *testing.T, binary string) *stand {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join(deploy, "alertmanager.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "group_wait: 30s")
	config := filepath.Join(dir, "alertmanager.yaml")
	require.NoError(t, os.WriteFile(config, bytes.Replace(text, []byte("group_wait: 30s"), []byte("group_wait: 100ms"), 1), 0o600))
	ports, err := devproc.FreePorts(t, 1)
	require.NoError(t, err)
	addr := "127.0.0.1:" + strconv.Itoa(ports[0])
	s := &stand{http: devproc.NewHTTPClient(), url: "http://" + addr}
	t.Cleanup(s.http.CloseIdleConnections)
	process, err := devproc.Run("alertmanager", filepath.Join(dir, "output.log"), binary, "--config.file="+config,
		"--storage.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--cluster.listen-address=")
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output of Alertmanager:\n%s", process.Output())
		}
		require.NoError(t, process.Kill9())
	})
	s.eventually(t, "Alertmanager ready", func() bool {
		var alerts []any
		return s.get(t, "/api/v2/alerts", &alerts)
	})
	return s
}

// post gives alerts to Alertmanager, as Prometheus does.
func (s *stand) post(t *testing.T, alerts []posted) {
	t.Helper()
	type firing struct {
		Labels   posted    `json:"labels"`
		StartsAt time.Time `json:"startsAt"`
	}
	var body []firing
	for _, a := range alerts {
		body = append(body, firing{a, time.Now()})
	}
	text, err := json.Marshal(body)
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/api/v2/alerts", bytes.NewReader(text))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.http.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}
