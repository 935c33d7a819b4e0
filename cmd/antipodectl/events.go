package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/geo"
)

// eventsInterval is the time between two requests of --watch.
const eventsInterval = time.Second

func (t *tool) eventsCommand() *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use:   "events",
		Short: "Show what happened to replicas, ranges and nodes, newest last",
		Long: `events shows the event log: replicas that left the in-sync set and returned, were lost
and rebuilt, new leaders, range snapshots, full disks, failed stores, and services of accounts
without a Last Sync Time, with the reason. A process keeps
the newest of each location in memory; docs/admin.md lists the kinds.`,
		Example: `  antipodectl events
  antipodectl events --watch
  antipodectl events --output json | jq '.events[] | select(.kind == "left-in-sync")'`,
		Args: exactly(),
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			if watch {
				return t.watchEvents(cmd.Context())
			}
			list, err := t.client.Events(cmd.Context())
			if err != nil {
				return err
			}
			t.warnSilent(list.Silent)
			return t.print(list, func(w io.Writer) { writeEvents(w, list.Events) })
		}),
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "go on with new events until interrupted; with json one document at a time")
	return c
}

// watchEvents shows each event once until ctx ends. A server that cannot be reached at
// first is a failure; one that goes away later may come back, with another log.
func (t *tool) watchEvents(ctx context.Context) error {
	shown, silent := map[geo.Location]uint64{}, []string(nil)
	for first := true; ; first = false {
		all, err := t.client.Events(ctx)
		list := all.Events
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil:
			t.complain(err)
		default:
			if !slices.Equal(all.Silent, silent) {
				silent = all.Silent
				t.warnSilent(silent)
			}
			newest := map[geo.Location]uint64{}
			for _, e := range list {
				newest[e.Location] = max(newest[e.Location], e.Number)
			}
			fresh := slices.DeleteFunc(list, func(e admin.Event) bool {
				return newest[e.Location] >= shown[e.Location] && e.Number <= shown[e.Location]
			})
			shown = newest
			if len(fresh) > 0 {
				err = t.print(admin.EventList{Events: fresh}, func(w io.Writer) { writeEvents(w, fresh) })
			}
			if err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.after(eventsInterval):
		}
	}
}

// warnSilent names the locations and nodes whose events are missing.
func (t *tool) warnSilent(silent []string) {
	for _, name := range silent {
		_, _ = fmt.Fprintf(t.errOut, "WARNING: %s does not answer: its events are missing\n", name)
	}
}

// writeEvents writes events for people, newest last, where a terminal shows it.
func writeEvents(w io.Writer, list []admin.Event) {
	for _, e := range slices.Backward(list) {
		of := "-"
		if e.Range != 0 {
			of = "range " + strconv.FormatUint(uint64(e.Range), 10)
		}
		replica := ""
		if e.Replica != 0 {
			replica = fmt.Sprintf(" replica %d", e.Replica)
		}
		if e.Account != "" {
			replica = "account " + string(e.Account)
			if e.Service != "" {
				replica += ", " + e.Service
			}
			if e.Node != "" {
				replica = " " + replica
			}
		} else if e.Node == "" {
			replica = string(e.Location)
		}
		reason := ""
		if e.Reason != "" {
			reason = "  " + e.Reason
		}
		_, _ = fmt.Fprintf(w, "%s  %-18s  %-8s  %s%s%s\n", instant(e.Time), e.Kind, of, e.Node, replica, reason)
	}
}
