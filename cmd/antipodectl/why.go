package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

func (t *tool) whyCommand() *cobra.Command {
	var threshold time.Duration
	c := &cobra.Command{
		Use:   "why ACCOUNT",
		Short: "Explain what holds the Last Sync Time of an account back",
		Long: `why has a line for each service, and then one for each cause that holds Last Sync Time of a
service back: of those that are alike the worst, with its range and lane, which may be the
catalog's, and where that is. The first line is the health of antipodectl check: what stops
writes need not hold Last Sync Time back. The stages:

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
				return command.Wrong(errors.New("--threshold is a time above zero"))
			}
			var asked sync.WaitGroup // Side by side: both wait for a location that is paused.
			var s admin.Status
			var unasked error
			if t.output != "json" {
				asked.Go(func() { s, unasked = t.client.Status(cmd.Context()) })
			}
			y, err := t.client.Why(cmd.Context(), geo.Account(args[0]), threshold)
			asked.Wait()
			if err != nil {
				return err
			}
			return t.print(y, func(w io.Writer) {
				if unasked == nil { // What stops writes need not hold Last Sync Time back.
					writeHealth(w, s)
					writeUnderWayOf(w, s, y.Account)
					writeWrites(w, check.RefusesWrites(s, y.Account), check.OtherTakesWrites(s, y.Account))
				}
				writeWhy(w, y)
			})
		}),
	}
	c.Flags().DurationVar(&threshold, "threshold", 0, "lag up to which all is well (default 1s)")
	return c
}

// writeUnderWayOf writes an unplanned failover of an account that is under way, and what else is and cannot go on: neither need
// hold Last Sync Time back.
func writeUnderWayOf(w io.Writer, s admin.Status, name geo.Account) {
	for _, a := range s.Accounts {
		if a.Name == name && (a.OperationWaits != "" || a.Promoting()) {
			_, _ = fmt.Fprintf(w, "under way: %s\n", check.UnderWay(a.Account))
			writeWaiting(w, a.Account)
		}
	}
}

func writeWhy(w io.Writer, y admin.Why) {
	_, _ = fmt.Fprintf(w, "%s: %s to %s\n", y.Account, orNone(string(y.Primary)), orNone(string(y.Secondary)))
	writeUnasked(w, y.Silent)
	var causes []causeLine
	for _, s := range y.Services {
		state := orDash(string(s.Status))
		if s.Reason != "" {
			state += ": " + check.OneLine(s.Reason)
		}
		if s.LagSeconds != nil {
			state += ", " + span(*s.LagSeconds) + " behind"
		}
		if s.CaughtUpInSeconds != nil {
			state += ", caught up in about " + span(*s.CaughtUpInSeconds)
		}
		if s.OK {
			state = "on time: " + state
		}
		_, _ = fmt.Fprintf(w, "%-6s %s\n", s.Service, state)
		for i, c := range s.Causes {
			more := 0
			if i == len(s.Causes)-1 {
				more = s.More
			}
			causes = addCause(causes, s.Service, c, more)
		}
	}
	for _, c := range causes {
		c.write(w, y.Account)
	}
}

// causeLine is a cause, with the services that it holds back, and how many others of them are alike but for their place and
// their numbers.
type causeLine struct {
	admin.Cause
	services []string
	more     int
}

// alike leaves out of a sentence what differs between causes of one kind: the numbers of records and the names of streams.
var alike = regexp.MustCompile(`\S*[0-9]\S*`)

// addCause adds a cause of a service, and more that are not listed, to the line of its kind.
func addCause(to []causeLine, service string, c admin.Cause, more int) []causeLine {
	kind := func(c admin.Cause) string {
		return strings.Join([]string{c.Stage, c.For, string(c.Location), alike.ReplaceAllString(c.Detail, "")}, "\x00")
	}
	i := slices.IndexFunc(to, func(l causeLine) bool { return kind(l.Cause) == kind(c) })
	if i < 0 {
		return append(to, causeLine{c, []string{service}, more})
	}
	l := &to[i]
	if l.services[len(l.services)-1] != service {
		l.services = append(l.services, service)
	}
	if l.Range != c.Range || l.Stream != c.Stream { // The catalog's cause holds all services.
		more++
	}
	l.more += more
	return to
}

// write writes the line of a cause.
func (c causeLine) write(w io.Writer, account geo.Account) {
	line := fmt.Sprintf("%s (%s): %s", c.Stage, strings.Join(c.services, ", "), check.OneLine(c.Detail))
	if c.Error != "" {
		line += " (" + check.OneLine(c.Error) + ")"
	}
	if c.Seconds != nil {
		line += ", for " + span(*c.Seconds)
	}
	where := ""
	if c.Lane != nil {
		where = fmt.Sprintf("lane %d of ", *c.Lane)
	}
	if c.Range != 0 {
		where += fmt.Sprintf("range %d (%s) ", c.Range, c.Service)
	}
	if c.Location != "" {
		where += "at " + string(c.Location)
	}
	if where != "" {
		line += "; " + strings.TrimSuffix(where, " ")
	}
	if !c.SyncTime.IsZero() {
		line += ", complete up to " + instant(c.SyncTime)
	}
	if c.more > 0 {
		line += fmt.Sprintf("; and %d more: antipodectl lag %s", c.more, account)
	}
	_, _ = fmt.Fprintln(w, line)
}
