package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/command"
)

// inSyncWait is the zero value of --wait: a node that was away for long is fed.
const inSyncWait = 10 * time.Minute

// inSyncLook bounds one look at the status.
const inSyncLook = 10 * time.Second

func (t *tool) inSyncCommand() *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{
		Use:   "wait-in-sync NODE",
		Short: "Wait until a node runs and all replicas of its location are in sync",
		Long: `wait-in-sync returns when the node runs, every range of its location has a leader, and that
counts all configured replicas in sync: then another node of the location may be stopped
without a write that waits. After --wait it fails with what it still waits for. Meanwhile it
prints that to stderr every few seconds.`,
		Example: `  antipodectl node wait-in-sync northcentralus-2
  systemctl restart antipode && antipodectl node wait-in-sync northcentralus-2 --wait 5m`,
		Args: exactly("NODE"),
		RunE: answer(t, func(ctx context.Context, args []string) (admin.Changed, error) {
			return t.awaitInSync(ctx, args[0], wait)
		}, writeChanged),
	}
	c.Flags().DurationVar(&wait, "wait", inSyncWait, "how `LONG` to wait at most")
	return c
}

// awaitInSync asks until the replicas of a node's location are in sync, for at most limit.
func (t *tool) awaitInSync(ctx context.Context, name string, limit time.Duration) (admin.Changed, error) {
	done := admin.Changed{Name: name, State: admin.Running}
	if _, _, err := admin.ParseNodeName(name); err != nil {
		return done, command.Wrong(err)
	}
	began := t.mono()
	for reported := began; ; {
		waiting := t.notInSync(ctx, name)
		now := t.mono()
		switch {
		case ctx.Err() != nil:
			return done, ctx.Err()
		case waiting == "":
			return done, nil
		case now-began >= limit:
			return done, fmt.Errorf("%s is not in sync after %s: %s; see antipodectl status", name, limit, waiting)
		case now-reported >= reportEvery:
			reported = now
			_, _ = fmt.Fprintf(t.errOut, "waiting: %s: %s (%ds)\n", name, waiting, int((now - began).Seconds()))
		}
		select {
		case <-ctx.Done():
		case <-t.after(servingPoll):
		}
	}
}

// notInSync asks once what keeps a node's location from having all replicas in sync; "" for nothing.
func (t *tool) notInSync(ctx context.Context, name string) string {
	ctx, cancel := context.WithTimeout(ctx, inSyncLook)
	defer cancel()
	s, err := t.client.Status(ctx)
	if err != nil {
		return t.explain(err) // The port may answer later.
	}
	of, _, _ := admin.ParseNodeName(name) // It was checked.
	for _, l := range s.Locations {
		if l.Name != of {
			continue
		}
		state := admin.State("unknown")
		for _, n := range l.Nodes {
			if n.Name == name {
				state = n.State
			}
		}
		if state != admin.Running {
			return fmt.Sprintf("the node is %s", state)
		}
		if len(l.Ranges) == 0 {
			return "no node of the location shows its ranges"
		}
		for _, r := range l.Ranges {
			switch {
			case r.LeaderView == nil:
				return "the " + r.Service + " range has no leader"
			case r.InSyncReplicas < r.ConfiguredReplicas:
				return fmt.Sprintf("the %s range has %d of %d replicas in sync", r.Service, r.InSyncReplicas, r.ConfiguredReplicas)
			}
		}
		return ""
	}
	return fmt.Sprintf("the server shows no location %s", of)
}
