package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/test/devproc"
	"antipode/test/rest"
)

// How long, and with which times: `make alerts` sets both.
var (
	duration = flag.Duration("duration", 20*time.Second, "how long TestNoAlertUnderLoad watches")
	scale    = flag.Int("scale", 12, "by what all times of the rules are divided; 1 leaves the files as they are")
)

const (
	north = geo.Location("northcentralus")
	south = geo.Location("southcentralus")

	readyWait = time.Minute
	// alertWait bounds how long an alert may take to fire, or to end. It is far above what it does take: a slow machine
	// is not a broken promise.
	alertWait = 4 * time.Minute
	poll      = 250 * time.Millisecond
)

// stand is an antipode dev and a Prometheus that scrapes it.
type stand struct {
	dev *devproc.Process
	// data is its data folder.
	data string
	http *http.Client
	url  string
}

// startDev runs antipode dev alone until the test ends.
func startDev(t *testing.T) *stand {
	t.Helper()
	if testing.Short() {
		t.Skip("end-to-end tests need more time than -short has")
	}
	base, err := devproc.FreePortBase(t)
	require.NoError(t, err)
	s := &stand{http: devproc.NewHTTPClient()}
	t.Cleanup(s.http.CloseIdleConnections)
	config := devproc.Config{Binary: devproc.Binary(), Dir: t.TempDir(), PortBase: base, HTTP: s.http}
	s.data = config.DataDir()
	s.dev, err = devproc.Start(config)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output of antipode dev:\n%s", s.dev.Output())
		}
		require.NoError(t, s.dev.Kill9())
	})
	ctx, cancel := context.WithTimeout(t.Context(), readyWait)
	defer cancel()
	require.NoError(t, s.dev.Ready(ctx))
	return s
}

// start runs both until the test ends, and returns once Prometheus has evaluated rules over a scrape.
func start(t *testing.T, scale int) *stand {
	t.Helper()
	binary := program(t, "prometheus")
	s := startDev(t)
	ports, err := devproc.FreePorts(t, 1)
	require.NoError(t, err)
	addr, dir := fmt.Sprintf("127.0.0.1:%d", ports[0]), t.TempDir()
	s.url = "http://" + addr
	config := writeVariant(t, dir, scale, strings.TrimPrefix(s.dev.AdminURL(0), "http://"))
	prometheus, err := devproc.Run("prometheus", filepath.Join(dir, "output.log"), binary,
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--log.level=warn")
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output of prometheus:\n%s", prometheus.Output())
		}
		require.NoError(t, prometheus.Kill9())
	})
	s.eventually(t, "rules over a scrape", func() bool {
		return len(s.query(t, "location_account_service:antipode_lag_seconds:min")) == len(geo.Services)
	})
	return s
}

// sample is a series of an answer of Prometheus, with its last value.
type sample struct {
	labels map[string]string
	value  float64
}

// query returns the series of an expression; none while Prometheus does not answer.
func (s *stand) query(t *testing.T, expr string) (out []sample) {
	t.Helper()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if !s.get(t, "/api/v1/query?query="+url.QueryEscape(expr), &answer) {
		return nil
	}
	for _, r := range answer.Data.Result {
		v, err := strconv.ParseFloat(r.Value[1].(string), 64)
		require.NoError(t, err)
		out = append(out, sample{r.Metric, v})
	}
	return out
}

func (s *stand) get(t *testing.T, path string, into any) (ok bool) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	require.NoError(t, err)
	resp, err := s.http.Do(r)
	if err != nil {
		return false
	}
	defer func() { require.NoError(t, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		return false
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(into))
	return true
}

// alert is an alert that is pending or firing.
type alert struct {
	Labels map[string]string
	State  string
}

func (a alert) String() string { return fmt.Sprint(a.State, " ", a.Labels) }

// firing returns the alerts that fire.
func (s *stand) firing(t *testing.T) (out []alert) {
	t.Helper()
	var answer struct{ Data struct{ Alerts []alert } }
	s.get(t, "/api/v1/alerts", &answer)
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			out = append(out, a)
		}
	}
	return out
}

// fires reports whether an alert of a name and of some labels fires.
func (s *stand) fires(t *testing.T, name string, labels map[string]string) bool {
	t.Helper()
	return slices.ContainsFunc(s.firing(t), func(a alert) bool {
		for k, v := range labels {
			if a.Labels[k] != v {
				return false
			}
		}
		return a.Labels["alertname"] == name
	})
}

func (s *stand) eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, alertWait, poll, what)
}

// load writes and reads from four clients until the function that it returns is called, which returns how many requests
// were answered. Each request is to succeed; what is answered with 503, as during an election on a starved machine, is sent again.
func (s *stand) load(t *testing.T) (end func() int64) {
	t.Helper()
	const table, container = "load", "load"
	c := s.dev.Client(0, false)
	s.eventually(t, "a table and a container", func() bool {
		return errors.Join(c.CreateTable(t.Context(), table), c.CreateContainer(t.Context(), container)) == nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	var done atomic.Int64
	var g errgroup.Group
	for i := range 4 {
		g.Go(func() error {
			client, ticker := s.dev.Client(0, false), time.NewTicker(40*time.Millisecond)
			defer ticker.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return nil
				case <-ticker.C:
				}
				// Not under ctx: what has begun is to be answered, too.
				a, err := client.Insert(t.Context(), table, rest.Entity{"PartitionKey": fmt.Sprint("p", i), "RowKey": fmt.Sprint(n), "Value": "load"})
				if err == nil && a.OK() && n%5 == 0 {
					a, err = client.PutBlob(t.Context(), container, fmt.Sprintf("b%d-%d", i, n%100), make([]byte, 32<<10))
				}
				if err == nil && a.OK() {
					_, a, err = client.GetEntity(t.Context(), table, fmt.Sprint("p", i), fmt.Sprint(n))
				}
				if err == nil && a.Status == http.StatusServiceUnavailable {
					continue
				}
				if err != nil || !a.OK() {
					return fmt.Errorf("client %d, request %d: %v, %w", i, n, a, err)
				}
				done.Add(2)
			}
		})
	}
	return func() int64 {
		cancel()
		require.NoError(t, g.Wait())
		return done.Load()
	}
}

// A healthy antipode dev under load raises no alert: none fires at any moment.
//
// Capability: Operation in Prometheus: A real Prometheus beside `antipode dev`.
func TestNoAlertUnderLoad(t *testing.T) {
	s := start(t, *scale)
	end := s.load(t)
	over := time.After(*duration)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for watching := true; watching; {
		select {
		case <-over:
			watching = false
		case <-ticker.C:
			require.Empty(t, s.firing(t))
		}
	}
	n := end()
	for _, p := range s.query(t, fmt.Sprintf(`count_over_time(ALERTS{alertstate="pending"}[%ds])`, int(duration.Seconds()))) {
		t.Logf("was pending: %v", p.labels)
	}
	require.Empty(t, s.query(t, fmt.Sprintf(`count_over_time(ALERTS{alertstate="firing"}[%ds])`, int(duration.Seconds()))))
	scrapes := s.query(t, fmt.Sprintf(`sum(sum_over_time(up{job="antipode"}[%ds]))`, int(duration.Seconds())))
	require.Len(t, scrapes, 1)
	require.Positive(t, scrapes[0].value)
	lag := s.query(t, fmt.Sprintf(`max(max_over_time(location_account_service:antipode_lag_seconds:min[%ds]))`, int(duration.Seconds())))
	require.Len(t, lag, 1)
	t.Logf("no alert fired in %s: %d requests (%.0f/s), %.0f scrapes, Last Sync Time %.2f s behind at most", *duration, n, float64(n)/duration.Seconds(), scrapes[0].value, lag[0].value)
}

// What breaks raises its alert, with the labels that say where, and the alert ends with the cause.
//
// Capability: Operation in Prometheus: A real Prometheus beside `antipode dev`.
func TestAlertsFire(t *testing.T) {
	s := start(t, *scale)
	ctl := s.dev.Admin()
	s.eventually(t, "no alert", func() bool { return len(s.firing(t)) == 0 })

	stopped := wire.NodeName(north, 2)
	must(ctl.StopNode(t.Context(), stopped))(t)
	for r := 1; r <= 4; r++ {
		s.fireAlert(t, "AntipodeInSyncBelowConfigured", map[string]string{"location": string(north), "range": strconv.Itoa(r), "severity": "warning"})
	}
	require.False(t, s.fires(t, "AntipodeInSyncBelowConfigured", map[string]string{"location": string(south)}))
	require.False(t, s.fires(t, "AntipodeNodeOutOfService", nil), "an operator stopped it")

	// Its folder is then of a later version.
	level := filepath.Join(s.data, string(north), stopped, "level")
	require.NoError(t, os.WriteFile(level, []byte("antipode level 99\n"), 0o600))
	_, err := ctl.StartNode(t.Context(), stopped)
	require.ErrorContains(t, err, "finalized at feature level 99")
	s.fireAlert(t, "AntipodeNodeOutOfService", map[string]string{"location": string(north), "node": "2", "reason": "version", "severity": "warning"})
	require.NoError(t, os.Remove(level))
	must(ctl.StartNode(t.Context(), stopped))(t)
	s.endAlert(t, "AntipodeNodeOutOfService")
	s.endAlert(t, "AntipodeInSyncBelowConfigured")

	must(ctl.CutLink(t.Context()))(t)
	for _, service := range geo.Services {
		s.fireAlert(t, "AntipodeLastSyncTimeBehind", map[string]string{"location": string(south), "account": "devstoreaccount1", "service": service.String()})
	}
	s.fireAlert(t, "AntipodeStreamAlarm", map[string]string{"location": string(south), "reason": "silence"})
	must(ctl.HealLink(t.Context()))(t)
	s.endAlert(t, "AntipodeLastSyncTimeBehind")

	must(ctl.StopLocation(t.Context(), south))(t)
	s.fireAlert(t, "AntipodeReplicationUnavailable", map[string]string{"location": string(south), "account": "devstoreaccount1", "service": "table", "reason": "not-heard"})
	s.fireAlert(t, "AntipodeRangeWithoutLeader", map[string]string{"location": string(south), "service": "table", "range": "4"})
	s.fireAlert(t, "AntipodeBusDisconnected", map[string]string{"location": string(north), "bus": string(south)})
	s.fireAlert(t, "AntipodeLocationDown", map[string]string{"location": string(south)})
	require.False(t, s.fires(t, "AntipodeRangeWithoutLeader", map[string]string{"location": string(north)}))
	must(ctl.StartLocation(t.Context(), south))(t)
	for _, name := range []string{"AntipodeReplicationUnavailable", "AntipodeRangeWithoutLeader", "AntipodeBusDisconnected", "AntipodeLocationDown"} {
		s.endAlert(t, name)
	}

	require.False(t, s.fires(t, "AntipodeTargetDown", nil))
	require.NoError(t, s.dev.Kill9())
	s.fireAlert(t, "AntipodeTargetDown", map[string]string{"job": "antipode", "severity": "critical"})
}

// must fails the test if an operator call failed.
func must[T any](_ T, err error) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		require.NoError(t, err)
	}
}

func (s *stand) fireAlert(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	s.eventually(t, fmt.Sprint(name, " fires for ", labels), func() bool { return s.fires(t, name, labels) })
}

func (s *stand) endAlert(t *testing.T, name string) {
	t.Helper()
	s.eventually(t, name+" ends", func() bool { return !s.fires(t, name, nil) })
}
