package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

func (t *tool) lagCommand() *cobra.Command {
	var q admin.LagQuery
	c := &cobra.Command{
		Use:   "lag ACCOUNT",
		Short: "Show how far the secondary of an account is, by service and lane",
		Long: `lag shows the Last Sync Time of each service, and the sync time of each stream: a stream is
one lane of a range, and holds the changes of the partitions of that lane in order. Every
change of a stream committed at or before its sync time can be read at the secondary. Last
Sync Time of a service is the least of its streams and those of the catalog.

BEHIND counts the records up to HEAD that are not applied. HEAD is the last record at the
primary (FROM is primary). If the primary cannot be asked it is the last one that the
secondary received notice of (FROM is closed); there may be later ones.

--partition shows the one lane that holds a partition: container/blob, or
table/PartitionKey. Nothing is estimated: what is not known is "unknown", and absent in JSON.`,
		Example: `  antipodectl lag pictures
  antipodectl lag pictures --service table
  antipodectl lag pictures --service blob --partition photos/2026/cat.jpg
  antipodectl lag pictures --output json | jq '.streams[] | select(.lag_records > 0)'`,
		Args: exactly("ACCOUNT"),
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			s, err := geo.ParseService(q.Service)
			switch {
			case q.Service != "" && (err != nil || s == geo.Catalog):
				return command.Wrong(fmt.Errorf("--service is blob, queue or table, not %q", q.Service))
			case q.Partition != "" && q.Service == "":
				return command.Wrong(errors.New("--partition needs --service"))
			}
			return answer(t, func(ctx context.Context, args []string) (admin.Lag, error) {
				return t.client.Lag(ctx, geo.Account(args[0]), q)
			}, writeLag)(cmd, args)
		}),
	}
	c.Flags().StringVar(&q.Service, "service", "", "`SERVICE` to show: blob, queue or table")
	c.Flags().StringVar(&q.Partition, "partition", "", "`KEY` of a partition: container/blob or table/PartitionKey")
	return c
}

func writeLag(w io.Writer, l admin.Lag) {
	_, _ = fmt.Fprintf(w, "account    %s: %s to %s\n", l.Account, orNone(string(l.Primary)), orNone(string(l.Secondary)))
	if p := l.Partition; p != nil {
		_, _ = fmt.Fprintf(w, "partition  %s of %s: lane %d\n", p.Key, p.Service, p.Lane)
	}
	writeUnasked(w, l.Silent)
	if l.Secondary == "" && l.Primary != "" {
		_, _ = fmt.Fprintln(w, "nothing is copied: the account has no secondary")
		return
	}
	_, _ = fmt.Fprintln(w)
	rows := [][]string{{"SERVICE", "STATUS", "LAST SYNC TIME", "LAG", "BEHIND"}}
	for _, s := range l.Services {
		status := orDash(string(s.Status))
		if s.Reason != "" {
			status += ": " + s.Reason
		}
		rows = append(rows, []string{s.Service, status, instantOrUnknown(s.LastSyncTime), spanOrUnknown(s.LagSeconds), behind(s)})
	}
	table(w, rows)
	_, _ = fmt.Fprintln(w)
	if len(l.Streams) == 0 {
		_, _ = fmt.Fprintln(w, "no stream has a record yet")
		return
	}
	rows = [][]string{{"STREAM", "SERVICE", "SYNC TIME", "LAG", "APPLIED", "HEAD", "FROM", "BEHIND"}}
	for _, s := range l.Streams {
		name := s.Stream
		if name == "" {
			name = fmt.Sprintf("none yet: r%d/l%d", s.Range, s.Lane)
		}
		if s.Stopped != "" {
			name += " (stopped: " + s.Stopped + ")"
		}
		rows = append(rows, []string{
			name, s.Service, instantOrUnknown(s.SyncTime), spanOrUnknown(s.LagSeconds), countOrUnknown(s.Applied), countOrUnknown(s.Head), orDash(s.Heads),
			countOrUnknown(s.LagRecords),
		})
	}
	table(w, rows)
}

// writeUnasked names the locations that could not be asked.
func writeUnasked(w io.Writer, silent []admin.SilentLocation) {
	for _, s := range silent {
		_, _ = fmt.Fprintf(w, "%s could not be asked: %s\n", s.Location, check.OneLine(s.Reason))
	}
}

// behind is how many records a service lacks, as far as that is known.
func behind(s admin.ServiceLag) string {
	if s.AtLeast && s.LagRecords != nil {
		return "at least " + countOrUnknown(s.LagRecords)
	}
	return countOrUnknown(s.LagRecords)
}

func instantOrUnknown(t admin.Time) string {
	if t.IsZero() {
		return unknown
	}
	return instant(t)
}

func spanOrUnknown(seconds *float64) string {
	if seconds == nil {
		return unknown
	}
	return span(*seconds)
}

func countOrUnknown(n *uint64) string {
	if n == nil {
		return unknown
	}
	return strconv.FormatUint(*n, 10)
}
