package main

import (
	"cmp"
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

// wholeFlags name a location whose accounts a failover verb moves, in place of one account.
type wholeFlags struct{ from, to string }

func (f *wholeFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.from, "location", "", "all accounts whose primary is `LOCATION`, in place of ACCOUNT")
	c.Flags().StringVar(&f.to, "to", "", "with --location: the other `LOCATION`, which is asked for an unplanned failover")
	one := exactly("ACCOUNT")
	c.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case f.from == "" && f.to != "":
			return command.Wrong(errors.New("--to goes with --location"))
		case f.from == "":
			return one(cmd, args)
		case f.from == f.to:
			return command.Wrong(errors.New("--location and --to are two locations"))
		}
		return exactly()(cmd, args)
	}
}

// known refuses the name of a location that does not exist. The port of one location knows no other one.
func (f *wholeFlags) known(all []admin.Location) error {
	var names []string
	for _, l := range all {
		names = append(names, string(l.Name))
	}
	for _, name := range []string{f.from, f.to} {
		if name != "" && len(all) > 1 && !slices.Contains(names, name) {
			return fmt.Errorf("there is no location %s: there are %s", name, strings.Join(names, " and "))
		}
	}
	return nil
}

// wholePlan is what a failover of a location would do.
type wholePlan struct {
	From geo.Location `json:"from"`
	To   geo.Location `json:"to"`
	// Accounts would move, Alone have no copy and stay.
	Accounts int `json:"accounts"`
	Alone    int `json:"alone"`
	// BacklogRecords and BacklogBytes are what the other location has not acknowledged, payload included; absent where a
	// range has no leader, or its location does not answer.
	BacklogRecords *int64 `json:"backlog_records,omitempty"`
	BacklogBytes   *int64 `json:"backlog_bytes,omitempty"`
	// Services are how far the services of these accounts are at the other location.
	Services []wholeService `json:"services"`
	// Blocked keeps all accounts from moving, PassedOver single ones.
	Blocked    []string `json:"blocked"`
	PassedOver []string `json:"passed_over"`
	// Unplanned is what the other location says of an unplanned failover; absent where it was not asked.
	Unplanned *wholeCheck `json:"unplanned,omitempty"`
	// Witness is why unplanned failovers would wait for the witness: see unplannedPlan.
	Witness string `json:"witness,omitempty"`
	// without: they were asked for without the witness. runs: To does. serves: From does, so that a planned failover can be begun. unplanned: it is the plan of such a failover.
	without, runs, serves, unplanned bool
}

// wholeService is how far one service of many accounts is.
type wholeService struct {
	Service string `json:"service"`
	Live    int    `json:"live"`
	// NotLive are those in a bootstrap or unavailable, Unknown those of which the answering port does not know it.
	NotLive int `json:"not_live"`
	Unknown int `json:"unknown"`
	// Oldest is the least Last Sync Time; absent if one is unknown.
	Oldest admin.Time `json:"oldest_last_sync_time,omitzero"`
}

// passedOverMax bounds the accounts that a plan names.
const passedOverMax = 20

// planWhole asks what a failover of a location meets. An unplanned one does not need that location.
func (t *tool) planWhole(ctx context.Context, f wholeFlags, unplanned bool) (wholePlan, error) {
	s, err := t.client.Status(ctx)
	if err != nil {
		return wholePlan{}, err
	}
	if err := f.known(s.Locations); err != nil {
		return wholePlan{}, err
	}
	p := wholePlan{From: geo.Location(f.from), To: geo.Location(f.to), Blocked: []string{}, PassedOver: []string{}, unplanned: unplanned}
	if s.Link.State == admin.LinkCut && !unplanned {
		p.Blocked = append(p.Blocked, "an operator cut the link: antipodectl link heal")
	}
	for _, l := range s.Locations {
		switch {
		case l.Name == p.From:
			p.backlog(l)
			p.serves = l.State == admin.Running && (len(l.Ranges) == 0 || check.Serves(l))
			switch {
			case p.serves || unplanned:
			case l.State == admin.Running:
				p.Blocked = append(p.Blocked, fmt.Sprintf("location %s leads no range", l.Name))
			default:
				p.Blocked = append(p.Blocked, fmt.Sprintf("location %s is %s", l.Name, l.State))
			}
		case p.To == "" || p.To == l.Name:
			p.To, p.runs = l.Name, l.State == admin.Running
			if !p.runs {
				p.Blocked = append(p.Blocked, fmt.Sprintf("location %s is %s", l.Name, l.State))
			}
		}
	}
	if p.To == "" {
		return p, command.Wrong(errors.New("the port that answers knows no other location: give --to"))
	}
	p.Witness = silentWitness(s, p.To)
	for _, svc := range geo.Services {
		p.Services = append(p.Services, wholeService{Service: svc.String()})
	}
	passed := 0
	for _, a := range s.Accounts {
		switch {
		case a.Primary != p.From:
			continue
		case a.Secondary == "":
			p.Alone++
			continue
		}
		p.Accounts++
		if a.Operation != "" && !unplanned { // Of an unplanned one the other location says it: see checkWhole.
			if passed++; passed <= passedOverMax {
				p.PassedOver = append(p.PassedOver, fmt.Sprintf("account %s: an operation is under way: %s", a.Name, a.Operation))
			}
		}
		p.count(a)
	}
	if passed > passedOverMax {
		p.PassedOver = append(p.PassedOver, fmt.Sprintf("%d more accounts with an operation under way", passed-passedOverMax))
	}
	if !unplanned && p.Accounts > 0 && len(p.Blocked) == 0 {
		return p, t.checkStreams(ctx, &p)
	}
	return p, nil
}

// backlog sums what a location's ranges have that the other location has not acknowledged.
func (p *wholePlan) backlog(l admin.Location) {
	var records, bytes int64
	for _, r := range l.Ranges {
		if r.LeaderView == nil {
			return
		}
		records, bytes = records+r.BacklogRecords, bytes+r.BacklogBytes+r.BacklogPayloadBytes
	}
	if len(l.Ranges) > 0 {
		p.BacklogRecords, p.BacklogBytes = &records, &bytes
	}
}

// count counts the services of an account.
func (p *wholePlan) count(a admin.AccountStatus) {
	for i := range p.Services {
		s := &p.Services[i]
		n := slices.IndexFunc(a.Services, func(have admin.ServiceStatus) bool { return have.Service == s.Service })
		switch {
		case n < 0:
			s.Unknown++
		case a.Services[n].Status == admin.Live:
			s.Live++
		default:
			s.NotLive++
		}
		if at := (admin.Time{}); n >= 0 {
			if at = a.Services[n].LastSyncTime; s.Live+s.NotLive == 1 || at.Before(s.Oldest.Time) {
				s.Oldest = at
			}
		}
	}
}

func writeWholePlan(w io.Writer, p wholePlan) {
	_, _ = fmt.Fprintf(w, "location   %s: %d accounts with a copy, %d without one, which stay\nmove       %s to %s\n", p.From, p.Accounts, p.Alone, p.From, p.To)
	if p.BacklogRecords != nil {
		_, _ = fmt.Fprintf(w, "on the way %d records, %s with payload\n", *p.BacklogRecords, size(uint64(max(0, *p.BacklogBytes))))
	} else {
		_, _ = fmt.Fprintln(w, "on the way not known")
	}
	for _, s := range p.Services {
		oldest := "not known"
		if !s.Oldest.IsZero() {
			oldest = s.Oldest.UTC().Format(lossTime)
		}
		_, _ = fmt.Fprintf(w, "%-10s %d live, %d not, %d not known; oldest Last Sync Time %s\n", s.Service, s.Live, s.NotLive, s.Unknown, oldest)
	}
	for _, b := range p.PassedOver {
		_, _ = fmt.Fprintf(w, "passed by  %s\n", b)
	}
	p.Unplanned.write(w)
	writeBlocked(w, p.Blocked)
	writeWitness(w, p.Witness, p.From, p.To, p.without)
	p.writeOther(w)
}

// refusal is why a failover of a location is not begun; nil if nothing blocks it.
func (p wholePlan) refusal() error {
	if len(p.Blocked) == 0 {
		return nil
	}
	return &command.Error{Code: command.Failed, Err: fmt.Errorf("a failover of location %s is blocked, nothing was changed: %s", p.From, strings.Join(p.Blocked, "; "))}
}

// runWhole moves the accounts of a location, or with dry only says what that would meet. at is the location that is asked.
func (t *tool) runWhole(ctx context.Context, f wholeFlags, in admin.Failover, dry bool) error {
	plan, err := t.planWhole(ctx, f, in.Type == admin.FailoverUnplanned)
	if err != nil {
		return err
	}
	plan.without = in.WithoutWitness
	if dry {
		if in.Type == admin.FailoverUnplanned {
			t.checkWhole(ctx, &plan, in)
		}
		err := t.print(plan, func(w io.Writer) {
			writeWholePlan(w, plan)
			writeUnchanged(w, plan.Blocked, nothingChanged)
		})
		return errors.Join(err, plan.refusal(), plan.Unplanned.refusal(plan.From))
	}
	if err := plan.refusal(); err != nil {
		return err
	}
	at := plan.From
	if in.Type == admin.FailoverUnplanned {
		at = plan.To
	}
	now, err := t.client.FailLocationOver(ctx, at, in)
	if err != nil {
		return err
	}
	if now, err = t.awaitWhole(ctx, at, now); err != nil {
		return err
	}
	if err := t.print(now, func(w io.Writer) { writeWhole(w, now) }); err != nil {
		return err
	}
	if now.Waiting > 0 {
		why := cmp.Or(strings.ReplaceAll(now.Reason, "\n", "; "), "antipodectl events says why")
		return &command.Error{Code: command.Failed, Err: fmt.Errorf("%d accounts are still at %s: %s", now.Waiting, now.From, why)}
	}
	return nil
}

// awaitWhole waits until the failover of a location is over, and shows its progress on stderr.
func (t *tool) awaitWhole(ctx context.Context, at geo.Location, now admin.LocationFailover) (admin.LocationFailover, error) {
	for shown, since := "", t.mono(); now.Phase != admin.LocationOver; {
		if line := wholeLine(now); line != shown {
			shown = line
			_, _ = fmt.Fprintf(t.errOut, "%s (%.1f s)\n", line, (t.mono() - since).Seconds())
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

// wholeLine is how far the failover of a location is.
func wholeLine(f admin.LocationFailover) string {
	line := fmt.Sprintf("%s: %s, %d moved, %d waiting", f.From, f.Phase, f.Moved, f.Waiting)
	for _, phase := range []string{
		admin.FailoverDraining, admin.FailoverClosing, admin.FailoverOffered, admin.FailoverClaiming, admin.FailoverApplying,
		admin.FailoverFreezing, admin.FailoverThawing, admin.FailoverWithdrawing, admin.FailoverEnding,
	} {
		if n := f.Moving[phase]; n > 0 {
			line += fmt.Sprintf(", %d %s", n, phase)
		}
	}
	return line
}

func writeWhole(w io.Writer, f admin.LocationFailover) {
	if f.From == "" {
		_, _ = fmt.Fprintln(w, "there was no failover of a location")
		return
	}
	_, _ = fmt.Fprintf(w, "location   %s to %s, %s, %s, round %d\n", f.From, f.To, f.Type, f.Phase, f.Round)
	_, _ = fmt.Fprintf(w, "accounts   %s; %d without a copy stay\n", strings.TrimPrefix(wholeLine(f), string(f.From)+": "+f.Phase+", "), f.Alone)
	if n := f.Moving[admin.FailoverClaiming]; n > 0 {
		_, _ = fmt.Fprintf(w, "claiming   %d wait for the witness; antipodectl check says whether it answers, and what to do for each; failover end --location %s ends all\n", n, f.From)
	}
	for line := range strings.Lines(f.Reason) {
		_, _ = fmt.Fprintf(w, "ended      %s\n", oneLine(line))
	}
	writeRefused(w, f.RefusedAccounts, f.Refused)
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
	c.RunE = answer(t, func(ctx context.Context, _ []string) (admin.LocationFailover, error) {
		if whole.from == "" {
			return admin.LocationFailover{}, command.Wrong(errors.New(c.CommandPath() + " needs --location LOCATION"))
		}
		_, found, err := t.findWhole(ctx, whole)
		return found, err
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
	return t.print(now, func(w io.Writer) {
		writeWhole(w, now)
		if dry {
			_, _ = fmt.Fprintln(w, "nothing was changed")
		}
	})
}
