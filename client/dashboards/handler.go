package dashboards

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"antipode/internal/hosts"
)

// Bounds of a page that is served.
const (
	pageTime    = 30 * time.Second
	pageRefresh = 10 * time.Second
	// valuesMax is how many values of a series a page shows, but for one second between two.
	valuesMax = 300
)

// Last returns the view of the time before now.
func Last(d time.Duration, now time.Time) View {
	step := max(time.Second, (d / valuesMax).Truncate(time.Second))
	to := now.Truncate(step) // So that two pages show the same values of the same times.
	return View{From: to.Add(-d), To: to, Step: step, Refresh: pageRefresh}
}

// Handler serves the page of the last d, by the wall clock now, to requests that address one of to.
func Handler(from Prometheus, d time.Duration, now func() time.Time, to hosts.Hosts) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !to.Allow(r) {
			http.Error(w, fmt.Sprintf("the page of dashboards: the request was sent to the host %q, which is not a name of this port: "+
				"use its address, or add the name with --host", r.Host), http.StatusForbidden)
			return
		}
		if r.URL.Path != "/" || r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.NotFound(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), pageTime)
		defer cancel()
		var b bytes.Buffer
		if err := Page(ctx, &b, from, Last(d, now())); err != nil {
			http.Error(w, "the page of dashboards: "+err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(b.Bytes()) // A client that has gone is no error here.
	})
}
