package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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
	// PlannedBlocked is what keeps a planned one from beginning beside Blocked, in the plan of an unplanned one, where From serves.
	PlannedBlocked []string `json:"planned_blocked,omitempty"`
	// Residents are accounts that would move, and did not come with the last failover of To; absent without such accounts.
	Residents *residents `json:"residents,omitempty"`
	// Unplanned is what the other location says of an unplanned failover; absent where it was not asked.
	Unplanned *wholeCheck `json:"unplanned,omitempty"`
	// Witness is why unplanned failovers would wait for the witness: see unplannedPlan.
	Witness string `json:"witness,omitempty"`
	// Link: see failoverPlan.
	Link string `json:"link,omitempty"`
	// passed are all that are passed over.
	passed []admin.RefusedFailover
	// unseen is that the port which answers does not show From: whether that serves is not known.
	unseen string
	// witness is what the plan has of the witness beside that.
	witness witnessPlan
	// runs: To does. serves: From does, so that a planned failover can be begun. unplanned: it is the plan of such a failover.
	runs, serves, unplanned bool
	// alone: see failoverPlan.
	alone bool
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
	switch cut := s.Link.State == admin.LinkCut; {
	case cut && unplanned: // It needs no link.
		p.PlannedBlocked = append(p.PlannedBlocked, s.Link.Held())
	case cut:
		p.Blocked = append(p.Blocked, s.Link.Held())
	}
	p.lookFor(s.Locations, unplanned)
	for _, l := range s.Locations {
		switch {
		case l.Name == p.From:
			p.backlog(l)
			p.serves = l.State == admin.Running && (len(l.Ranges) == 0 || check.Serves(l))
			p.alone = p.serves && check.ByWord(l)
			switch {
			case p.serves || unplanned:
			case l.State == admin.Running:
				p.Blocked = append(p.Blocked, fmt.Sprintf("location %s leads no range", l.Name))
			default:
				p.Blocked = append(p.Blocked, notRunning(l))
			}
		case p.To == "" || p.To == l.Name:
			p.To, p.runs = l.Name, l.State == admin.Running
			if !p.runs {
				p.Blocked = append(p.Blocked, notRunning(l))
			}
		}
	}
	if p.To == "" {
		return p, command.Wrong(errors.New("the port that answers knows no other location: ask a gateway, or give --to"))
	}
	p.witness = planWitness(s, p.From, p.To)
	p.Witness = p.witness.why
	p.Link = delayed(s)
	for _, svc := range geo.Services {
		p.Services = append(p.Services, wholeService{Service: svc.String()})
	}
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
			p.passed = append(p.passed, passes(a.Name, a.Operation))
		}
		p.count(a)
	}
	p.PassedOver = passedBy(p.passed)
	p.Residents = t.residentsOf(ctx, s, p)
	if !unplanned && p.Accounts > 0 && len(p.Blocked) == 0 {
		p.Blocked, err = t.checkStreams(ctx, p)
		if p.Blocked == nil {
			p.Blocked = []string{}
		}
	}
	return p, err
}

// beginning is what --yes does where nothing blocks it.
func (p wholePlan) beginning() string {
	if p.Unplanned != nil && p.Accounts > 0 && p.Unplanned.Refused >= p.Accounts {
		return "nothing was changed, and with --yes no account begins to move"
	}
	return nothingChanged
}

// notRunning is that a location does not run, and what to do.
func notRunning(l admin.Location) string {
	line := fmt.Sprintf("location %s is %s", l.Name, l.State)
	switch {
	case l.State == admin.Unreachable:
		line += ": " + targetDown
	case check.Stopped(l):
		line += ": " + check.Start(l.Name)
	}
	return line
}

// planEnds is how many rows of a screen follow a plan: that nothing was changed, and the error.
const planEnds = 3

// writeWholePlan writes as many causes as fit a screen, at least one.
func writeWholePlan(w io.Writer, p wholePlan) {
	text := ""
	for most := causesMost; most > 0 && (text == "" || rowsOfScreen(text) > screenRows-planEnds); most-- {
		var b strings.Builder
		p.write(&b, most)
		text = b.String()
	}
	_, _ = io.WriteString(w, text)
}

func (p wholePlan) write(w io.Writer, causes int) {
	_, _ = fmt.Fprintf(w, "location   %s: %s with a copy, %d without (not moved)\nmove       %s to %s\n", p.From, check.Count(p.Accounts, "account"), p.Alone, p.From, p.To)
	if p.BacklogRecords != nil {
		_, _ = fmt.Fprintf(w, "on the way %s, %s with payload\n", check.Count(*p.BacklogRecords, "record"), size(uint64(max(0, *p.BacklogBytes))))
	} else {
		_, _ = fmt.Fprintln(w, "on the way not known")
	}
	writeServices(w, p.Services)
	writeCauses(w, "passed by", p.passed, len(p.passed), causes, ": antipodectl account list")
	p.Residents.write(w, p.To)
	p.Unplanned.write(w, causes)
	writeDelayed(w, p.Link)
	writeBlocked(w, p.Blocked)
	p.witness.write(w)
	p.writeOther(w)
}

// refusal is why a failover of a location is not begun; nil if nothing blocks it.
func (p wholePlan) refusal() error {
	if len(p.Blocked) == 0 {
		return nil
	}
	return &command.Error{Code: command.Failed, Err: fmt.Errorf("a failover of location %s is blocked, nothing was changed: %s", p.From, strings.Join(causes(p.Link, p.Blocked), "; "))}
}

// runWhole moves the accounts of a location, or with dry only says what that would meet. at is the location that is asked.
func (t *tool) runWhole(ctx context.Context, f wholeFlags, in admin.Failover, dry bool) error {
	plan, err := t.planWhole(ctx, f, in.Type == admin.FailoverUnplanned)
	if err != nil {
		return err
	}
	plan.witness.without, plan.witness.planned = in.WithoutWitness, in.Type == admin.FailoverPlanned
	if dry {
		if in.Type == admin.FailoverUnplanned {
			t.checkWhole(ctx, &plan, in)
			err = t.checkPlanned(ctx, &plan)
		}
		if err != nil {
			return err
		}
		err = t.print(plan, func(w io.Writer) {
			writeWholePlan(w, plan)
			writeUnchanged(w, plan.Blocked, plan.beginning())
		})
		return errors.Join(err, plan.refusal(), plan.Unplanned.refusal(plan.From))
	}
	if err := plan.refusal(); err != nil {
		if other := plan.otherwise(); other != "" {
			err = fmt.Errorf("%w; %s", err, other)
		}
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
	state := t.stateOfWhole(ctx, now)
	err = t.print(state, func(w io.Writer) {
		writeWhole(w, state)
		if plan.unseen != "" && now.Phase == admin.LocationOver {
			_, _ = fmt.Fprintf(w, "not known  whether %s has more accounts, which %s does not know to be there: %s\n", now.From, now.To, plan.unseen)
		}
	})
	if err != nil {
		return err
	}
	if now.Waiting > 0 {
		why := cmp.Or(strings.ReplaceAll(now.Reason, "\n", "; "), "antipodectl events says why")
		return &command.Error{Code: command.Failed, Err: fmt.Errorf("%s %s still at %s: %s", check.Count(now.Waiting, "account"), check.Are(now.Waiting), now.From, why)}
	}
	return nil
}
