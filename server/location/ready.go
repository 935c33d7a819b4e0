package location

import (
	"context"
	"fmt"
	"sync"
	"time"

	wire "antipode/client/admin"
	"antipode/directory"
	"antipode/geo"
	"antipode/stamp"
)

// writableWait bounds how long a range may take to show that it takes writes, so that who
// asks for readiness hears of those that do not in good time.
const writableWait = 2 * time.Second

// Readiness says how far the location is.
func (l *Location) Readiness(ctx context.Context) wire.LocationReadiness {
	out := wire.LocationReadiness{Name: l.o.Name, State: l.state(), Reason: l.notServing(ctx)}
	if out.Reason == "" {
		out.Serving = true
		out.Reason = l.notLive(ctx)
	}
	out.Ready = out.Reason == ""
	return out
}

// notServing says why the location cannot serve, "" where it can: every range has a
// leader and takes writes.
func (l *Location) notServing(ctx context.Context) string {
	stamp := l.Stamp()
	if stamp == nil {
		return l.notRunning()
	}
	why := l.notWritable(ctx, stamp)
	for _, id := range l.o.Local {
		if err := stamp.Down(id); err != nil && why != "" {
			why += fmt.Sprintf("; node %s is out of service: %v", wire.NodeName(l.o.Name, id), err)
		}
	}
	return why
}

// notWritable names a range without a leader, or that takes no writes; "" where there is none.
func (l *Location) notWritable(ctx context.Context, stamp *stamp.Stamp) string {
	for _, svc := range Services() {
		if _, known := stamp.LeaderNode(geo.FirstRange(svc)); !known {
			return "the " + svc.String() + " range has no leader yet"
		}
	}
	ctx, cancel := context.WithTimeout(ctx, writableWait)
	defer cancel()
	errs := make([]error, len(Services()))
	var asked sync.WaitGroup
	for i, svc := range Services() {
		asked.Go(func() { errs[i] = directory.Writable(ctx, l, geo.FirstRange(svc)) })
	}
	asked.Wait()
	for i, svc := range Services() {
		if errs[i] != nil {
			return fmt.Sprintf("the %s range takes no writes yet (%v)", svc, errs[i])
		}
	}
	return ""
}

// notRunning says why there is no stamp.
func (l *Location) notRunning() string {
	if doing := l.starting.Load(); doing != nil {
		return *doing
	}
	what, again := "the location", "antipodectl location start "+string(l.o.Name)
	if !l.Whole() {
		name := wire.NodeName(l.o.Name, l.o.Local[0])
		what, again = "node "+name, "antipodectl node start "+name
	}
	if why := l.startFailed.Load(); why != nil {
		return what + " failed to start (" + *why + "); start it with: " + again
	}
	return what + " is stopped; start it with: " + again
}

// notLive says why the statistics of an account are not live here, "" where all are. A
// location without an account has nothing to say of any.
func (l *Location) notLive(ctx context.Context) string {
	list, err := l.Directory.Accounts(ctx)
	if err != nil {
		return "the catalog does not answer: " + err.Error()
	}
	if !l.Whole() {
		return "" // Another process may be the one that knows how far the accounts are.
	}
	if len(list) == 0 {
		return noAccount
	}
	for _, a := range list {
		for _, svc := range geo.Services {
			if a.Secondary == l.o.Name && !l.ReplicationNow(a, svc).Known() {
				return fmt.Sprintf("Last Sync Time of %s (%s) is not known yet", a.Name, svc)
			}
		}
	}
	return ""
}

// noAccount is the reason of a location that serves but has nobody to serve.
const noAccount = "no account is made yet"
