package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"antipode/client/check"
	"antipode/geo"
)

// dropped is what a location keeps of an account that a command deletes.
type dropped struct {
	Location geo.Location `json:"location"`
	Account  geo.Account  `json:"account"`
	// Entries are those that there were, Bytes what they are of rows, PayloadBytes of payload.
	Entries      int    `json:"entries"`
	Bytes        uint64 `json:"bytes"`
	PayloadBytes uint64 `json:"payload_bytes"`
	// Begun reports that they were deleted: Dropped of them.
	Begun   bool `json:"begun"`
	Dropped int  `json:"dropped"`
}

// dropCommand is a command that deletes what a location keeps of an account. As all that delete data it shows that first, and
// changes nothing without --yes. command and export, which saves it, have the words LOCATION and ACCOUNT for those.
func (t *tool) dropCommand(
	short, long, command, export string, drop func(ctx context.Context, l geo.Location, account geo.Account, yes bool) (dropped, error),
) *cobra.Command {
	of := func(l geo.Location, account geo.Account, line string) string {
		return strings.NewReplacer("LOCATION", string(l), "ACCOUNT", string(account)).Replace(line)
	}
	var yes bool
	c := &cobra.Command{
		Use:     "drop LOCATION ACCOUNT [--yes]",
		Short:   short,
		Long:    long,
		Example: of("southcentralus", "pictures", fmt.Sprintf("  %s\n  %s\n  %s --yes", command, export, command)),
		Args:    exactly("LOCATION", "ACCOUNT"),
		RunE: answer(t, func(ctx context.Context, args []string) (dropped, error) {
			l, account := geo.Location(args[0]), geo.Account(args[1])
			out, err := drop(ctx, l, account, yes)
			out.Location, out.Account, out.Begun = l, account, yes
			return out, err
		}, func(w io.Writer, d dropped) {
			if d.Begun {
				_, _ = fmt.Fprintf(w, "%s of account %s %s dropped at %s\n", check.Count(d.Dropped, "entry"), d.Account, check.Are(d.Dropped), d.Location)
				return
			}
			_, _ = fmt.Fprintf(w, "%s of account %s (%s, and %s of payload) would be dropped at %s, for good\n",
				check.Count(d.Entries, "entry"), d.Account, size(d.Bytes), size(d.PayloadBytes), d.Location)
			if d.Entries > 0 {
				_, _ = fmt.Fprintf(w, "save them first: %s\n%s\n", of(d.Location, d.Account, export), nothingChanged)
			}
		}),
	}
	c.Flags().BoolVar(&yes, "yes", false, "delete them")
	return c
}
