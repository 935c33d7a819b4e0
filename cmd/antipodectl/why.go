package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/geo"
)

func (t *tool) whyCommand() *cobra.Command {
	var threshold time.Duration
	c := &cobra.Command{
		Use:   "why ACCOUNT",
		Short: "Explain what holds the Last Sync Time of an account back",
		Long: `why has one line for each service that is live with a lag below the threshold. Of every
other service it names the range and lane that hold Last Sync Time back, which may be the
catalog's, where that is, and the stage:

  not published     in the outbox of the primary, not in the stream
  in the stream     published, and not received by the secondary
  waiting to apply  received; it waits for its payload, its generation (table or container), the
                    account's gate, the clock, or an earlier record that is being pulled (gap)
  failing           the secondary cannot commit it: no leader, or the error
  stopped           the stream may not go on: an operator has to decide
  clock             nothing is known to wait; the clocks of the two locations differ
  link              the locations do not reach each other, or a bus does not answer
  unknown           what the locations answered does not show it

It asks both locations, and says which one it could not ask. "caught up in" goes by the
progress of the last seconds, and is left out while that is not measured.`,
		Example: `  antipodectl why pictures
  antipodectl why pictures --threshold 5s
  antipodectl why pictures --output json | jq '.services[].causes[]?.stage'`,
		Args: exactly("ACCOUNT"),
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("threshold") && threshold <= 0 {
				return usageError{errors.New("--threshold is a time above zero")}
			}
			return answer(t, func(ctx context.Context, args []string) (admin.Why, error) {
				return t.client.Why(ctx, geo.Account(args[0]), threshold)
			}, writeWhy)(cmd, args)
		}),
	}
	c.Flags().DurationVar(&threshold, "threshold", 0, "lag up to which all is well (default 1s)")
	return c
}

func writeWhy(w io.Writer, y admin.Why) {
	_, _ = fmt.Fprintf(w, "%s: %s to %s\n", y.Account, orDash(string(y.Primary)), orDash(string(y.Secondary)))
	writeUnasked(w, y.Silent)
	for _, s := range y.Services {
		state := orDash(string(s.Status))
		if s.Reason != "" {
			state += ": " + s.Reason
		}
		if s.LagSeconds != nil {
			state += ", " + span(*s.LagSeconds) + " behind"
		}
		if s.OK {
			_, _ = fmt.Fprintf(w, "%-6s all is well: %s\n", s.Service, state)
			continue
		}
		_, _ = fmt.Fprintf(w, "%-6s %s\n", s.Service, state)
		for _, c := range s.Causes {
			writeCause(w, c)
		}
		if s.More > 0 {
			_, _ = fmt.Fprintf(w, "       and %d more: antipodectl lag %s --service %s\n", s.More, y.Account, s.Service)
		}
		if s.CaughtUpInSeconds != nil {
			_, _ = fmt.Fprintf(w, "       caught up in about %s, as in the last seconds\n", span(*s.CaughtUpInSeconds))
		}
	}
}

func writeCause(w io.Writer, c admin.Cause) {
	_, _ = fmt.Fprintf(w, "       %s: %s", c.Stage, c.Detail)
	if c.Error != "" {
		_, _ = fmt.Fprintf(w, " (%s)", c.Error)
	}
	if c.Seconds != nil {
		_, _ = fmt.Fprintf(w, ", for %s", span(*c.Seconds))
	}
	_, _ = fmt.Fprintln(w)
	where := ""
	if c.Lane != nil {
		where = fmt.Sprintf("lane %d of ", *c.Lane)
	}
	if c.Range != 0 {
		where += fmt.Sprintf("range %d (%s)", c.Range, c.Service)
	}
	if c.Location != "" {
		if where != "" {
			where += " "
		}
		where += "at " + string(c.Location)
	}
	if !c.SyncTime.IsZero() {
		where += ", complete up to " + instant(c.SyncTime)
	}
	if where != "" {
		_, _ = fmt.Fprintf(w, "         %s\n", where)
	}
}
