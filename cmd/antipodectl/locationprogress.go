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

// awaitWhole waits until the failover of a location is over, and shows its progress on stderr.
func (t *tool) awaitWhole(ctx context.Context, at geo.Location, now admin.LocationFailover) (admin.LocationFailover, error) {
	for shown, since, look, said := "", t.mono(), t.mono()+stateAfter, ""; now.Phase != admin.LocationOver; {
		if line := wholeLine(now); line != shown {
			shown = line
			_, _ = fmt.Fprintf(t.errOut, "%s (%.1f s)\n", line, (t.mono() - since).Seconds())
		}
		if t.mono() >= look {
			look = t.mono() + statePause
			if s := t.stateOfWhole(ctx, now); s.next != said && s.next != "" {
				said = s.next
				_, _ = fmt.Fprintf(t.errOut, "%s: %s\n%s: %s\n", now.From, s.Witness, now.From, s.next)
			}
		}
		if t.mono()-since > failoverWaitMax {
			return now, fmt.Errorf("the failover of %s goes on: failover show --location %s says how far it is", now.From, now.From)
		}
		select {
		case <-ctx.Done():
			return now, fmt.Errorf("interrupted: the failover of %s goes on, and failover end --location %s has it end", now.From, now.From)
		case <-t.after(wholePause):
		}
		if next, err := t.client.LocationFailover(ctx, at); err == nil { // Else the location is busy: look again.
			now = next
		}
	}
	return now, nil
}

// wholePause is the pause between two looks, each of which counts all accounts.
const wholePause = 500 * time.Millisecond

// stateAfter is when a command first looks for what accounts wait for, statePause the pause until it looks again.
const (
	stateAfter = 2 * time.Second
	statePause = 10 * time.Second
)

// wholeLine is how far the failover of a location is.
func wholeLine(f admin.LocationFailover) string {
	return fmt.Sprintf("%s: %s, %d moved, %d waiting", f.From, f.Phase, f.Moved, f.Waiting) + phases(f.Moving)
}

// phases names the phases of failovers that are under way, each with how many there are, after a comma.
func phases(moving map[string]int) (line string) {
	for _, phase := range []string{
		admin.FailoverDraining, admin.FailoverClosing, admin.FailoverOffered, admin.FailoverClaiming, admin.FailoverApplying,
		admin.FailoverFreezing, admin.FailoverThawing, admin.FailoverWithdrawing, admin.FailoverEnding,
	} {
		if n := moving[phase]; n > 0 {
			line += fmt.Sprintf(", %d %s", n, phase)
		}
	}
	return line
}

// wholeState is the failover of a location, with the witness for which its accounts wait.
type wholeState struct {
	admin.LocationFailover
	// Witness is why it does not answer; empty if it does, and where no account waits for it.
	Witness string `json:"witness,omitempty"`
	// Withdrawing is how many failovers of accounts have ended but for claims that the witness is to forget.
	Withdrawing int `json:"withdrawing,omitempty"`

	next string
}

// stateOfWhole adds to the failover of a location what its accounts wait for: a status has that of all processes.
func (t *tool) stateOfWhole(ctx context.Context, f admin.LocationFailover) wholeState {
	out := wholeState{LocationFailover: f, Withdrawing: f.Moving[admin.FailoverWithdrawing]}
	waits := f.Moving[admin.FailoverClaiming] + out.Withdrawing
	if f.Type != admin.FailoverUnplanned || waits+f.Waiting == 0 {
		return out
	}
	s, err := t.client.Status(ctx)
	if err != nil { // Then it is not known.
		return out
	}
	ended := 0
	for _, a := range s.Accounts {
		if a.Primary == f.From && a.FailoverPhase == admin.FailoverWithdrawing {
			ended++
		}
	}
	if out.Withdrawing = max(out.Withdrawing, ended); waits+ended > 0 {
		out.Witness = planWitness(s, f.From, f.To).why
	}
	if out.Witness != "" {
		out.next = check.WayOutOfWhole(f.From)
	}
	return out
}

func writeWhole(w io.Writer, f wholeState) {
	if f.From == "" {
		_, _ = fmt.Fprintln(w, "there was no failover of a location")
		return
	}
	_, _ = fmt.Fprintf(w, "location   %s to %s, %s, %s, round %d\n", f.From, f.To, f.Type, f.Phase, f.Round)
	_, _ = fmt.Fprintf(w, "accounts   %s; %d without a copy stay\n", strings.TrimPrefix(wholeLine(f.LocationFailover), string(f.From)+": "+f.Phase+", "), f.Alone)
	if n := f.Moving[admin.FailoverClaiming]; n > 0 && f.Witness == "" {
		_, _ = fmt.Fprintf(w, "claiming   %d wait for the witness; antipodectl check says whether it answers, and what to do for each; failover end --location %s ends all\n", n, f.From)
	}
	for line := range strings.Lines(f.Reason) {
		_, _ = fmt.Fprintf(w, "ended      %s\n", check.OneLine(line))
	}
	if f.Withdrawing > 0 {
		_, _ = fmt.Fprintf(w, "withdrawn  until the witness has forgotten the claims of %s, %s refuses their writes\n", check.Count(f.Withdrawing, "account"), f.From)
	}
	if f.Witness != "" {
		_, _ = fmt.Fprintf(w, "witness    %s\nnext       %s\n", f.Witness, f.next)
	}
	writeRefused(w, f.RefusedAccounts, f.Refused, causesMost)
}

// findWhole returns the failover of a location that is under way, or was last, and where.
func (t *tool) findWhole(ctx context.Context, f wholeFlags) (at geo.Location, found admin.LocationFailover, err error) {
	s, err := t.client.Status(ctx)
	if err != nil {
		return "", found, err
	}
	if err := f.known(s.Locations); err != nil {
		return "", found, err
	}
	var silent error
	for _, l := range s.Locations {
		if l.State == admin.Unreachable { // The status has waited for it.
			silent = fmt.Errorf("%s does not answer: whether it knows of a failover of location %s is not known: %s", l.Name, f.from, targetDown)
			continue
		}
		now, err := t.client.LocationFailover(ctx, l.Name)
		if err != nil {
			silent = err
			continue
		}
		if string(now.From) == f.from && (at == "" || now.Begun.After(found.Begun.Time)) {
			at, found = l.Name, now
		}
	}
	if at == "" && silent != nil {
		return "", found, silent
	}
	return at, found, nil
}

func (t *tool) failoverShow() *cobra.Command {
	var whole wholeFlags
	c := &cobra.Command{
		Use:   "show --location LOCATION",
		Short: "Say how far the failover of a location is, or how it ended",
		Long: `show says how many accounts of LOCATION have moved, which phase the others are in, and which were
passed over and why. account show says it of one account.`,
		Example: `  antipodectl failover show --location northcentralus`,
		Args:    exactly(),
	}
	c.RunE = answer(t, func(ctx context.Context, _ []string) (wholeState, error) {
		if whole.from == "" {
			return wholeState{}, command.Wrong(errors.New(c.CommandPath() + " needs --location LOCATION"))
		}
		_, found, err := t.findWhole(ctx, whole)
		return t.stateOfWhole(ctx, found), err
	}, writeWhole)
	c.Flags().StringVar(&whole.from, "location", "", "the `LOCATION` that the accounts leave")
	return c
}

// endWhole ends the failover of a location; with dry it says what that would meet.
func (t *tool) endWhole(ctx context.Context, f wholeFlags, dry bool) error {
	at, now, err := t.findWhole(ctx, f)
	if err != nil {
		return err
	}
	if at == "" || now.Phase == admin.LocationOver {
		return fmt.Errorf("no failover of location %s is under way", f.from)
	}
	if !dry {
		if now.Phase != admin.LocationEnding { // Else it ends already.
			now, err = t.client.FailLocationOver(ctx, at, admin.Failover{Type: admin.FailoverEnd})
		}
		if err != nil {
			return err
		}
		if now, err = t.awaitWhole(ctx, at, now); err != nil {
			return err
		}
	}
	state := t.stateOfWhole(ctx, now)
	return t.print(state, func(w io.Writer) {
		writeWhole(w, state)
		if dry {
			_, _ = fmt.Fprintln(w, "nothing was changed")
		}
	})
}
