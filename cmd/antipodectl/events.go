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
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

// eventsInterval is the time between two requests of --watch.
const eventsInterval = time.Second

// eventsMost is how many events are shown if nobody says otherwise.
const eventsMost = 100

func (t *tool) eventsCommand() *cobra.Command {
	var watch bool
	var limit int
	c := &cobra.Command{
		Use:   "events",
		Short: "Show what happened to replicas, ranges, nodes and the link, newest last",
		Long: `events shows the event log: replicas that left the in-sync set and returned, were lost
and rebuilt, new leaders, range snapshots, full disks, failed stores, and services of accounts
without a Last Sync Time, with the reason, failovers, and what operators made of the link. A
process keeps the newest of each location in memory; docs/admin.md lists the kinds.

It shows the newest 100, or --limit, and says how many older ones it leaves off.`,
		Example: `  antipodectl events
  antipodectl events --limit 20
  antipodectl events --watch
  antipodectl events --limit 0 --output json | jq '.events[] | select(.kind == "left-in-sync")'`,
		Args: exactly(),
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return command.Wrong(fmt.Errorf("--limit is how many events are shown, 0 for all, not %d", limit))
			}
			if watch {
				return t.watchEvents(cmd.Context(), limit)
			}
			list, err := t.client.Events(cmd.Context())
			if err != nil {
				return err
			}
			t.warnSilent(list.Silent)
			return t.printEvents(list, limit)
		}),
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "go on with new events until interrupted; with json one document at a time")
	c.Flags().IntVar(&limit, "limit", eventsMost, "show the newest `N`, 0 for all that are kept; with --watch of those that are there at first")
	return c
}

// printEvents writes the newest events of a list that has these first; limit 0 is all.
func (t *tool) printEvents(list admin.EventList, limit int) error {
	if older := len(list.Events) - limit; limit > 0 && older > 0 {
		list.Events, list.LeftOff = list.Events[:limit], older
	}
	return t.print(list, func(w io.Writer) {
		if list.LeftOff > 0 {
			_, _ = fmt.Fprintf(w, "%s left off: antipodectl events --limit 0\n", check.Count(list.LeftOff, "older event"))
		}
		writeEvents(w, list.Events)
	})
}

// watchEvents shows each event once until ctx ends. A server that cannot be reached at
// first is a failure; one that goes away later may come back, with another log. limit is of those that are there at first.
func (t *tool) watchEvents(ctx context.Context, limit int) error {
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
				err = t.printEvents(admin.EventList{Events: fresh}, limit)
			}
			limit = 0
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
