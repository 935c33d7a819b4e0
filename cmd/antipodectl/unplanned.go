package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

const unplannedLong = `unplanned is for a primary that is dead, or cannot be reached. Ask the secondary's location: the
primary is not needed. What has arrived there is applied, for 10 s at most; then the copy is
frozen, and the location is the primary. All that is there is kept.

Writes that had not arrived are lost, also those that were acknowledged. By service it says:
LAST SYNC TIME  all that was committed up to it is kept: the guarantee
KNOWN LOST      records that are not applied here, as far as the primary has named them, or has them
                where it answers the plan; "at least", or "unknown" for none, where it does not
UNBOUNDED SINCE the last contact: how much was committed since, nobody knows here

A primary that still takes writes is not stopped by this before it can be reached again, and
what it acknowledges until then is lost, too: make sure that it is off.

When the former primary is back it serves nothing of the account before it has compared both.
If it has exactly what the copy had, it is the secondary at once. If it has more, and knows all
of that, it keeps it apart (antipodectl lost list), takes what it lacks, and is the secondary by
itself. Else it has diverged and waits: account rebuild, at the new primary, moves what only it
has to its lost-and-found, and makes its copy again.

With a witness it first waits until the primary's lease has ended there (claiming), so that the
primary acknowledges nothing any more. While the witness does not answer it waits for that.
--without-witness goes on without it, from the beginning or where one waits: give it only if
the primary is off, and keep that off until it can reach the new one.

A copy of which a recovery with loss has left a part is refused, with its services, until all is
there again that it was made of; --accept-part takes what is there, and what is not is lost.

Without --yes it says what would be lost, and whether the location would refuse, and changes
nothing, as with --dry-run. failover end
has it end without effect until the copy is frozen and committed; after 2 minutes without that
it ends by itself.

With --location all accounts whose primary is LOCATION move to the other location, which is asked;
--to names it where the port that answers does not know it. Without --yes that one says which
accounts it would refuse: the first 20, and how many; the exit code is 1 then. Losses are said by
account: failover unplanned ACCOUNT --dry-run.`

func (t *tool) failoverUnplanned() *cobra.Command {
	var yes, dry, alone, part bool
	var whole wholeFlags
	c := &cobra.Command{
		Use:   "unplanned (ACCOUNT | --location LOCATION) [--yes]",
		Short: "Make the secondary of an account its primary, without the primary",
		Long:  unplannedLong,
		Example: `  antipodectl failover unplanned pictures
  antipodectl failover unplanned pictures --yes
  antipodectl failover unplanned pictures --yes --without-witness
  antipodectl failover unplanned pictures --yes --output json | jq .loss
  antipodectl failover unplanned --location northcentralus --yes`,
	}
	c.RunE = operation(func(cmd *cobra.Command, args []string) error {
		if whole.from != "" {
			return t.runWhole(cmd.Context(), whole, admin.Failover{Type: admin.FailoverUnplanned, WithoutWitness: alone, AcceptPart: part}, dry || !yes)
		}
		ctx, name := cmd.Context(), geo.Account(args[0])
		to, err := t.secondaryOf(ctx, name)
		if err != nil {
			return err
		}
		if dry || !yes {
			plan, err := t.planUnplanned(ctx, name, admin.Failover{To: to, DryRun: true, WithoutWitness: alone, AcceptPart: part})
			if err != nil {
				return err
			}
			err = t.print(plan, plan.write)
			return errors.Join(err, refusalOf(plan.AccountUpdated), plan.refusal())
		}
		out, err := t.promote(ctx, name, admin.Failover{To: to, WithoutWitness: alone, AcceptPart: part})
		if err != nil {
			return err
		}
		return t.print(out, func(w io.Writer) { writeLoss(w, out, nil) })
	})
	c.Flags().BoolVar(&yes, "yes", false, "begin it")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would be lost, and change nothing")
	c.Flags().BoolVar(&alone, "without-witness", false, "do not ask the witness, nor wait for it: the primary is off")
	c.Flags().BoolVar(&part, "accept-part", false, "also where a recovery with loss has left a part of the copy")
	whole.add(c)
	return c
}

// refusalOf is why a location would refuse an unplanned failover, nil if it would not.
func refusalOf(u admin.AccountUpdated) error {
	if u.Refused == "" {
		return nil
	}
	return &command.Error{Code: command.Failed, Err: fmt.Errorf("%s would refuse it, nothing was changed: %s", u.Secondary, u.Refused)}
}

// secondaryOf returns the location that an unplanned failover makes the primary.
func (t *tool) secondaryOf(ctx context.Context, name geo.Account) (geo.Location, error) {
	a, err := t.client.Account(ctx, name)
	switch {
	case err != nil:
		return "", err
	case a.Secondary == "":
		return "", fmt.Errorf("account %s is %s: there is no other location that could become its primary", name, a.Redundancy)
	}
	return a.Secondary, nil
}

// unplanned begins an unplanned failover, or as a dry run asks what it loses, or has lost.
func (t *tool) unplanned(ctx context.Context, name geo.Account, f admin.Failover) (admin.AccountUpdated, error) {
	f.Type = admin.FailoverUnplanned
	return t.client.UpdateAccount(ctx, name, admin.UpdateAccount{Failover: &f})
}

// promote begins an unplanned failover and waits until the location is the primary. It shows on stderr in which phase it is,
// and what it waits for.
func (t *tool) promote(ctx context.Context, name geo.Account, f admin.Failover) (admin.AccountUpdated, error) {
	now, err := t.unplanned(ctx, name, f)
	if err != nil {
		return now, t.refusedBeside(ctx, name, err)
	}
	f.DryRun = true
	for shown, wayOut, ended, since := "", "", "", t.mono(); ; {
		if state := stateOf(now); state != "" && state != shown {
			shown = state
			_, _ = fmt.Fprintf(t.errOut, "%s: %s (%.1f s)\n", name, state, (t.mono() - since).Seconds())
		}
		if out := check.WayOut(now.Account); out != wayOut && out != "" {
			wayOut = out
			_, _ = fmt.Fprintf(t.errOut, "%s: %s\n", name, out)
		}
		if now.FailoverPhase == admin.FailoverThawing || now.FailoverPhase == admin.FailoverWithdrawing {
			if _, why, ok := strings.Cut(now.Operation, ": "); ok {
				ended = why
			}
		}
		switch {
		case now.Primary == f.To:
			return now, nil
		case now.FailoverPhase == "" || now.FailoverPhase == admin.FailoverWithdrawing:
			if ended == "" { // No look met its end.
				ended = t.whyEnded(ctx, now.Account, f.To)
			}
			return now, fmt.Errorf("the failover of %s ended without effect: it is at %s as before: %s", name, now.Primary, ended)
		case t.mono()-since > failoverWaitMax:
			return now, fmt.Errorf("the failover of %s goes on: failover unplanned --dry-run says how far it is", name)
		}
		select {
		case <-ctx.Done():
			return now, errors.New("interrupted: the failover goes on, and failover end has it end without effect")
		case <-t.after(failoverPause):
		}
		if next, err := t.unplanned(ctx, name, f); err == nil { // Else the location is busy: look again.
			now = next
		}
	}
}

// refusedBeside adds to the refusal of an unplanned failover, since one is under way that waits for the witness, what to do.
func (t *tool) refusedBeside(ctx context.Context, name geo.Account, err error) error {
	var refused *admin.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusConflict {
		return err
	}
	a, unknown := t.client.Account(ctx, name)
	if unknown != nil {
		return err
	}
	if t.addWaits(ctx, &a.Account); check.WayOut(a.Account) != "" {
		return fmt.Errorf("%w; next: %s", err, check.WayOut(a.Account))
	}
	return err
}

// stateOf is the phase of a failover, with what it waits for.
func stateOf(u admin.AccountUpdated) string {
	if u.FailoverPhase == "" || u.OperationWaits == "" {
		return u.FailoverPhase
	}
	return u.FailoverPhase + ": " + check.OneLine(u.OperationWaits)
}
