package test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/dashboards"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/hosts"
	"antipode/server/cluster"
	"antipode/test/devproc"
	"antipode/test/load"
	"antipode/test/rest"
)

// What `make dashboards` sets.
var (
	dashboardsAt  = flag.String("dashboards", "", "serve the page of dashboards at this address while the test runs, and until -show has passed")
	dashboardsFor = flag.Duration("show", 0, "how long the load goes on once every panel has values")
	dashboardsTo  = flag.String("html", "", "write the page of dashboards to this file at the end")
)

// panelsWait bounds the wait for values of all panels.
const panelsWait = 4 * time.Minute

// Both locations, the gateway and the name server run as processes under load, an account's copy is made and it moves to its
// other location. A Prometheus scrapes them, and every panel of every dashboard has values.
//
// Capability: Operation in Prometheus: Dashboards.
func TestNoPanelIsEmpty(t *testing.T) {
	d := startClusterWith(t, cluster.Options{DNSZone: "antipode.test"})
	p := scraping(t, d)
	if *dashboardsAt != "" {
		s := &http.Server{Addr: *dashboardsAt, Handler: dashboards.Handler(p, 5*time.Minute, clock.System{}.Now, hosts.New(*dashboardsAt))}
		served := make(chan error, 1)
		go func() { served <- s.ListenAndServe() }()
		t.Cleanup(func() {
			require.NoError(t, s.Close())
			require.ErrorIs(t, <-served, http.ErrServerClosed)
		})
		t.Logf("dashboards at http://%s/", *dashboardsAt)
	}
	under(t, d, func(ctx context.Context) {
		moving(ctx, t, d)
		names := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, d.Gateway().DNS())
		}}
		allShow(t, p, func(ctx context.Context) error {
			_, err := names.LookupHost(ctx, "devstoreaccount1.blob."+string(d.DNSZone))
			return err
		})
		if *dashboardsFor > 0 {
			show, cancel := context.WithTimeout(ctx, *dashboardsFor)
			defer cancel()
			<-show.Done()
		}
	})
	var page bytes.Buffer
	view := dashboards.Last(2*time.Minute, clock.System{}.Now())
	require.NoError(t, dashboards.Page(t.Context(), &page, p, view))
	for _, dashboard := range dashboards.Dashboards() {
		require.Contains(t, page.String(), dashboard.Title)
	}
	require.Contains(t, page.String(), "<svg")
	if *dashboardsTo != "" {
		require.NoError(t, os.WriteFile(*dashboardsTo, page.Bytes(), 0o644))
	}
}

// scraping starts a Prometheus that scrapes all processes of a deployment each second, by their roles as
// deploy/prometheus names them, and evaluates its rules and alerts.
func scraping(t *testing.T, d *deployment) *devproc.Prometheus {
	t.Helper()
	var nodes []string
	for l := range 2 {
		for n := range 3 {
			nodes = append(nodes, d.NodePorts(l, n).Admin())
		}
	}
	rules, err := filepath.Abs("../deploy/prometheus")
	require.NoError(t, err)
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\n" +
		fmt.Sprintf("rule_files: [%s/rules.yaml, %s/alerts.yaml]\nscrape_configs:\n", rules, rules)
	for _, role := range [][]string{
		append([]string{"antipode"}, nodes...), {"antipode-gateway", d.Gateway().Admin()}, {"antipode-dns", d.NamesMetrics()},
	} {
		config += fmt.Sprintf("  - job_name: %s\n    static_configs: [{targets: [%s]}]\n", role[0], strings.Join(role[1:], ", "))
	}
	p, err := devproc.StartPrometheus(t, t.TempDir(), config)
	if errors.Is(err, devproc.ErrNoPrometheus) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), clusterWait)
		defer cancel()
		require.NoError(t, p.Stop(ctx))
	})
	return p
}

// under runs f while clients read and write through the gateway.
func under(t *testing.T, d *deployment, f func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := load.New(d.gateway(false), d.gateway(true), load.Options{Clients: 4})
	require.NoError(t, l.Setup(ctx))
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	f(ctx)
	cancel()
	require.NoError(t, <-ended)
}

// moving moves another account to its other location, and has its copy there made again, slowly, so that the panels of
// both have something to show.
func moving(ctx context.Context, t *testing.T, d *deployment) {
	t.Helper()
	const (
		name  = geo.Account("moving")
		blobs = 24
	)
	rate := uint64(1 << 20)
	_, err := d.Admin().CreateAccount(ctx, admin.NewAccount{Name: name, Location: north, Key1: rest.DevKey, Key2: rest.DevKey})
	require.NoError(t, err)
	c := rest.NewPathStyleOf(d.hc, name, d.PortBase, false)
	eventually(t, clusterWait, "the account takes a blob", func(ctx context.Context) error {
		return c.CreateContainer(ctx, "blobs")
	})
	for n := range blobs {
		eventually(t, clusterWait, "a blob is put", func(ctx context.Context) error {
			a, err := c.PutBlob(ctx, "blobs", fmt.Sprint(n), bytes.Repeat([]byte{byte(n)}, 1<<20))
			if err == nil && !a.OK() {
				err = fmt.Errorf("%v", a)
			}
			return err
		})
	}
	for _, u := range []admin.UpdateAccount{
		{Failover: &admin.Failover{Type: admin.FailoverPlanned}},
		{Rebuild: true, BytesPerSecond: &rate},
	} {
		eventually(t, clusterWait, fmt.Sprintf("the account takes %+v", u), func(ctx context.Context) error {
			_, err := d.Admin().UpdateAccount(ctx, name, u)
			return err
		})
	}
}

// allShow waits until every panel has values of the time since the call, and calls more again and again meanwhile.
func allShow(t *testing.T, p *devproc.Prometheus, more func(context.Context) error) {
	t.Helper()
	type empty struct {
		of string
		dashboards.Panel
	}
	var left []empty
	for _, d := range dashboards.Dashboards() {
		for _, r := range d.Rows {
			for _, panel := range r.Panels {
				left = append(left, empty{d.Title + ", " + r.Title, panel})
			}
		}
	}
	began := clock.System{}.Now()
	eventually(t, panelsWait, "every panel has values", func(ctx context.Context) error {
		now := clock.System{}.Now()
		view := dashboards.Last(max(time.Minute, now.Sub(began)), now)
		var errs []error
		var still []empty
		for _, panel := range left {
			drawn := panel.Ask(ctx, p, view)
			if drawn.Err == nil && len(drawn.Series) > 0 {
				continue
			}
			still = append(still, panel)
			errs = append(errs, errors.Join(fmt.Errorf("%s, %s has no values", panel.of, panel.Title), drawn.Err))
		}
		left = still
		return errors.Join(append(errs, more(ctx))...)
	})
}
