package rig

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Metrics scrapes a process.
func (r *Rig) Metrics(ctx context.Context, process string) (string, error) {
	at := r.opts.WitnessMetrics()
	if process != Witness {
		at = r.ports(process).Admin()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/metrics", http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("rig: the metrics of %s: %s", process, resp.Status)
	}
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// Metric scrapes a process for a metric without labels.
func (r *Rig) Metric(ctx context.Context, process, name string) (float64, error) {
	text, err := r.Metrics(ctx, process)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(v), 64)
		}
	}
	return 0, fmt.Errorf("rig: %s has no metric %s", process, name)
}
