package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

// endWaitMax is how long failover end waits until an account's failover has ended.
const endWaitMax = 30 * time.Second

func (t *tool) failoverEnd() *cobra.Command {
	var dry, notTaken bool
	var whole wholeFlags
	c := &cobra.Command{
		Use:   "end (ACCOUNT | --location LOCATION) [--not-taken]",
		Short: "End a failover without effect",
		Long: `end has a failover of ACCOUNT end: the account stays where it is and takes writes again, unless
the secondary has taken it. Once a planned one was offered to the secondary, that one is
asked, and the end waits for its answer. An unplanned one ends at the secondary.

Where the secondary's location is lost for good it never answers. --not-taken ends a planned
failover without it. Give it only if you know that the secondary has not taken the account,
and does not come back with what it has: else both take writes until they reach each other,
and what was written at the present primary since is then deleted.

It waits until the failover has ended, for 30 s at most, and says what came of it. Where the
secondary had taken the account, or it has not ended by then, the exit code is 1; it goes on
ending, and account show says how far it is.

With --location the failover of LOCATION ends: accounts that have moved stay moved, the others
stay at LOCATION. It returns when that is so; failover start --location goes on with the rest.`,
		Example: `  antipodectl failover end pictures
  antipodectl failover end pictures --not-taken
  antipodectl failover end --location northcentralus`,
	}
	one := func(ctx context.Context, name geo.Account) error {
		if dry {
			a, err := t.client.Account(ctx, name)
			if err != nil {
				return err
			}
			return t.print(a, func(w io.Writer) { writeEndable(w, a) })
		}
		a, err := t.endOne(ctx, name, notTaken)
		if err != nil {
			return err
		}
		t.addWaits(ctx, &a.Account)
		return t.print(a, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "account %s: its failover ended without effect: it is at %s as before\n", a.Name, a.Primary)
			if a.FailoverPhase == admin.FailoverWithdrawing {
				_, _ = fmt.Fprintf(w, "until the witness has forgotten its claim %s refuses writes of it, and another failover begins only with --without-witness\n", a.Primary)
				writeWaiting(w, a.Account)
			}
		})
	}
	c.RunE = operation(func(cmd *cobra.Command, args []string) error {
		if whole.from != "" && notTaken {
			return command.Wrong(errors.New("--not-taken is of one ACCOUNT"))
		}
		if whole.from != "" {
			return t.endWhole(cmd.Context(), whole, dry)
		}
		return one(cmd.Context(), geo.Account(args[0]))
	})
	c.Flags().BoolVar(&dry, "dry-run", false, "say what is under way, and change nothing")
	whole.add(c)
	c.Flags().BoolVar(&notTaken, "not-taken", false, "agree that the secondary, which does not answer, has not taken the account and never will")
	return c
}

// writeEndable writes what failover end would end.
func writeEndable(w io.Writer, a admin.AccountInfo) {
	if a.Operation == "" {
		_, _ = fmt.Fprintf(w, "account %s: %s knows of no failover that could be ended\nnothing was changed\n", a.Name, a.Primary)
		return
	}
	_, _ = fmt.Fprintf(w, "account %s: under way: %s\nnothing was changed\n", a.Name, a.Operation)
}

// endOne ends the failover of an account, and waits until it has ended without effect. It is an error if the other location has
// taken the account, or that is not known within endWaitMax.
func (t *tool) endOne(ctx context.Context, name geo.Account, notTaken bool) (admin.AccountInfo, error) {
	asked, err := t.client.UpdateAccount(ctx, name, admin.UpdateAccount{Failover: &admin.Failover{Type: admin.FailoverEnd, NotTaken: notTaken}})
	if err != nil {
		return admin.AccountInfo{}, err
	}
	now, from, since, ended := asked.AccountInfo, asked.Primary, t.mono(), 0
	for {
		if ended++; now.FailoverPhase != "" && now.FailoverPhase != admin.FailoverWithdrawing {
			ended = 0
		}
		switch {
		case now.Primary != from && now.FailoverPhase == "":
			return now, fmt.Errorf("too late: %s had taken account %s, which has moved there", now.Primary, name)
		case now.Primary != from:
			return now, fmt.Errorf("too late: %s has taken account %s, and the move goes on: antipodectl account show %s", now.Primary, name, name)
		case ended == failoverEnded:
			return now, nil
		case t.mono()-since > endWaitMax:
			return now, fmt.Errorf("the failover of %s has not ended yet, and goes on ending%s: antipodectl account show %s", name, stillEnding(now), name)
		}
		select {
		case <-ctx.Done():
			return now, fmt.Errorf("interrupted: the end is asked for, and antipodectl account show %s says how far it is", name)
		case <-t.after(failoverPause):
		}
		if next, err := t.client.Account(ctx, name); err == nil { // Else a location is busy or away: look again.
			now = next
		}
	}
}

// stillEnding is what the end of a failover waits for, as far as that is known.
func stillEnding(a admin.AccountInfo) string {
	switch {
	case a.OperationWaits != "":
		return ", in the phase " + a.FailoverPhase + ": " + check.OneLine(a.OperationWaits)
	case a.FailoverPhase == admin.FailoverOffered:
		return fmt.Sprintf(": whether %s has taken it is not known", a.Secondary)
	}
	return ", in the phase " + a.FailoverPhase
}

// kindBegun and kindEnded are the kinds of the events with which a failover of an account begins, and ends without effect.
const (
	kindBegun = "failover-begun"
	kindEnded = "failover-ended"
)

// whyEnded is why the failover of an account ended without effect, with the command that shows more: the record of the account has
// forgotten it, and an event of the location that carried it out has it.
func (t *tool) whyEnded(ctx context.Context, a admin.Account, at geo.Location) string {
	const more = "antipodectl events"
	list, err := t.client.Events(ctx)
	if err != nil {
		return "why is not known, as the events could not be read: " + more
	}
	for _, e := range list.Events { // The newest is the first.
		if e.Account != a.Name || e.Location != at || e.Kind != kindBegun && e.Kind != kindEnded {
			continue
		}
		why, of := strings.CutPrefix(e.Reason, fmt.Sprintf("%s to %s, epoch %s: ", a.Primary, a.Secondary, a.Epoch))
		switch {
		case e.Kind == kindBegun || !of:
			return "why is not known here: " + more
		case strings.Contains(why, "antipodectl "):
			return check.OneLine(why)
		}
		return fmt.Sprintf("%s: antipodectl why %s", check.OneLine(why), a.Name)
	}
	return "why is not known here: " + more
}
