package alerts

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"antipode/test/faults/rig"
)

// A scrape of antipode dev under load is what metrics.md says: each metric of ours is documented, with that type and those
// labels; and promtool finds nothing wrong with its names, units and help.
//
// Capability: Operation in Prometheus: Metrics have a table.
func TestScrape(t *testing.T) {
	s := startDev(t)
	end := s.load(t)
	s.eventually(t, "requests and their errors are counted", func() bool {
		_, err := s.dev.Client(0, false).GetBlob(t.Context(), "load", "missing")
		require.NoError(t, err)
		text := s.scrape(t)
		return strings.Contains(text, "antipode_request_errors_total{") &&
			strings.Contains(text, `operation="QueryEntity",service="table",status="200"`) &&
			strings.Contains(text, "antipode_clock_offset_seconds{")
	})
	text := s.scrape(t)
	require.Positive(t, end())
	require.Greater(t, len(requireDocumented(t, text)), 60)
}

// The same of node processes, a gateway and a witness, whose certificates, peers, forwards and leases antipode dev does not
// have.
//
// Capability: Operation in Prometheus: Metrics have a table.
// Capability: Operation in Prometheus: A witness shows its metrics.
func TestScrapeOfProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("end-to-end tests need more time than -short has")
	}
	r := rig.StartWitnessed(t, "10s")
	known := map[string]bool{}
	for _, process := range append(rig.All(), rig.Witness) {
		text, err := r.Metrics(t.Context(), process)
		require.NoError(t, err)
		for _, name := range requireDocumented(t, text) {
			known[name] = true
		}
		require.Contains(t, text, "antipode_certificate_not_after_timestamp_seconds ", process)
		switch process {
		case rig.Gateway:
		case rig.Witness:
			require.Regexp(t, `antipode_witness_requests_total{kind="renew",location="northcentralus",outcome="done"} [1-9]`, text)
		default:
			require.Contains(t, text, `antipode_location_running{`, process)
			require.Contains(t, text, `service="table"} 3`, "what a range should have: %s", process)
		}
	}
	for _, name := range []string{
		"antipode_peer_connected", "antipode_gateway_forwards_total", "antipode_range_leader_known", "antipode_replica_in_sync",
		"antipode_last_sync_timestamp_seconds", "antipode_accounts", "antipode_witness_since_renewal_seconds",
	} {
		require.True(t, known[name], name)
	}
}

// requireDocumented compares a scrape with metrics.md, has promtool check it, and returns the metrics of ours in it.
func requireDocumented(t *testing.T, text string) (ours []string) {
	t.Helper()
	check := exec.CommandContext(t.Context(), program(t, "promtool"), "check", "metrics")
	check.Stdin = strings.NewReader(text)
	out, err := check.CombinedOutput()
	require.NoError(t, err, "promtool check metrics: %s", out)
	require.Empty(t, string(out))

	known := documentedMetrics(t)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	for name, f := range families {
		if !strings.HasPrefix(name, "antipode_") {
			continue
		}
		ours = append(ours, name)
		want, ok := known[name]
		require.True(t, ok, "%s is not documented", name)
		require.Equal(t, want.kind, strings.ToLower(f.GetType().String()), name)
		for _, m := range f.GetMetric() {
			require.ElementsMatch(t, want.labels, labelsOf(m), "the labels of %s", name)
		}
	}
	return ours
}

func labelsOf(m *dto.Metric) (names []string) {
	for _, l := range m.GetLabel() {
		names = append(names, l.GetName())
	}
	return names
}

// scrape returns the metrics of antipode dev.
func (s *stand) scrape(t *testing.T) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.dev.AdminURL(0)+"/metrics", nil)
	require.NoError(t, err)
	resp, err := s.http.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}
