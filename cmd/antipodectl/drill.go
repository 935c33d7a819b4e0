package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/command"
	"antipode/client/drill"
	"antipode/geo"
	"antipode/internal/clock"
)

// drillFlags are the flags of drill.
type drillFlags struct {
	calm, within, follow      time.Duration
	yes, dry                  bool
	unplanned, kill, rebuild  bool
	killGiven, rebuildGiven   bool
	killCommand, startCommand string
	html                      string
}

const drillLong = `drill writes and reads rows of a table of its own in ACCOUNT, fails the account over to its
other location and back while it does, compares both copies, and reports: how long writes and
reads of either name stood, what failed, and which acknowledged writes are gone. The failovers
are planned ones: clients of the account wait for each, and nothing is lost.

With --unplanned the failover there is an unplanned one: the secondary becomes the primary
without asking the present one. Then the drill waits until the former primary has followed, and
goes back by a planned failover. WRITES OF ALL CLIENTS OF THE ACCOUNT THAT ARE ACKNOWLEDGED AND
HAVE NOT ARRIVED AT THE SECONDARY ARE LOST, and listed by lost list. The report has the time
until the new primary took a write (RTO), the span of the drill's own acknowledged writes that
are gone (RPO), and what the failover stated; each of these writes must be in the lost-change
report, and none may be at or below the Last Sync Time that was stated.

--kill stops the location of the primary first, and starts it again afterwards: at antipode dev
by default (--kill=false leaves it alone), elsewhere only if it is given. That stops all accounts
of the location. The admin port stops the nodes in their processes; --kill-command and
--start-command, which the shell of this machine runs, can kill and start the processes instead.
A drill that fails, or is interrupted, starts it before it ends.

If the former primary can only follow with its copy made again, --rebuild has the drill do that
(the default at antipode dev). Else it ends there, with the account at its new primary.

With --clone it moves nothing: it opens a writable copy of what the secondary location of
ACCOUNT has now, under the name ACCOUNT-drill and with the keys of ACCOUNT. Point an
application at it, and rehearse. What is written there is nowhere else. The clone is deleted
after --for, by --clone --drop, and when its node stops; --clone --show shows it.
docs/runbooks/clone-drill.md has the steps.

The table antipodedrill is deleted at the end. --html writes the report as one page with a
picture. Without --yes it says what it would do, as with --dry-run.

Exit codes: 0 it went well: the copies are equal, and nothing was lost, or of an unplanned failover
nothing but what the lost-change report has; 1 otherwise, and if the plan is blocked; 2 wrong
command line.`

func (t *tool) drillCommand() *cobra.Command {
	var f drillFlags
	clone := cloneFlags{tool: t}
	c := &cobra.Command{
		Use:   "drill ACCOUNT [--yes | --unplanned [--kill] [--yes] | --clone]",
		Short: "Practise a failover: of an account and back, measured, or on a clone of it that no client notices",
		Long:  drillLong,
		Example: `  antipodectl drill pictures --clone --for 2h
  antipodectl drill pictures --clone --show
  antipodectl drill pictures --clone --drop
  antipodectl drill pictures --yes
  antipodectl drill pictures --yes --duration 1m --html drill.html
  antipodectl drill pictures --unplanned
  antipodectl drill pictures --unplanned --kill --yes --html drill.html
  antipodectl drill pictures --unplanned --yes --kill-command 'ssh n1 systemctl kill -s KILL antipode' \
    --start-command 'ssh n1 systemctl start antipode'
  antipodectl drill pictures --yes --output json | jq .moves`,
		Args: exactly("ACCOUNT"),
	}
	c.RunE = operation(func(cmd *cobra.Command, args []string) error {
		if clone.given(cmd) {
			return clone.run(cmd, geo.Account(args[0]))
		}
		f.killGiven, f.rebuildGiven = c.Flags().Changed("kill"), c.Flags().Changed("rebuild")
		if err := f.validate(); err != nil {
			return err
		}
		plan, err := t.planDrill(cmd.Context(), geo.Account(args[0]), f)
		if err != nil {
			return err
		}
		if f.dry || !f.yes {
			err := t.print(plan, func(w io.Writer) { writeDrillPlan(w, plan) })
			return errors.Join(err, plan.refusal("a drill"))
		}
		if err := plan.refusal("a drill"); err != nil {
			return err
		}
		out, err := t.drill(cmd.Context(), plan, f)
		if out == nil {
			return err
		}
		err = errors.Join(err, t.print(out, func(w io.Writer) { writeDrill(w, out) }), writePage(f.html, out))
		if faults := out.Faults(); err == nil && len(faults) > 0 {
			err = fmt.Errorf("the drill of %s: %s", plan.Account, strings.Join(faults, "; "))
		}
		if err != nil {
			return &command.Error{Code: command.Failed, Err: err}
		}
		return nil
	})
	c.Flags().DurationVar(&f.calm, "duration", 15*time.Second, "`TIME` that clients run beside the failovers")
	c.Flags().DurationVar(&f.within, "within", 30*time.Second, "`TIME` after which a planned failover ends by itself without effect")
	c.Flags().DurationVar(&f.follow, "follow", 10*time.Minute, "with --unplanned: `TIME` to wait for the former primary to follow")
	c.Flags().BoolVar(&f.unplanned, "unplanned", false, "the failover there is an unplanned one: acknowledged writes of all clients may be lost")
	c.Flags().BoolVar(&f.kill, "kill", false, "with --unplanned: stop the location of the primary first (default at antipode dev)")
	c.Flags().StringVar(&f.killCommand, "kill-command", "", "with --unplanned: `COMMAND` that stops it, in place of the admin port")
	c.Flags().StringVar(&f.startCommand, "start-command", "", "the `COMMAND` that starts it again")
	c.Flags().BoolVar(&f.rebuild, "rebuild", false, "with --unplanned: have the former primary's copy made again if it needs that (default at antipode dev)")
	c.Flags().BoolVar(&f.yes, "yes", false, "begin it")
	c.Flags().BoolVar(&f.dry, "dry-run", false, "say what it would do, and change nothing")
	clone.add(c)
	c.Flags().StringVar(&f.html, "html", "", "`FILE` for the report as a page")
	return c
}

// validate refuses flags that do not go together.
func (f drillFlags) validate() error {
	switch {
	case f.calm <= 0 || f.within <= 0 || f.follow <= 0:
		return command.Wrong(errors.New("--duration, --within and --follow are times above 0"))
	case !f.unplanned && (f.killGiven || f.rebuildGiven || f.killCommand != "" || f.startCommand != ""):
		return command.Wrong(errors.New("--kill, --kill-command, --start-command and --rebuild go with --unplanned"))
	case (f.killCommand == "") != (f.startCommand == ""):
		return command.Wrong(errors.New("--kill-command and --start-command go together"))
	case f.killCommand != "" && f.killGiven && !f.kill:
		return command.Wrong(errors.New("--kill=false does not go with --kill-command"))
	}
	return nil
}

// drillPlan is what a drill would do.
type drillPlan struct {
	failoverPlan
	Unplanned bool `json:"unplanned,omitempty"`
	// Kill is how the primary is stopped; empty if it is not.
	Kill string `json:"kill,omitempty"`
	// Rebuild is set where the former primary's copy is made again if it needs that.
	Rebuild bool     `json:"rebuild,omitempty"`
	Steps   []string `json:"steps"`
}

// How a drill stops the primary.
const (
	killByPort    = "by the admin port"
	killByCommand = "by --kill-command"
)

// planDrill asks what a drill meets.
func (t *tool) planDrill(ctx context.Context, name geo.Account, f drillFlags) (drillPlan, error) {
	one, err := t.planFailover(ctx, name)
	p := drillPlan{failoverPlan: one, Unplanned: f.unplanned}
	if err != nil {
		return p, err
	}
	if f.unplanned {
		s, err := t.client.Status(ctx)
		if err != nil {
			return p, err
		}
		known := map[geo.Location]bool{}
		for _, l := range s.Locations {
			known[l.Name] = true
		}
		if p.To != "" && (!known[p.From] || !known[p.To]) {
			p.Blocked = append(p.Blocked, "the port that answers does not know both locations: ask that of a gateway")
		}
		p.Rebuild = f.rebuild || s.Process.Development && !f.rebuildGiven
		switch {
		case f.killCommand != "":
			p.Kill = killByCommand
		case f.kill || s.Process.Development && !f.killGiven:
			p.Kill = killByPort
		}
	}
	for _, m := range t.drillMoves(p, f, &drillSeen{}) {
		p.Steps = append(p.Steps, m.Name)
	}
	return p, nil
}

// drill runs a drill. The report is nil if nothing was measured.
func (t *tool) drill(ctx context.Context, plan drillPlan, f drillFlags) (*drill.Report, error) {
	target, err := t.drillTarget(ctx, plan.Account)
	if err != nil {
		return nil, err
	}
	seen := &drillSeen{}
	started := clock.System{}.Now()
	out, err := drill.Run(ctx, drill.Options{
		Target: target, Now: t.mono, Calm: f.calm / 3, Wait: clock.Wait,
		OnMove: func(name string) { _, _ = fmt.Fprintln(t.errOut, name) },
	}, t.drillMoves(plan, f, seen)...)
	out.Account, out.Started = string(plan.Account), admin.Time{Time: started}
	if err == nil {
		out.Verify, err = t.drillVerified(ctx, plan.Account)
	}
	err = errors.Join(err, t.relaunch(ctx, plan, f, seen))
	// Also after an interruption, and with a location away, for as long as that takes.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drillLeftWait)
	defer cancel()
	if u := out.Unplanned; u != nil {
		u.Killed, u.Followed, u.Rebuilt = plan.Kill, seen.followed, seen.rebuilt
		u.DeadAfter, u.Lived = seen.deadAfter, seen.lives
		if seen.stated != nil {
			u.Stated = seen.stated
		}
		if compareErr := t.compareLost(ctx, target, plan, seen.epoch, out); err == nil {
			err = compareErr
		}
	}
	if err != nil { // The causes are words from here on: what is left to do is to be read, whatever the cause.
		err = fmt.Errorf("%v; %s", err, t.drillLeft(ctx, plan, seen)) //nolint:errorlint // See above.
	}
	_, deleteErr := target.primary.Delete(ctx, nil)
	return out, errors.Join(err, deleteErr)
}

// drillLeft says what a drill that has failed leaves behind, and what to do.
func (t *tool) drillLeft(ctx context.Context, plan drillPlan, seen *drillSeen) string {
	var todo []string
	if seen.down {
		how := "antipodectl location start " + string(plan.From)
		if plan.Kill == killByCommand {
			how = "--start-command"
		}
		todo = append(todo, fmt.Sprintf("%s may be stopped: start it (%s)", plan.From, how))
	}
	switch a, err := t.client.Account(ctx, plan.Account); {
	case err != nil:
		todo = append(todo, fmt.Sprintf("look where the account is: antipodectl account show %s", plan.Account))
	case a.Primary == plan.From:
		todo = append(todo, fmt.Sprintf("the account is at %s, as before", a.Primary))
	case a.Diverged:
		todo = append(todo, fmt.Sprintf("the account is at %s, and its copy has to be made again: antipodectl account rebuild %s", a.Primary, a.Name))
	default:
		todo = append(todo, fmt.Sprintf("the account is at %s: antipodectl failover start %s --yes moves it back", a.Primary, a.Name))
	}
	return strings.Join(todo, "; ")
}

// drillLeftWait bounds what is asked at the end.
const drillLeftWait = 20 * time.Second

// drillVerified compares both copies until all of them could be compared.
func (t *tool) drillVerified(ctx context.Context, name geo.Account) (outcome string, err error) {
	for range 5 {
		v, err := t.verify(ctx, name, admin.VerifyQuery{})
		if err != nil {
			return "", err
		}
		if outcome = v.Outcome; outcome == admin.VerifyEqual || outcome == admin.VerifyDifferent {
			break
		}
	}
	return outcome, nil
}

// writePage writes the report as a page, if a file was named.
func writePage(file string, r *drill.Report) error {
	if file == "" {
		return nil
	}
	var b strings.Builder
	if err := drill.WritePage(&b, r); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}
