package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/geo"
)

const (
	// startWait is the zero value of --wait: elections take seconds, a long log more.
	startWait = time.Minute
	// servingPoll is the time between two checks whether a location serves, reportEvery the
	// time between two lines that report what it waits for.
	servingPoll = 500 * time.Millisecond
	reportEvery = 5 * time.Second
)

// startCommand makes c start what its argument names, and wait until the location serves.
func (t *tool) startCommand(c *cobra.Command, act func(context.Context, string) (admin.Changed, error)) *cobra.Command {
	wait := c.Flags().Duration("wait", startWait, "how `LONG` to wait until the location serves; 0 asks once")
	c.Long = c.Short + `.

It returns when every range of the location has a leader and takes writes. Meanwhile it
prints to stderr every few seconds what it waits for. If the location does not serve after
--wait, the command fails with what it waits for, and the start goes on.`
	c.RunE = answer(t, func(ctx context.Context, args []string) (admin.Changed, error) {
		done, err := act(ctx, args[0])
		if err == nil && done.Waiting != "" {
			done, err = t.awaitServing(ctx, done, *wait)
		}
		if err == nil && done.State == admin.Starting {
			err = fmt.Errorf("%s does not serve yet and goes on starting: %s; see antipodectl status", done.Name, done.Waiting)
		}
		return done, err
	}, writeChanged)
	return c
}

// awaitServing asks until the location that done belongs to serves, for at most limit.
func (t *tool) awaitServing(ctx context.Context, done admin.Changed, limit time.Duration) (admin.Changed, error) {
	l := geo.Location(done.Name)
	if done.State != admin.Starting {
		var err error
		if l, _, err = admin.ParseNodeName(done.Name); err != nil {
			return done, err
		}
	}
	began := t.mono()
	reported := began
	for t.mono()-began < limit {
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case <-t.after(servingPoll):
		}
		serves, waiting := t.serves(ctx, l, limit)
		if serves {
			return admin.Changed{Name: done.Name, State: admin.Running}, nil
		}
		if waiting != "" {
			done.Waiting = waiting
		}
		if now := t.mono(); now-reported >= reportEvery {
			reported = now
			_, _ = fmt.Fprintf(t.errOut, "waiting: %s: %s (%ds)\n", l, done.Waiting, int((now - began).Seconds()))
		}
	}
	return done, ctx.Err()
}

// serves asks once whether a location serves, and if not, what it waits for.
func (t *tool) serves(ctx context.Context, l geo.Location, limit time.Duration) (serves bool, waiting string) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := t.client.Readiness(ctx)
	if err != nil {
		return false, t.explain(err) // The port may answer later.
	}
	for _, at := range r.Locations {
		if at.Name == l {
			return at.Serving, at.Reason
		}
	}
	return false, ""
}
