package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"antipode/client/admin"
)

func (t *tool) forkCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:     "fork",
		Short:   "Show the streams that may not go on",
		Example: `  antipodectl fork list`,
	})
	c.AddCommand(t.forkList(), t.forkShow(), t.forkResume(), t.forkResolve(), t.forkFound())
	return c
}

func (t *tool) forkList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the streams that may not go on, at both locations",
		Long: `list shows each stream that may not go on, once for each location that keeps it:
since when, why, and the last record there (HERE) and at the other location (THERE).
The copy of such a stream at the secondary stands still, Last Sync Time of its account's
service is unavailable, and nothing of it is deleted at the source. Restarts change nothing.

REASON is forked: both ends hold another record under a number, or the receiver is ahead;
lost: the receiver lost what it had acknowledged; poison: a record cannot be decoded;
version: a record is of a later release; settling: fork resolve was given, and the copies
are not equal yet. docs/admin.md says what to do.`,
		Example: `  antipodectl fork list
  antipodectl fork list --output json`,
		Args: exactly(),
		RunE: answer(t, func(ctx context.Context, _ []string) (admin.Forks, error) { return t.client.Forks(ctx) }, writeForks),
	}
}

func (t *tool) forkShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show ACCOUNT|STREAM",
		Short: "Show the stopped streams of an account, or one stream",
		Example: `  antipodectl fork show pictures
  antipodectl fork show pictures/1@northcentralus/r4/l17 --output json`,
		Args: exactly("ACCOUNT|STREAM"),
		RunE: answer(t, func(ctx context.Context, args []string) (admin.Forks, error) {
			all, err := t.client.Forks(ctx)
			all.Forks = slices.DeleteFunc(all.Forks, func(f admin.Fork) bool { return string(f.Account) != args[0] && f.Stream != args[0] })
			return all, err
		}, writeForkDetails),
	}
}

func writeForks(w io.Writer, l admin.Forks) {
	if len(l.Forks) == 0 {
		_, _ = fmt.Fprintln(w, "every stream may go on")
	} else {
		rows := [][]string{{"STREAM", "SERVICE", "REASON", "LOCATION", "SIDE", "HERE", "THERE", "SINCE"}}
		for _, f := range l.Forks {
			rows = append(rows, []string{f.Stream, f.Service, f.Reason, string(f.Location), f.Side, recordText(f.Here), recordText(f.There), instant(f.Since)})
		}
		table(w, rows)
	}
	writeIncomplete(w, l)
}

func writeForkDetails(w io.Writer, l admin.Forks) {
	if len(l.Forks) == 0 {
		_, _ = fmt.Fprintln(w, "no stream of that name or account is stopped")
	}
	for i, f := range l.Forks {
		if i > 0 && l.Forks[i-1].Stream != f.Stream {
			_, _ = fmt.Fprintln(w)
		}
		if i == 0 || l.Forks[i-1].Stream != f.Stream {
			_, _ = fmt.Fprintf(w, "stream   %s\naccount  %s, %s, lane %d of range %d, epoch %s\n", f.Stream, f.Account, f.Service, f.Lane, f.Range, f.Epoch)
		}
		reason := f.Reason
		if f.Keep != "" {
			reason += fmt.Sprintf(" (the rows of %s are kept)", f.Keep)
		}
		_, _ = fmt.Fprintf(w, "at       %s (%s): %s since %s; its last record is %s, the other location's %s\n",
			f.Location, f.Side, reason, instant(f.Since), recordText(f.Here), recordText(f.There))
	}
	writeIncomplete(w, l)
}

func writeIncomplete(w io.Writer, l admin.Forks) {
	for _, who := range l.Silent {
		_, _ = fmt.Fprintf(w, "%s does not answer: the list may be incomplete\n", who)
	}
}

// recordText names a record by number and hash.
func recordText(h admin.RecordHead) string {
	if h.Number == 0 {
		return unknown
	}
	return fmt.Sprintf("#%d %s", h.Number, h.Hash)
}
