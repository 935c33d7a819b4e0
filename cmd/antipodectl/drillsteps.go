package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"antipode/client/admin"
	"antipode/client/drill"
	"antipode/geo"
)

// drillSeen is what the steps of a drill have found.
type drillSeen struct {
	// down is set while the drill has the primary's location stopped.
	down bool
	// deadAfter is how long after the command to stop it the primary's location answered nowhere; lives is set where that
	// did not come.
	deadAfter *time.Duration
	lives     bool
	// stated is what the failover stated about its loss.
	stated []admin.ServiceLoss
	// epoch is the one that the failover began.
	epoch admin.Epoch
	// followed is set once the former primary is the secondary.
	followed bool
	// diverged is set where the former primary's copy has to be made again, and rebuilt once that was asked for.
	diverged, rebuilt bool
}

// drillMoves are the steps of a drill.
func (t *tool) drillMoves(p drillPlan, f drillFlags, seen *drillSeen) []drill.Move {
	back := p.failoverPlan
	back.From, back.To = p.To, p.From
	planned := func(of failoverPlan) drill.Move {
		return drill.Move{Name: fmt.Sprintf("%s to %s", of.From, of.To), Do: func(ctx context.Context) error {
			_, err := t.failover(ctx, of.Account, of, f.within)
			return err
		}}
	}
	if !p.Unplanned {
		return []drill.Move{planned(p.failoverPlan), planned(back)}
	}
	stop := drill.Move{
		Name: fmt.Sprintf("stop %s", p.From), Fails: true, AtOnce: true, Do: func(ctx context.Context) error {
			seen.down = true
			if err := t.stopForDrill(ctx, p, f); err != nil || p.Kill != killByCommand {
				return err
			}
			return t.awaitDead(ctx, p, f, seen)
		},
	}
	promote := drill.Move{
		Name: fmt.Sprintf("%s to %s without %s", p.From, p.To, p.From), Fails: p.Kill == "",
		FailsIf: func() bool { return seen.lives }, Do: func(ctx context.Context) error {
			out, err := t.promote(ctx, p.Account, admin.Failover{To: p.To})
			seen.stated, seen.epoch = out.Loss, out.Epoch
			return err
		},
	}
	start := drill.Move{Name: fmt.Sprintf("start %s", p.From), AtOnce: true, Do: func(ctx context.Context) error {
		done, err := t.launchForDrill(ctx, p, f)
		if err != nil {
			return err
		}
		seen.down = false
		return t.servesForDrill(ctx, p, f, done)
	}}
	follow := drill.Move{Name: fmt.Sprintf("%s follows", p.From), Do: func(ctx context.Context) (err error) {
		seen.diverged, err = t.awaitFollowed(ctx, p, f.follow)
		seen.followed = err == nil && !seen.diverged
		if err == nil && seen.diverged && !p.Rebuild {
			err = fmt.Errorf("%s has what %s does not have, and its copy has to be made again: --rebuild has a drill do that", p.From, p.To)
		}
		return err
	}}
	rebuild := drill.Move{
		Name: fmt.Sprintf("make the copy at %s again", p.From), Skip: func() bool { return !seen.diverged }, Do: func(ctx context.Context) error {
			if _, err := t.client.UpdateAccount(ctx, p.Account, admin.UpdateAccount{Rebuild: true}); err != nil {
				return err
			}
			seen.rebuilt = true
			diverged, err := t.awaitFollowed(ctx, p, f.follow)
			if err == nil && diverged {
				err = errors.New("the copy is not made again")
			}
			seen.followed = err == nil
			return err
		},
	}
	if !p.Rebuild {
		rebuild.Name += " if you gave --rebuild"
	}
	if p.Kill == "" {
		return []drill.Move{promote, follow, rebuild, planned(back)}
	}
	return []drill.Move{stop, promote, start, follow, rebuild, planned(back)}
}

// stopForDrill stops the location of the primary.
func (t *tool) stopForDrill(ctx context.Context, p drillPlan, f drillFlags) error {
	if p.Kill == killByCommand {
		return t.shell(ctx, f.killCommand)
	}
	_, err := t.client.StopLocation(ctx, p.From)
	return err
}

const (
	// deadWaitMax is how long a drill waits until a location whose processes a command was to stop answers nowhere.
	deadWaitMax = 10 * time.Second
	// deadPause is after how long it looks again.
	deadPause = 50 * time.Millisecond
)

// awaitDead waits until no node of the primary's location answers at its admin port: a command that has returned may not
// have stopped them. Until then what clients have acknowledged may be the former primary's, and the RTO would be too short.
func (t *tool) awaitDead(ctx context.Context, p drillPlan, f drillFlags, seen *drillSeen) error {
	for since := t.mono(); ; {
		s, err := t.client.Status(ctx)
		took := t.mono() - since
		switch {
		case err == nil && isDead(s, p.From):
			seen.deadAfter = &took
			return nil
		case took > min(deadWaitMax, f.follow):
			seen.lives = true
			_, _ = fmt.Fprintf(t.errOut, "%s still answers: the failover is one beside a live primary\n", p.From)
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.after(deadPause):
		}
	}
}

// isDead reports whether no node of a location runs or starts, by a status.
func isDead(s admin.Status, l geo.Location) bool {
	alive := func(s admin.State) bool { return s == admin.Running || s == admin.Starting }
	at := slices.IndexFunc(s.Locations, func(o admin.Location) bool { return o.Name == l })
	return at >= 0 && !alive(s.Locations[at].State) &&
		!slices.ContainsFunc(s.Locations[at].Nodes, func(n admin.Node) bool { return alive(n.State) })
}

// launchForDrill starts the location again. It may not serve yet.
func (t *tool) launchForDrill(ctx context.Context, p drillPlan, f drillFlags) (admin.Changed, error) {
	if p.Kill == killByCommand {
		return admin.Changed{Name: string(p.From), State: admin.Starting, Waiting: "it was started"}, t.shell(ctx, f.startCommand)
	}
	return t.client.StartLocation(ctx, p.From)
}

// servesForDrill returns when a location that was launched serves.
func (t *tool) servesForDrill(ctx context.Context, p drillPlan, f drillFlags, done admin.Changed) (err error) {
	if done.Waiting == "" {
		return nil
	}
	if done, err = t.awaitServing(ctx, done, f.follow); err == nil && done.State == admin.Starting {
		err = fmt.Errorf("%s does not serve within %s: %s", p.From, f.follow, done.Waiting)
	}
	return err
}

// relaunchMax bounds how long the start takes of a location that a drill which has ended early has stopped.
const relaunchMax = 2 * time.Minute

// relaunch starts the location that a drill has stopped and not started: it has failed, or was interrupted.
func (t *tool) relaunch(ctx context.Context, p drillPlan, f drillFlags, seen *drillSeen) error {
	if !seen.down {
		return nil
	}
	_, _ = fmt.Fprintf(t.errOut, "start %s: the drill ends early\n", p.From)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), relaunchMax)
	defer cancel()
	if _, err := t.launchForDrill(ctx, p, f); err != nil {
		return fmt.Errorf("start of %s: %w", p.From, err)
	}
	seen.down = false
	return nil
}

// shell runs a command of the operator. Its output goes to stderr.
func (t *tool) shell(ctx context.Context, command string) error {
	c := exec.CommandContext(ctx, "sh", "-c", command)
	c.Stdout, c.Stderr = t.errOut, t.errOut
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

// awaitFollowed waits until the former primary is the secondary of the account, and live, or has answered that its copy has to
// be made again.
func (t *tool) awaitFollowed(ctx context.Context, p drillPlan, within time.Duration) (diverged bool, err error) {
	shown, waits := "", ""
	for since := t.mono(); t.mono()-since < within; {
		a, err := t.unplanned(ctx, p.Account, admin.Failover{To: p.To, DryRun: true})
		switch {
		case err != nil:
			waits = err.Error()
		case a.Operation != "":
			waits = a.Operation
		default:
			waits = t.notLive(ctx, p.Account)
		}
		if err == nil && (a.Diverged || waits == "") {
			return a.Diverged, nil
		}
		if waits != shown {
			shown = waits
			_, _ = fmt.Fprintf(t.errOut, "%s: %s (%.1f s)\n", p.Account, waits, (t.mono() - since).Seconds())
		}
		select {
		case <-ctx.Done():
			return false, errors.New("interrupted: it goes on, and account show says how far it is")
		case <-t.after(failoverPause):
		}
	}
	return false, fmt.Errorf("%s has not followed within %s: %s", p.From, within, waits)
}

// notLive says what keeps an account from a planned failover; "" is nothing.
func (t *tool) notLive(ctx context.Context, name geo.Account) string {
	p, err := t.planFailover(ctx, name)
	switch {
	case err != nil:
		return err.Error()
	case len(p.Blocked) > 0:
		return p.Blocked[0]
	}
	return ""
}

// compareLost compares what the drill's clients have lost with the lost-change report of the former primary.
func (t *tool) compareLost(ctx context.Context, target *drillAccount, p drillPlan, epoch admin.Epoch, out *drill.Report) error {
	kept, err := t.lostAt(ctx, p.Account, p.From)
	if err != nil {
		return fmt.Errorf("the lost-change report of %s: %w", p.From, err)
	}
	for _, c := range kept.Claims {
		if c.Epoch == epoch { // Others are of failovers before.
			out.Unplanned.Claims = append(out.Unplanned.Claims, c)
		}
	}
	var listed []drill.Listed
	for _, c := range kept.Changes {
		if row, value, ok := target.parse(c); ok {
			listed = append(listed, drill.Listed{Row: row, Value: value, Change: c})
		}
	}
	out.Compare(listed)
	return nil
}
