package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/command"
	"antipode/geo"
)

func (t *tool) accountReservations() *cobra.Command {
	return &cobra.Command{
		Use:   "reservations",
		Short: "List the accounts whose creation has not ended",
		Long: `reservations lists what each location holds of accounts whose creation has not ended:
the creation at the location that becomes the primary, the reservation of the name at the
other, how old they are, and what they wait for. A reservation keeps its name from creations
at its own location for an hour.`,
		Example: `  antipodectl account reservations
  antipodectl account reservations --output json`,
		Args: exactly(),
		RunE: answer(t, func(ctx context.Context, _ []string) (admin.Reservations, error) {
			return t.client.Reservations(ctx)
		}, writeReservations),
	}
}

func writeReservations(w io.Writer, l admin.Reservations) {
	rows := [][]string{{"ACCOUNT", "LOCATION", "KIND", "PRIMARY", "EPOCH", "AGE", "WAITS FOR"}}
	for _, r := range l.Reservations {
		age := time.Duration(r.AgeSeconds * float64(time.Second)).Truncate(time.Second)
		rows = append(rows, []string{string(r.Name), string(r.Location), r.Kind, string(r.Primary), r.Epoch.String(), age.String(), r.Waits})
	}
	table(w, rows)
	writeSilent(w, l, "what it holds is not in the list")
}

// writeSilent names the locations that did not answer, and what that means.
func writeSilent(w io.Writer, l admin.Reservations, means string) {
	for _, name := range l.SilentLocations {
		_, _ = fmt.Fprintf(w, "location %s does not answer: %s\n", name, means)
	}
}

func (t *tool) accountFree() *cobra.Command {
	yes := false
	c := &cobra.Command{
		Use:   "free NAME --yes",
		Short: "Give up the creation of an account that has not ended",
		Long: `free gives up the creation of NAME, and the reservation of the name, at every location
that answers. A creation that still goes on ends with an error. An account that is complete
is refused. Names keep their highest epoch, so that nothing of the freed creation comes back.`,
		Example: `  antipodectl account reservations
  antipodectl account free pictures --yes`,
		Args: exactly("NAME"),
		RunE: answer(t, func(ctx context.Context, args []string) (admin.Reservations, error) {
			if !yes {
				return admin.Reservations{}, command.Wrong(errors.New("a creation of the name that still goes on is given up: agree with --yes"))
			}
			return t.client.FreeReservation(ctx, geo.Account(args[0]))
		}, func(w io.Writer, l admin.Reservations) {
			for _, r := range l.Reservations {
				_, _ = fmt.Fprintf(w, "freed %s: the %s at %s, epoch %s\n", r.Name, r.Kind, r.Location, r.Epoch)
			}
			writeSilent(w, l, "what it holds was not freed; free the name again when it is back")
		}),
	}
	c.Flags().BoolVar(&yes, "yes", false, "agree that a creation that still goes on is given up")
	return c
}
