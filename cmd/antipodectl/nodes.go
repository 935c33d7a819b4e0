package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
)

// nodeList is what nodes prints as JSON: the nodes of the status document.
type nodeList struct {
	Nodes []admin.Node `json:"nodes"`
	at    time.Time
}

func (t *tool) nodesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "nodes",
		Short: "Show version, uptime, disk, clock, certificate and lease of each node",
		Long: `nodes has a row for each node of both locations:

  VERSION    of its program
  UP         how long its process has run
  DISK FREE  what is free on the disk of its folder
  CLOCK      how far its clock is ahead (+) of that of the node of its stamp that it differs
             most from, or behind (-); off: so far that it leads no writes
  CERT       for how long its certificate holds
  LEASE      for how long its lease from the witness holds: without one it refuses writes

A dash is what the node has not, or does not say: it does not answer, or is of an earlier version.`,
		Example: `  antipodectl nodes
  antipodectl nodes --output json | jq '.nodes[] | {name, version, disk_free_bytes}'`,
		Args: exactly(),
		RunE: answer(t, func(ctx context.Context, _ []string) (nodeList, error) {
			out := nodeList{Nodes: []admin.Node{}, at: t.now()}
			s, err := t.client.Status(ctx)
			for _, l := range s.Locations {
				out.Nodes = append(out.Nodes, l.Nodes...)
			}
			return out, err
		}, writeNodes),
	}
}

func writeNodes(w io.Writer, l nodeList) {
	rows := [][]string{{"NODE", "STATE", "VERSION", "UP", "DISK FREE", "CLOCK", "CERT", "LEASE"}}
	for _, n := range l.Nodes {
		version, _, _ := strings.Cut(orDash(n.Version), "+")
		up, free, clock, cert, lease := "-", "-", "-", "-", "-"
		if n.UptimeSeconds > 0 {
			up = coarse(n.UptimeSeconds)
		}
		switch {
		case n.DiskFull:
			free = "full"
		case n.DiskBytes > 0:
			free = size(n.DiskFreeBytes)
		}
		switch {
		case n.ClockOff != "":
			clock = "off"
		case n.ClockAheadSeconds != nil:
			clock = fmt.Sprintf("%+.3fs", math.Round(*n.ClockAheadSeconds*1000)/1000+0) // No -0.000.
		}
		if !n.CertificateEnds.IsZero() {
			cert = "ended"
			if left := n.CertificateEnds.Sub(l.at); left > 0 {
				cert = coarse(left.Seconds())
			}
		}
		if n.LeaseSeconds != nil {
			lease = "none"
			if *n.LeaseSeconds > 0 {
				lease = coarse(*n.LeaseSeconds)
			}
		}
		rows = append(rows, []string{n.Name, string(n.State), version, up, free, clock, cert, lease})
	}
	table(w, rows)
}

// coarse prints seconds by their greatest unit, rounded down.
func coarse(seconds float64) string {
	for _, unit := range []struct {
		seconds float64
		name    string
	}{{86400, "d"}, {3600, "h"}, {60, "m"}} {
		if seconds >= unit.seconds {
			return fmt.Sprintf("%.0f%s", math.Floor(seconds/unit.seconds), unit.name)
		}
	}
	return fmt.Sprintf("%.0fs", math.Floor(seconds))
}
