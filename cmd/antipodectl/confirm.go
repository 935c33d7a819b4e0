package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

func (t *tool) confirmCommand() *cobra.Command {
	var notPromoted bool
	c := &cobra.Command{
		Use:   "confirm LOCATION --not-promoted",
		Short: "Let a location take writes although the other one does not answer",
		Long: `confirm ends the wait of a location that has started and has not reached the other one.
Until then it refuses writes of accounts that have a copy there: one of them may have been
promoted at the other location while this one was away, and a write would be lost.

Give it only if you know that no account of LOCATION was promoted. It is kept in memory: a
location that starts again waits again. An account that is known to have a higher epoch at
the other location stays refused.`,
		Example: `  antipodectl status
  antipodectl location confirm northcentralus --not-promoted`,
		Args: exactly("LOCATION"),
		RunE: answer(t, func(ctx context.Context, args []string) (e admin.Epochs, err error) {
			if !notPromoted {
				return e, command.Wrong(errors.New("both locations would take writes of an account that was promoted: agree with --not-promoted"))
			}
			return t.client.ConfirmEpochs(ctx, geo.Location(args[0]))
		}, writeEpochs),
	}
	c.Flags().BoolVar(&notPromoted, "not-promoted", false, "agree that no account of the location was promoted at the other one")
	return c
}

// writeEpochs writes one line for people.
func writeEpochs(w io.Writer, e admin.Epochs) {
	_, _ = fmt.Fprintf(w, "epochs are confirmed, by %s", e.By)
	if n := len(e.Refused); n > 0 {
		_, _ = fmt.Fprintf(w, "; %s still refused, for a higher epoch at the other location", check.Count(n, "account"))
	}
	_, _ = fmt.Fprintln(w)
}
