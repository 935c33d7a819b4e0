package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

const (
	// verifyPause is the pause between two looks at a comparison, verifyShow the time between two lines
	// about how far it is.
	verifyPause = 250 * time.Millisecond
	verifyShow  = 5 * time.Second
)

func (t *tool) verifyCommand() *cobra.Command {
	var q admin.VerifyQuery
	var dry bool
	c := &cobra.Command{
		Use:   "verify ACCOUNT",
		Short: "Compare both copies of an account while it is in use, and repair the secondary",
		Long: `verify compares the rows of an account in both locations, and looks for each payload chunk
that a row names at the secondary; --payload has the chunks read, too. Writes go on.

A lane of a range is compared when the head of its stream at the primary and the cursor at
the secondary are the same record. A lane that moved is tried again, up to eight times; after
that it is listed as not compared, never as different. So is a lane whose stream is stopped,
and every lane while the other location is away. An account whose former primary still
follows an unplanned failover is refused: its copies differ until then.
What was deleted with its container is not compared.

A difference is missing (at the secondary), extra (there), different, payload missing or
payload corrupt. Up to 1,000 are listed, and all that were found are counted.

With --repair the secondary gets the primary's row for each difference, with its payload, and
rows that the primary does not have are deleted. These are ordinary changes, at
--repair-rate bytes per second, in order with those of clients. Then both copies are compared
again. A row whose payload is damaged at the primary, too, is not repaired. Payload that is
damaged is found with --payload alone. --dry-run only compares.

The comparison runs in a process of the primary location, at --rate bytes per second at each
end. When this command is interrupted it goes on: the next verify of the account shows it. If
that process stops, the next verify --repair goes on with what differs still.

Exit codes: 0 both copies are equal, or equal again, 1 they differ, 3 not everything could be
compared.`,
		Example: `  antipodectl verify pictures
  antipodectl verify pictures --service blob --payload --rate 200MiB
  antipodectl verify pictures --payload --repair
  antipodectl verify pictures --output json | jq '.differences[]'`,
		Args: exactly("ACCOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := geo.ParseService(q.Service)
			if q.Service != "" && (err != nil || s == geo.Catalog) {
				return command.Wrong(fmt.Errorf("--service is blob, queue or table, not %q", q.Service))
			}
			if dry && !q.Repair {
				return command.Wrong(errors.New("--dry-run belongs to --repair"))
			}
			q.Repair = q.Repair && !dry
			out, err := t.verify(cmd.Context(), geo.Account(args[0]), q)
			if err == nil {
				err = t.print(out, func(w io.Writer) { writeVerify(w, out) })
			}
			switch {
			case err != nil:
				return &command.Error{Code: command.Partial, Err: err}
			case out.Outcome == admin.VerifyDifferent:
				return &command.Error{Code: command.Failed, Err: fmt.Errorf("the copies of %s differ", out.Account)}
			case out.Outcome != admin.VerifyEqual && out.Outcome != admin.VerifyRepaired:
				return &command.Error{Code: command.Partial, Err: fmt.Errorf("not everything of %s could be compared", out.Account)}
			}
			return nil
		},
	}
	c.Flags().StringVar(&q.Service, "service", "", "`SERVICE` to compare: blob, queue or table (default all)")
	c.Flags().BoolVar(&q.Payload, "payload", false, "read the payload at the secondary and compare its checksums")
	c.Flags().Var(command.Flag{Bytes: &q.BytesPerSecond}, "rate", "`SIZE` per second that each location reads at most (default 64 MiB)")
	c.Flags().BoolVar(&q.Repair, "repair", false, "have the secondary's rows that differ made equal to the primary's")
	c.Flags().BoolVar(&dry, "dry-run", false, "with --repair: compare, and repair nothing")
	c.Flags().Var(command.Flag{Bytes: &q.RepairBytesPerSecond}, "repair-rate", "`SIZE` per second that a repair sends at most (default 8 MiB)")
	return c
}

// verify starts a comparison and waits for its end. It shows on stderr how far it is.
func (t *tool) verify(ctx context.Context, name geo.Account, q admin.VerifyQuery) (admin.Verify, error) {
	out, err := t.client.StartVerify(ctx, name, q)
	shown := t.mono()
	for err == nil && out.State == admin.VerifyRunning {
		select {
		case <-ctx.Done():
			return out, errors.New("interrupted: the comparison goes on, and the next verify of the account shows it")
		case <-t.after(verifyPause):
		}
		if out, err = t.client.Verify(ctx, name); err == nil && t.mono()-shown >= verifyShow {
			shown = t.mono()
			_, _ = fmt.Fprintln(t.errOut, verifyProgress(out))
		}
	}
	return out, err
}

// verifyProgress is one line about how far a comparison is.
func verifyProgress(v admin.Verify) string {
	done, read, now := 0, uint64(0), ""
	for _, r := range v.Ranges {
		read += r.BytesRead
		switch {
		case r.Done:
			done++
		case now == "":
			now = fmt.Sprintf("; %s range: round %d, %d of %d lanes", r.Service, r.Round, r.Compared, r.Lanes)
		}
	}
	if v.Repaired != nil {
		now += "; repaired: " + repaired(v.Repaired)
	}
	return fmt.Sprintf("%s: %d of %d ranges, %s read%s", v.Account, done, len(v.Ranges), size(read), now)
}

// repaired words what a repair has done so far.
func repaired(r *admin.VerifyRepair) string {
	s := fmt.Sprintf("%s set, %d deleted, %s sent", check.Count(r.Set, "row"), r.Deleted, size(r.Bytes))
	if r.Gone > 0 {
		s += fmt.Sprintf(", %d deleted meanwhile with their containers", r.Gone)
	}
	if r.NotRepaired > 0 {
		s += fmt.Sprintf(", %d not repaired", r.NotRepaired)
	}
	return s
}

func writeVerify(w io.Writer, v admin.Verify) {
	_, _ = fmt.Fprintf(w, "account  %s: %s to %s\nresult   %s\ncrossed  %s\n", v.Account, v.Primary, v.Secondary, outcome(v), size(v.BytesCrossed))
	if v.Repaired != nil {
		_, _ = fmt.Fprintf(w, "repaired %s\n", repaired(v.Repaired))
	}
	_, _ = fmt.Fprintln(w)
	rows := [][]string{{"RANGE", "SERVICE", "LANES", "ROWS", "BYTES", "CHUNKS", "CHUNK BYTES READ"}}
	for _, r := range v.Ranges {
		rows = append(rows, []string{
			fmt.Sprintf("r%d", r.Range), r.Service, fmt.Sprintf("%d of %d", r.Compared, r.Lanes), fmt.Sprint(r.Rows), size(r.Bytes),
			fmt.Sprint(r.Chunks), size(r.ChunkBytes),
		})
	}
	table(w, rows)
	if left := notCompared(v.Ranges); len(left) > 0 {
		_, _ = fmt.Fprintf(w, "\n%s\n", strings.Join(left, "\n"))
	}
	if len(v.Differences) > 0 {
		_, _ = fmt.Fprintln(w)
		writeDifferences(w, v)
	}
}

// notCompared has a line for each cause that kept lanes from being compared, with the first of them. Causes are alike that
// differ in numbers alone.
func notCompared(of []admin.VerifiedRange) (lines []string) {
	type cause struct {
		first    string
		lanes    int
		services []string
	}
	var order []string
	by := map[string]*cause{}
	for _, r := range of {
		for _, l := range r.NotCompared {
			reason := check.OneLine(l.Reason)
			kind := alike.ReplaceAllString(reason, "")
			c := by[kind]
			if c == nil {
				c = &cause{first: fmt.Sprintf("r%d/l%d (%s): %s", r.Range, l.Lane, r.Service, reason)}
				by[kind], order = c, append(order, kind)
			}
			if c.lanes++; !slices.Contains(c.services, r.Service) {
				c.services = append(c.services, r.Service)
			}
		}
	}
	for _, kind := range order {
		line := "not compared: "
		if c := by[kind]; c.lanes > 1 {
			line += fmt.Sprintf("%s (%s), such as ", check.Count(c.lanes, "lane"), strings.Join(c.services, ", "))
		}
		lines = append(lines, line+by[kind].first)
	}
	return lines
}

func writeDifferences(w io.Writer, v admin.Verify) {
	head := []string{"DIFFERENCE", "SERVICE", "CONTAINER", "OBJECT", "ROW", "CHUNK"}
	if v.Repaired != nil {
		head = append(head, "REPAIR")
	}
	rows := [][]string{head}
	for _, d := range v.Differences {
		chunk := d.Chunk
		if d.Reason != "" && d.Reason != "missing" {
			chunk = strings.TrimSpace(chunk + " " + d.Reason)
		}
		row := []string{d.Kind, d.Service, orDash(printable(d.Container)), orDash(printable(d.Object)), orDash(printable(d.Row)), orDash(chunk)}
		if v.Repaired != nil {
			row = append(row, orDash(printable(d.Repair)))
		}
		rows = append(rows, row)
	}
	table(w, rows)
}

// printable quotes what clients named where it has characters that a terminal should not get.
func printable(s string) string {
	if q := fmt.Sprintf("%q", s); q != `"`+s+`"` {
		return q
	}
	return s
}

// outcome words the result.
func outcome(v admin.Verify) string {
	switch v.Outcome {
	case admin.VerifyEqual:
		return "equal"
	case admin.VerifyRepaired:
		return fmt.Sprintf("equal again: %s repaired", check.Count(v.DifferencesTotal, "difference"))
	case admin.VerifyDifferent:
		if v.Repaired != nil && v.Repaired.Remaining < v.DifferencesTotal {
			return fmt.Sprintf("different: %s found, of which %d left", check.Count(v.DifferencesTotal, "difference"), v.Repaired.Remaining)
		}
		least := ""
		if v.AtLeast {
			least = "at least "
		}
		return fmt.Sprintf("different: %s%s, %d listed", least, check.Count(v.DifferencesTotal, "difference"), len(v.Differences))
	}
	return "nothing that was compared differs, but not everything was compared"
}
