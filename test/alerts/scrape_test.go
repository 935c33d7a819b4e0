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
)

// A scrape of antipode dev under load is what metrics.md says: each metric of ours is documented, with that type and those
// labels; and promtool finds nothing wrong with its names, units and help.
func TestScrape(t *testing.T) {
	tool := program(t, "promtool")
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

	check := exec.CommandContext(t.Context(), tool, "check", "metrics")
	check.Stdin = strings.NewReader(text)
	out, err := check.CombinedOutput()
	require.NoError(t, err, "promtool check metrics: %s", out)
	require.Empty(t, string(out))

	known := documentedMetrics(t)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	ours := 0
	for name, f := range families {
		if !strings.HasPrefix(name, "antipode_") {
			continue
		}
		ours++
		want, ok := known[name]
		require.True(t, ok, "%s is not documented", name)
		for _, m := range f.GetMetric() {
			require.ElementsMatch(t, want, labelsOf(m), "the labels of %s", name)
		}
	}
	require.Greater(t, ours, 60)
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
