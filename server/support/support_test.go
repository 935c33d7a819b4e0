package support

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/server/config"
)

// Every place of a configuration that may carry a secret is planted with one, and none is in what a process shows of
// itself; names of files, and hosts, are.
//
// Capability: Operation: `antipodectl support-bundle`.
func TestNoSecretOfAConfiguration(t *testing.T) {
	const secret = "PLANTEDsecret0123456789"
	url := func(scheme string) string {
		return scheme + "://user:" + secret + "@host.example:4222/" + secret + "?sig=" + secret + "#" + secret
	}
	c := config.Node{
		Name: "north-1", Location: "north", Data: "/var/lib/antipode",
		Admin:   config.Admin{TokenFile: "/etc/antipode/token"},
		Notices: config.Notices{URL: url("https"), KeyFile: "/etc/antipode/notices.key"},
		TLS:     config.TLS{CA: "/etc/ca.crt", Cert: "/etc/node.crt", Key: "/etc/node.key"},
		NATS:    config.NATS{Mode: config.Outside, URLs: []string{url("nats"), url("tls")}, Credentials: "/etc/antipode/nats.creds"},
		Pair: config.Pair{
			Location: "south", NATS: []string{url("nats")}, Credentials: "/etc/antipode/pair.creds",
			Endpoints: config.Endpoints{Blob: []string{url("https")}, Queue: []string{url("https")}, Table: []string{url("https")}},
		},
	}
	registry := prometheus.NewRegistry()
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "a_gauge", Help: "It helps."}, []string{"label"})
	gauge.WithLabelValues("https://user:" + secret + "@host").Set(7)
	registry.MustRegister(gauge)
	s := Source{Name: "north-1", Config: c, Gatherer: registry}.Gather()
	all := s.Version + s.Config + s.Metrics + s.Goroutines
	require.NotContains(t, all, secret)
	for _, kept := range []string{"/etc/antipode/token", "/etc/antipode/notices.key", "/etc/node.key", "/etc/antipode/nats.creds", "host.example:4222"} {
		require.Contains(t, s.Config, kept)
	}
	require.Contains(t, s.Metrics, "a_gauge")
	require.Contains(t, s.Goroutines, "support.TestNoSecretOfAConfiguration")
	require.NotEmpty(t, s.Version)
}

// A part has a bound, and says where it was cut.
func TestPartsAreBounded(t *testing.T) {
	long := bounded(strings.Repeat("a line\n", 200), 1000)
	require.LessOrEqual(t, len(long), 1000)
	require.True(t, strings.HasSuffix(long, wire.SupportCut))
	require.Equal(t, "short", bounded("short", 1000))
	key := strings.Repeat("PLANTED0", 10) + "PLANTE" + "==" // Where it is cut it is half a key.
	require.NotContains(t, bounded(strings.Repeat("a line\n", 138)+key+strings.Repeat(" line", 10), 1000), "PLANTED")
}

// Metrics end with the first one after the bound. A part that is longer is cut. What could not be gathered is named.
func TestGatheredPartsAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	const one = partMax / 8
	for n := range 20 {
		name := "gauge_" + strings.Repeat("1", one) + "_" + strconv.Itoa(n)
		require.NoError(t, registry.Register(prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "It helps."})))
	}
	text := Source{Gatherer: registry}.metrics()
	require.Greater(t, len(text), partMax)
	require.Less(t, len(text), partMax+4*one, "a name is written three times")
	s := Source{Gatherer: registry}.Gather()
	require.LessOrEqual(t, len(s.Metrics), partMax)
	require.True(t, strings.HasSuffix(s.Metrics, wire.SupportCut))

	broken := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, errors.New("a collector panicked") })
	require.Contains(t, Source{Gatherer: broken}.Gather().Metrics, "# not all could be gathered: a collector panicked")
}

// The secret of a receiver's URL may be its path alone, of one within a URL that cannot be read anywhere.
func TestNoPathOfAURL(t *testing.T) {
	for _, address := range []string{"https://hook.example/services/PLANTED", "https://hook.example:x/PLANTED", "nats://a:1,nats://user:PLANTED@b:2"} {
		c := config.Node{Notices: config.Notices{URL: address}, Listen: config.Listen{Blob: "127.0.0.1:10000"}}
		s := Source{Config: c, Gatherer: prometheus.NewRegistry()}.Gather()
		require.NotContains(t, s.Config, "PLANTED")
		require.Contains(t, s.Config, "blob: 127.0.0.1:10000")
	}
	s := Source{Config: config.Node{Notices: config.Notices{URL: "https://hook.example"}}, Gatherer: prometheus.NewRegistry()}.Gather()
	require.Contains(t, s.Config, "url: https://hook.example\n")
}
