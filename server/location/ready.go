package location

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	wire "antipode/client/admin"
	"antipode/directory"
	"antipode/geo"
	"antipode/stamp"
	"antipode/stats"
)

// writableWait bounds the check whether ranges take writes, so that Readiness reports a range
// that does not in time.
const writableWait = 2 * time.Second

// Readiness reports whether the location serves and is ready, or what it waits for.
func (l *Location) Readiness(ctx context.Context) wire.LocationReadiness {
	out := wire.LocationReadiness{Name: l.o.Name, State: l.state(), Reason: l.notServing(ctx)}
	if out.Reason == "" {
		out.Serving = true
		out.Reason = l.notLive(ctx)
	}
	out.Ready = out.Reason == ""
	return out
}

// notServing returns why the location does not serve, or "": it serves when every range has a
// leader and takes writes.
func (l *Location) notServing(ctx context.Context) string {
	stamp, err := l.Stamp()
	if err != nil {
		return l.notRunning()
	}
	if l.Draining() {
		return l.Subject() + " is going to stop, and drains"
	}
	why := l.notWritable(ctx, stamp)
	for _, id := range l.o.Local {
		if n := stamp.Node(id); n != nil && why != "" {
			why = strings.Join(append([]string{why}, n.Refused()...), "; ")
		}
		if err := stamp.Down(id); err != nil && why != "" {
			why += fmt.Sprintf("; node %s is out of service: %v", wire.NodeName(l.o.Name, id), err)
		}
	}
	return why
}

// notWritable names a range that has no leader or takes no writes; "" if every range does.
func (l *Location) notWritable(ctx context.Context, stamp *stamp.Stamp) string {
	all := l.o.Route.Ranges()
	for _, r := range all {
		if _, known := stamp.LeaderNode(r.ID); !known {
			return "the " + r.Service.String() + " range has no leader yet"
		}
	}
	ctx, cancel := context.WithTimeout(ctx, writableWait)
	defer cancel()
	errs := make([]error, len(all))
	var asked sync.WaitGroup
	for i, r := range all {
		asked.Go(func() { errs[i] = directory.Writable(ctx, l, r.ID) })
	}
	asked.Wait()
	for i, r := range all {
		if errs[i] != nil {
			return fmt.Sprintf("the %s range takes no writes yet (%v)", r.Service, errs[i])
		}
	}
	return ""
}

// notRunning returns why the location does not run.
func (l *Location) notRunning() string {
	if doing := l.starting.Load(); doing != nil {
		return *doing
	}
	what, again := "the location", "antipodectl location start "+string(l.o.Name)
	if !l.Whole() {
		what, again = l.Subject(), "antipodectl node start "+wire.NodeName(l.o.Name, l.o.Local[0])
	}
	if why := l.startFailed.Load(); why != nil {
		return what + " failed to start (" + (*why).Error() + "); start it with: " + again
	}
	return what + " is stopped; start it with: " + again
}

// Subject names for people what this process runs of the location.
func (l *Location) Subject() string {
	if l.Whole() {
		return "location " + string(l.o.Name)
	}
	return "node " + wire.NodeName(l.o.Name, l.o.Local[0])
}

// notLive is NotLive for the accounts that this location knows.
func (l *Location) notLive(ctx context.Context) string {
	list, err := l.Directory.Accounts(ctx)
	if err != nil {
		return "the catalog does not answer: " + err.Error()
	}
	if !l.Whole() {
		return "" // Another process may receive, and know the sync times.
	}
	var accounts []wire.AccountStatus
	for _, a := range list {
		accounts = append(accounts, l.AccountStatus(ctx, a))
	}
	return NotLive(l.o.Name, accounts)
}

// NotLive returns why the statistics of an account are not live at its secondary l, or "" if all
// are live. Without any account there is nothing to be live. An account whose copy is made, which may take days,
// keeps no location from being ready.
func NotLive(l geo.Location, accounts []wire.AccountStatus) string {
	if len(accounts) == 0 {
		return "no account is made yet"
	}
	for _, a := range accounts {
		if a.Secondary != l {
			continue
		}
		if len(a.Services) == 0 {
			return fmt.Sprintf("Last Sync Time of %s is not known yet", a.Name)
		}
		for _, s := range a.Services {
			if s.LagSeconds == nil && s.Status != wire.Bootstrap && s.Reason != string(stats.Bootstrapping) {
				if s.Reason != "" && s.Reason != string(stats.NotHeard) { // It may not pass: an operator has to know of it.
					return fmt.Sprintf("Last Sync Time of %s (%s) is not known: %s: antipodectl why %s", a.Name, s.Service, s.Reason, a.Name)
				}
				return fmt.Sprintf("Last Sync Time of %s (%s) is not known yet", a.Name, s.Service)
			}
		}
	}
	return ""
}
