package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

func (t *tool) rangeCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:     "range",
		Short:   "Bring back a range that lost its quorum",
		Example: `  antipodectl range recover northcentralus 4 --accept-loss`,
	})
	c.AddCommand(t.recoverCommand())
	return c
}

func (t *tool) recoverCommand() *cobra.Command {
	var in admin.RecoverRange
	c := &cobra.Command{
		Use:   "recover LOCATION RANGE",
		Short: "Re-form a range from its best survivor, giving up what the others held",
		Long: `recover re-forms a range that has no quorum of trusted replicas, and so answers 503,
from the best replica that is left: reads work again at once, writes when a second node
is back and was fed. What only the others had acknowledged is lost, and the other location
may be ahead of it: docs/admin.md says what to expect.

The nodes that do not answer must be dead for good, or able to reach the survivor when they
come back: two of them that reach only each other would go on as if nothing had happened.
Without --accept-loss, as with --dry-run, it changes nothing: it names the replica that would
be kept and those given up.

It is refused while a quorum of trusted replicas answers: then nothing is to recover.

The other location is asked up to which time it has received the range: whatever the range
commits from then on is later. If it does not answer, nothing happens without --without-pair:
then its copy is taken to be forked if it has received later times.`,
		Example: `  antipodectl status                      # RANGE is the ID or the service of a range without a leader
  antipodectl range recover northcentralus table
  antipodectl range recover northcentralus 4 --accept-loss
  antipodectl range recover northcentralus 4 --accept-loss --untrusted --output json`,
		Args: exactly("LOCATION", "RANGE"),
		RunE: answer(t, func(ctx context.Context, args []string) (r admin.RangeRecovered, err error) {
			id, err := t.rangeNamed(ctx, geo.Location(args[0]), args[1])
			if err != nil {
				return r, err
			}
			in.DryRun = in.DryRun || !in.AcceptLoss
			in.AcceptLoss = !in.DryRun // A server of an earlier version refuses a dry run.
			return t.client.RecoverRange(ctx, geo.Location(args[0]), id, in)
		}, writeRecovered),
	}
	c.Flags().BoolVar(&in.AcceptLoss, "accept-loss", false, "agree that what only the lost replicas held is lost")
	c.Flags().BoolVar(&in.DryRun, "dry-run", false, "change nothing, and show what would be kept and given up")
	c.Flags().BoolVar(&in.WithoutPair, "without-pair", false, "do not ask the other location up to which time it has received the range")
	c.Flags().BoolVar(&in.Untrusted, "untrusted", false, "take a replica that lost fsynced data, where no trusted one is left")
	return c
}

// rangeNamed returns the range of a location with a number, or the only one of a service.
func (t *tool) rangeNamed(ctx context.Context, at geo.Location, name string) (geo.RangeID, error) {
	if id, err := strconv.ParseUint(name, 10, 32); err == nil && id > 0 {
		return geo.RangeID(id), nil
	}
	if _, err := geo.ParseService(name); err != nil {
		return 0, command.Wrong(fmt.Errorf("%q is no range: give its number or its service, antipodectl status --all shows them", name))
	}
	s, err := t.client.Status(ctx)
	if err != nil {
		return 0, err
	}
	var found []geo.RangeID
	for _, l := range s.Locations {
		for _, r := range l.Ranges {
			if l.Name == at && r.Service == name {
				found = append(found, r.Range)
			}
		}
	}
	if len(found) != 1 {
		return 0, command.Wrong(fmt.Errorf("%s has %s of service %s: give the number of one, antipodectl status --all shows them", at, check.Count(len(found), "range"), name))
	}
	return found[0], nil
}

// writeRecovered writes one line for people.
func writeRecovered(w io.Writer, r admin.RangeRecovered) {
	verb := "goes on"
	if r.DryRun {
		verb = "would go on"
	}
	_, _ = fmt.Fprintf(w, "range %d of %s %s from %s: kept up to index %d of term %d (%d known committed)",
		r.Range, r.Location, verb, r.Survivor, r.KeptIndex, r.KeptTerm, r.KnownCommitted)
	if !r.Trusted {
		_, _ = fmt.Fprint(w, "; it was not trusted")
	}
	if r.LostIndex > 0 {
		_, _ = fmt.Fprintf(w, "; lost at least up to index %d", r.LostIndex)
	}
	if r.TimesUnchecked {
		_, _ = fmt.Fprint(w, "; the times that the other location has received were not checked")
	}
	if len(r.SilentNodes) > 0 {
		_, _ = fmt.Fprintf(w, "; keep %s dead or able to reach it", strings.Join(r.SilentNodes, " and "))
	}
	_, _ = fmt.Fprintln(w)
	for _, g := range r.GivenUp {
		_, _ = fmt.Fprintf(w, "  given up: %s, up to index %d of term %d", g.Node, g.Index, g.Term)
		if g.Reason != "" {
			_, _ = fmt.Fprintf(w, ": %s", g.Reason)
		}
		_, _ = fmt.Fprintln(w)
	}
	if r.DryRun {
		flags := ""
		if !r.Trusted {
			flags += " --untrusted"
		}
		if r.TimesUnchecked {
			flags += " --without-pair"
		}
		_, _ = fmt.Fprintf(w, "nothing was changed; once the folders of those given up cannot be put back: antipodectl range recover %s %d --accept-loss%s\n",
			r.Location, r.Range, flags)
	}
}
