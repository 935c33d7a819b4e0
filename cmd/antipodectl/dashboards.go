package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	prometheus "github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/spf13/cobra"

	"antipode/client/command"
	"antipode/client/dashboards"
	"antipode/internal/clock"
	"antipode/internal/hosts"
)

const dashboardsLong = `dashboards shows the dashboards of Antipode from what a Prometheus has: Last Sync Time and what
waits between the locations, requests, replicas, disks, gateways and name servers of both. They are
those of deploy/grafana, with the same queries, for those who have no Grafana.

It serves one page, which loads itself again every ten seconds, until it is interrupted; with --html
it writes the page to a file and ends. The Prometheus scrapes with deploy/prometheus.`

// headerTime bounds how long a browser takes to send its request.
const headerTime = 10 * time.Second

func (t *tool) dashboardsCommand() *cobra.Command {
	var source, listen, file string
	var names []string
	var last time.Duration
	c := &cobra.Command{
		Use:   "dashboards",
		Short: "Show the dashboards of both locations, from a Prometheus",
		Long:  dashboardsLong,
		Example: `  antipodectl dashboards
  antipodectl dashboards --prometheus http://metrics.example:9090 --last 6h
  antipodectl dashboards --html dashboards.html`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last < time.Minute {
				return command.Wrong(fmt.Errorf("--last is %v, want 1m at least", last))
			}
			client, err := prometheus.NewClient(prometheus.Config{Address: source})
			if err != nil {
				return command.Wrong(fmt.Errorf("--prometheus %q: %w", source, err))
			}
			from := v1.NewAPI(client)
			if err := canQuery(cmd.Context(), from, source); err != nil {
				return command.Tried(err)
			}
			if file != "" {
				return t.writeDashboards(cmd.Context(), from, last, file)
			}
			return t.serveDashboards(cmd.Context(), from, last, listen, names)
		},
	}
	f := c.Flags()
	f.StringVar(&source, "prometheus", "http://127.0.0.1:9090", "`URL` of the Prometheus")
	f.StringVar(&listen, "listen", "127.0.0.1:13000", "`ADDRESS` of the page")
	f.StringSliceVar(&names, "host", nil, "further `NAMES` by which the page may be addressed; requests to other names are refused")
	f.StringVar(&file, "html", "", "write the page to `FILE` instead")
	f.DurationVar(&last, "last", 15*time.Minute, "how much time the pictures show")
	return c
}

// canQuery returns an error with a remedy if no Prometheus answers.
func canQuery(ctx context.Context, from v1.API, at string) error {
	_, _, _, err := from.Query(ctx, "vector(1)", time.Time{})
	if refused := (*url.Error)(nil); errors.As(err, &refused) {
		return fmt.Errorf("no Prometheus answers at %s (%w): start one with the files of deploy/prometheus, see its README.md, or name another with --prometheus URL", at, refused.Err)
	}
	return err
}

// writeDashboards writes the page to a file, or nothing.
func (t *tool) writeDashboards(ctx context.Context, from v1.API, last time.Duration, file string) error {
	view := dashboards.Last(last, clock.System{}.Now())
	view.Refresh = 0
	var page bytes.Buffer
	if err := dashboards.Page(ctx, &page, from, view); err != nil {
		return command.Tried(err)
	}
	if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
		return command.Tried(err)
	}
	return nil
}

// serveDashboards serves the page until ctx ends.
func (t *tool) serveDashboards(ctx context.Context, from v1.API, last time.Duration, listen string, names []string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return command.Tried(fmt.Errorf("--listen %s: %w", listen, err))
	}
	page := dashboards.Handler(from, last, clock.System{}.Now, hosts.New(listen, names...))
	s := &http.Server{Handler: page, ReadHeaderTimeout: headerTime}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })() // A page under way is not waited for.
	if _, err := fmt.Fprintf(t.out, "dashboards at http://%s/, until interrupted\n", l.Addr()); err != nil {
		return command.Tried(errors.Join(err, l.Close()))
	}
	if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return command.Tried(err)
	}
	return nil
}
