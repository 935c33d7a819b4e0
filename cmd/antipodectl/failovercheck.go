package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/geo"
)

// failoverPlan is what a planned failover would do.
type failoverPlan struct {
	Account geo.Account  `json:"account"`
	From    geo.Location `json:"from"`
	To      geo.Location `json:"to"`
	Epoch   admin.Epoch  `json:"epoch"`
	After   string       `json:"redundancy_afterwards"`
	Blocked []string     `json:"blocked"`
	// Services are how far the services are at the other location.
	Services []admin.ServiceLag `json:"services"`
	// Witness is why an unplanned failover would wait for the witness: see unplannedPlan.
	Witness string `json:"witness,omitempty"`
	// Link is that an operator delays the link, over which the two locations ask each other; empty if nobody does.
	Link string `json:"link,omitempty"`
	// witness is what the plan has of the witness beside that.
	witness witnessPlan
	// gone: the primary does not answer. unled: a range of it has no leader. cut: an operator cut the link. unseen is that the port which answers does not ask one of the locations: see notShown.
	gone, unled, cut bool
	unseen           string
	// alone: the primary takes writes without a lease or an answer of the other location.
	alone bool
	lag   admin.Lag
	// of is the account, as its primary describes it where that answers.
	of admin.Account
}

// planFailover asks what a planned failover of an account meets.
func (t *tool) planFailover(ctx context.Context, name geo.Account) (failoverPlan, error) {
	a, err := t.client.Account(ctx, name)
	if err != nil {
		return failoverPlan{}, err
	}
	if a.Secondary == "" {
		return planBy(a, admin.Status{}, nil, admin.Lag{}), nil
	}
	s, unasked, lag, err := t.statusAndLag(ctx, name)
	out := planBy(a, s, unasked, lag)
	if err == nil {
		err = t.checkMove(ctx, &out)
	}
	return out, err
}

// planBy is the plan by what is known. unasked is why there is no status.
func planBy(a admin.AccountInfo, s admin.Status, unasked error, lag admin.Lag) failoverPlan {
	out := failoverPlan{
		Account: a.Name, From: a.Primary, To: a.Secondary, Epoch: a.Epoch, After: a.Redundancy, Blocked: []string{}, Services: []admin.ServiceLag{},
		of: a.Account,
	}
	if a.Operation != "" {
		out.Blocked = append(out.Blocked, "an operation is under way: "+a.Operation)
	}
	if a.Secondary == "" {
		out.Blocked = append(out.Blocked, "it is "+a.Redundancy+": there is no other location to move it to")
		return out
	}
	if unasked == nil { // Else nothing is known of a witness, and a failover says itself what it waits for.
		out.witness = planWitness(s, out.From, out.To)
		out.Witness = out.witness.why
		out.alone = slices.ContainsFunc(s.Locations, func(l admin.Location) bool { return l.Name == out.From && !check.Down(l) && check.ByWord(l) })
		out.Link = delayed(s)
		out.unseen = notShown(s, out.From, out.To)
		out.standing(s)
	}
	out.lag = lag
	if out.unseen != "" { // What is not known follows from it.
		out.Blocked, out.Services = append(out.Blocked, out.unseen), append(out.Services, lag.Services...)
		return out
	}
	for _, l := range lag.Silent {
		out.gone = out.gone || l.Location == a.Primary
		if i := slices.IndexFunc(s.Locations, func(of admin.Location) bool { return of.Name == l.Location && check.Stopped(of) }); i >= 0 {
			out.Blocked = append(out.Blocked, notRunning(s.Locations[i]))
			continue
		}
		out.Blocked = append(out.Blocked, fmt.Sprintf("%s does not answer: %s; see %s", l.Location, check.OneLine(l.Reason), targetDown))
	}
	for _, s := range lag.Streams {
		if s.Stopped != "" {
			out.Blocked = append(out.Blocked, fmt.Sprintf("stream %s is stopped: %s", s.Stream, s.Stopped))
		}
	}
	for _, s := range lag.Services {
		out.Services = append(out.Services, s)
		if s.Status != admin.Live && (s.Status != "" || len(lag.Silent) == 0) { // What is not known follows from the silence.
			out.Blocked = append(out.Blocked, fmt.Sprintf("the %s service is %s there", s.Service, statusOf(s)))
		}
	}
	return out
}

// standing adds what keeps streams from moving whatever they answer: a link that is cut, and ranges of the primary without a leader.
func (p *failoverPlan) standing(s admin.Status) {
	if p.cut = s.Link.State == admin.LinkCut; p.cut {
		p.Blocked = append(p.Blocked, s.Link.Held())
	}
	for _, l := range s.Locations {
		if none := check.Leaderless(l); none != "" && l.Name == p.From {
			p.unled = true
			p.Blocked = append(p.Blocked, none+": docs/runbooks/range-without-leader.md")
		}
	}
}

// checkMove asks whether the streams of the account move, which the other location has to answer. It changes nothing.
func (t *tool) checkMove(ctx context.Context, p *failoverPlan) error {
	if p.To == "" || p.unseen != "" || p.cut || p.unled || len(p.lag.Silent) > 0 {
		return nil // It would be refused for that alone, after a wait.
	}
	_, err := t.client.UpdateAccount(ctx, p.Account, admin.UpdateAccount{Failover: &admin.Failover{Type: admin.FailoverPlanned, DryRun: true}})
	var refused *admin.Error
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.Status >= http.StatusInternalServerError: // Else it is an older program, which does not check.
		p.Blocked = append(p.Blocked, causeOf(refused))
	}
	return nil
}

// movable reports whether a planned failover would be begun. A status that is known already is not asked for again, and what the
// streams do only where nothing else blocks it.
func (t *tool) movable(ctx context.Context, a admin.AccountInfo, s admin.Status, unasked error) bool {
	lag, err := t.client.Lag(ctx, a.Name, admin.LagQuery{})
	if err != nil {
		return false
	}
	p := planBy(a, s, unasked, lag)
	return len(p.Blocked) == 0 && t.checkMove(ctx, &p) == nil && len(p.Blocked) == 0
}

// targetDown is what to read where a location does not answer.
const targetDown = "docs/runbooks/target-down.md"

// statusAndLag asks for both at once: each waits for a location that is paused, which takes calls and does not answer. unasked is
// the error of the status.
func (t *tool) statusAndLag(ctx context.Context, name geo.Account) (s admin.Status, unasked error, lag admin.Lag, err error) {
	var asked sync.WaitGroup
	asked.Go(func() { s, unasked = t.client.Status(ctx) })
	lag, err = t.client.Lag(ctx, name, admin.LagQuery{})
	asked.Wait()
	return s, unasked, lag, err
}

// causeOf is why a port refused the plan of a failover, without what was refused, which the plan begins with.
func causeOf(refused *admin.Error) string {
	what, why, ok := strings.Cut(check.OneLine(refused.Message), ": ")
	if !ok || !strings.HasPrefix(what, "could not ") {
		return check.OneLine(refused.Message)
	}
	return strings.Replace(why, "; nothing was changed", "", 1)
}

// statusOf is the status of a service, of which the port that answers may not know it.
func statusOf(s admin.ServiceLag) string {
	if s.Status == "" {
		return "in a state that is not known"
	}
	return string(s.Status)
}
