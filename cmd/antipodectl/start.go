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
	// servingPoll is the time between two questions whether a location serves, reportEvery
	// that between two lines which say what it waits for.
	servingPoll = 500 * time.Millisecond
	reportEvery = 5 * time.Second
)

// startCommand makes c start what its argument names, and wait until the location serves.
func (t *tool) startCommand(c *cobra.Command, act func(context.Context, string) (admin.Changed, error)) *cobra.Command {
	wait := c.Flags().Duration("wait", startWait, "how `LONG` to wait until the location serves; 0 asks once")
	c.Long = c.Short + `.

It returns when every range of the location has a leader and takes writes, and says on
stderr every few seconds what it waits for. After --wait the start goes on all the same:
a location that does not serve by then ends the command with 1 and what is waited for.`
	c.RunE = operation(func(cmd *cobra.Command, args []string) error {
		done, err := act(cmd.Context(), args[0])
		if err == nil && done.Waiting != "" {
			done, err = t.awaitServing(cmd.Context(), done, *wait)
		}
		if err != nil {
			return err
		}
		if done.State == admin.Starting {
			return fmt.Errorf("%s does not serve yet and goes on starting: %s; see antipodectl status", done.Name, done.Waiting)
		}
		return t.printChanged(done)
	})
	return c
}

// awaitServing asks until the location of what was started serves, for at most limit.
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

// serves asks once whether a location serves, and what it waits for if that is known.
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
