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

const (
	// failoverPause is the pause between two looks at a failover, failoverWaitMax how long the command looks.
	failoverPause   = 100 * time.Millisecond
	failoverWaitMax = 2 * time.Hour
	// failoverWithinMax is what a location takes for --within.
	failoverWithinMax = time.Hour
	// failoverEnded is how many looks in a row find no failover before it has ended: where the primary is slow, the
	// secondary answers, which may not know of it yet.
	failoverEnded = 20
)

func (t *tool) failoverCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "failover",
		Short: "Move an account to its other location",
		Long: `failover makes the secondary of an account its primary. A planned failover loses nothing, and
the account stays readable at both locations. To go back, ask for another one.`,
		Example: `  antipodectl failover check pictures
  antipodectl failover start pictures --yes`,
	}
	c.AddCommand(t.failoverCheck(), t.failoverStart(), t.failoverUnplanned(), t.failoverEnd(), t.failoverShow())
	c.AddCommand(formerly(t.failoverCheck(), "plan"), formerly(t.failoverStart(), "planned"))
	return c
}

// formerly is a command under the name that it had in the version before, for scripts. The help does not show it.
func formerly(c *cobra.Command, name string) *cobra.Command {
	_, arguments, _ := strings.Cut(c.Use, " ")
	c.Use, c.Hidden = name+" "+arguments, true
	return c
}

func (t *tool) failoverCheck() *cobra.Command {
	var whole wholeFlags
	c := &cobra.Command{
		Use:   "check (ACCOUNT | --location LOCATION)",
		Short: "Say what a failover of an account would do, and what blocks it",
		Long: `check changes nothing. It says to which location ACCOUNT would go, how far that one is by
service, what has not arrived there, and what blocks a planned failover. With --location it says
so of all accounts whose primary is LOCATION, and which of them an unplanned failover would refuse,
as the other location checks it: the first 20, and how many there are.`,
		Example: `  antipodectl failover check pictures
  antipodectl failover check --location northcentralus
  antipodectl failover check pictures --output json | jq .blocked`,
	}
	one := answer(t, func(ctx context.Context, args []string) (failoverPlan, error) {
		return t.planFailover(ctx, geo.Account(args[0]))
	}, writePlan)
	all := answer(t, func(ctx context.Context, _ []string) (wholePlan, error) {
		p, err := t.planWhole(ctx, whole, false)
		if err == nil {
			t.checkWhole(ctx, &p, admin.Failover{})
		}
		return p, err
	}, writeWholePlan)
	c.RunE = operation(func(cmd *cobra.Command, args []string) error {
		if whole.from != "" {
			return all(cmd, args)
		}
		return one(cmd, args)
	})
	whole.add(c)
	return c
}

// refusal is why what was asked for is not begun; nil if nothing blocks it.
func (p failoverPlan) refusal(what string) error {
	if len(p.Blocked) == 0 {
		return nil
	}
	return &command.Error{Code: command.Failed, Err: fmt.Errorf("%s of %s is blocked, nothing was changed: %s", what, p.Account, strings.Join(causes(p.Link, p.Blocked), "; "))}
}

func writePlan(w io.Writer, p failoverPlan) {
	writePlanState(w, p)
	if p.To != "" {
		loss := "; nothing is lost"
		if len(p.Blocked) > 0 {
			loss = ""
		}
		_, _ = fmt.Fprintf(w, "afterwards %s, with %s as its secondary%s\n", p.After, p.From, loss)
	}
	writeDelayed(w, p.Link)
	writeBlocked(w, p.Blocked)
	p.witness.write(w)
	if p.gone || p.unled {
		_, _ = fmt.Fprintf(w, "otherwise  antipodectl failover unplanned %s shows what would be lost, if %s is gone\n", p.Account, p.From)
	}
}

// delayed is that an operator delays the link, which other answers do not show; empty if nobody does.
func delayed(s admin.Status) string {
	if s.Link.State != admin.LinkDelayed {
		return ""
	}
	return s.Link.Held()
}

// writeDelayed names a link that is delayed, before what may follow from it.
func writeDelayed(w io.Writer, link string) {
	if link != "" {
		_, _ = fmt.Fprintf(w, "link       %s\n", link)
	}
}

// causes are what blocks a failover, after a link that is delayed.
func causes(link string, blocked []string) []string {
	if link == "" {
		return blocked
	}
	return append([]string{link}, blocked...)
}

func writeBlocked(w io.Writer, blocked []string) {
	for _, b := range blocked {
		_, _ = fmt.Fprintf(w, "blocked    %s\n", b)
	}
}

// writeUnchanged is the last line of a plan: what --yes does, which is refused where something blocks it.
func writeUnchanged(w io.Writer, blocked []string, yes string) {
	if len(blocked) > 0 {
		yes = "nothing was changed, and with --yes it is refused"
	}
	_, _ = fmt.Fprintln(w, yes)
}

// writePlanState writes what a failover meets.
func writePlanState(w io.Writer, p failoverPlan) {
	_, _ = fmt.Fprintf(w, "account    %s, %s, epoch %s\nmove       %s to %s\n", p.Account, p.After, p.Epoch, p.From, orNone(string(p.To)))
	for _, s := range p.Services {
		behind := "how far is not known"
		if s.LagRecords != nil {
			behind = fmt.Sprintf("%s not there", check.Count(*s.LagRecords, "record"))
		}
		if s.AtLeast && s.LagRecords != nil {
			behind = fmt.Sprintf("at least %s; what %s has committed since it last answered is not known", behind, p.From)
			if *s.LagRecords == 0 {
				_, behind, _ = strings.Cut(behind, "; ")
			}
		}
		_, _ = fmt.Fprintf(w, "%-10s %s, %s\n", s.Service, statusOf(s), behind)
	}
}

func (t *tool) failoverStart() *cobra.Command {
	var within time.Duration
	var yes, dry bool
	var whole wholeFlags
	c := &cobra.Command{
		Use:   "start (ACCOUNT | --location LOCATION) [--yes]",
		Short: "Make the secondary of an account its primary, without loss",
		Long: `start waits until little is on its way to the secondary, stops writes, waits until the
secondary has everything, and makes it the primary. Meanwhile reads go on, and requests that
cannot be served wait for up to 3 s. Then the former primary is the secondary, and is
readable as such. Nothing that was acknowledged is lost.

If the secondary has not taken the account within --within, the failover ends by itself and
the account stays where it is; failover end asks for that. Once the secondary may have taken
the account, it is served by neither location under its primary name until the two agree.

Without --yes it says what it would do and changes nothing, as with --dry-run. Where that plan has
what blocks it, --yes begins nothing, and the exit code is 1. It returns when the account is at its
new primary, and shows each phase. Interrupted, the failover goes on.

With --location all accounts whose primary is LOCATION move, in waves of 250; --within is of each
account. Those that do not move are tried three times. It shows how many have moved. To go back,
give the other location: all accounts that are there then move, also those that were there before
the first failover. Where an account was made is not recorded: move such accounts one by one.`,
		Example: `  antipodectl failover start pictures --yes
  antipodectl failover start --location northcentralus --yes
  antipodectl failover start pictures --yes --within 5m
  antipodectl failover start pictures --dry-run`,
	}
	c.RunE = operation(func(cmd *cobra.Command, args []string) error {
		if within <= 0 || within > failoverWithinMax {
			return command.Wrong(errors.New("--within is a time above 0, an hour at most"))
		}
		if whole.from != "" {
			return t.runWhole(cmd.Context(), whole, admin.Failover{Type: admin.FailoverPlanned, WithinSeconds: within.Seconds()}, dry || !yes)
		}
		name := geo.Account(args[0])
		plan, err := t.planFailover(cmd.Context(), name)
		if err != nil {
			return err
		}
		plan.witness.planned = true
		if dry || !yes {
			err := t.print(plan, func(w io.Writer) {
				writePlan(w, plan)
				writeUnchanged(w, plan.Blocked, nothingChanged)
			})
			return errors.Join(err, plan.refusal("a planned failover"))
		}
		if err := plan.refusal("a planned failover"); err != nil {
			return err
		}
		out, err := t.failover(cmd.Context(), name, plan, within)
		if err != nil {
			return err
		}
		return t.print(out, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "account %s is at %s, epoch %s, secondary %s\n", out.Name, out.Primary, out.Epoch, out.Secondary)
		})
	})
	c.Flags().DurationVar(&within, "within", 30*time.Second, "`TIME` after which it ends by itself without effect, an hour at most")
	c.Flags().BoolVar(&yes, "yes", false, "begin it")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what it would do, and change nothing")
	whole.add(c)
	return c
}

// failover begins a planned failover and waits for its end. It shows on stderr in which phase it is, and why it cannot go on.
func (t *tool) failover(ctx context.Context, name geo.Account, plan failoverPlan, within time.Duration) (admin.AccountInfo, error) {
	begun, err := t.client.UpdateAccount(ctx, name, admin.UpdateAccount{
		Failover: &admin.Failover{Type: admin.FailoverPlanned, WithinSeconds: within.Seconds()},
	})
	if err != nil {
		return admin.AccountInfo{}, err
	}
	now, shown, since, ended := begun.AccountInfo, "", t.mono(), 0
	for look, said := since+stateAfter, ""; ; {
		if t.mono() >= look {
			t.addWaits(ctx, &now.Account)
			look = t.mono() + statePause
		}
		if why := check.OneLine(now.OperationWaits); why != "" && why != said {
			said = why
			_, _ = fmt.Fprintf(t.errOut, "%s: it cannot go on now: %s (%.1f s)\n", name, why, (t.mono() - since).Seconds())
		}
		if phase := now.FailoverPhase; phase != "" && phase != shown {
			shown = phase
			_, _ = fmt.Fprintf(t.errOut, "%s: %s (%.1f s)\n", name, phase, (t.mono() - since).Seconds())
		}
		if now.FailoverPhase != "" {
			ended = 0
		} else {
			ended++
		}
		switch {
		case now.Primary == plan.To && now.FailoverPhase == "":
			return now, nil
		case now.Primary == plan.From && now.FailoverPhase == "" && ended == failoverEnded:
			return now, fmt.Errorf("the failover of %s ended without effect: it is at %s as before: %s", name, now.Primary, t.whyEnded(ctx, now.Account, now.Primary))
		case t.mono()-since > failoverWaitMax:
			return now, fmt.Errorf("the failover of %s goes on: account show says how far it is", name)
		}
		select {
		case <-ctx.Done():
			return now, errors.New("interrupted: the failover goes on, and account show says how far it is")
		case <-t.after(failoverPause):
		}
		if next, err := t.client.Account(ctx, name); err == nil { // Else a location is busy or away: look again.
			now = next
		}
	}
}
