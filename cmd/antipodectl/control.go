package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/command"
	"antipode/geo"
)

func (t *tool) nodeCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "node",
		Short: "Wait for a node after its restart; stop and start nodes (development)",
		Example: `  antipodectl node stop northcentralus-2
  antipodectl node start northcentralus-2`,
	})
	c.AddCommand(
		t.switchCommand("stop NODE", "NODE", "Stop a node; its ranges go on with two replicas",
			"  antipodectl node stop northcentralus-2", t.stopNode),
		t.startCommand(t.switchCommand("start NODE", "NODE", "Start a stopped or failed node",
			"  antipodectl node start northcentralus-2", nil), t.startNode),
		t.inSyncCommand(),
	)
	return c
}

func (t *tool) stopNode(ctx context.Context, name string) (admin.Changed, error) {
	return t.client.StopNode(ctx, name)
}

func (t *tool) startNode(ctx context.Context, name string) (admin.Changed, error) {
	return t.client.StartNode(ctx, name)
}

func (t *tool) locationCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "location",
		Short: "Let a location take writes alone; stop and start locations (development)",
		Example: `  antipodectl location stop northcentralus
  antipodectl location start northcentralus`,
	})
	c.AddCommand(
		t.switchCommand("stop LOCATION", "LOCATION", "Stop a location; the other one goes on serving reads",
			"  antipodectl location stop northcentralus", t.stopLocation),
		t.startCommand(t.switchCommand("start LOCATION", "LOCATION", "Start a stopped location and wait until it serves",
			"  antipodectl location start northcentralus\n  antipodectl location start northcentralus --wait 5m", nil), t.startLocation),
		t.confirmCommand(),
	)
	return c
}

func (t *tool) stopLocation(ctx context.Context, name string) (admin.Changed, error) {
	return t.client.StopLocation(ctx, geo.Location(name))
}

func (t *tool) startLocation(ctx context.Context, name string) (admin.Changed, error) {
	return t.client.StartLocation(ctx, geo.Location(name))
}

// switchCommand acts on the node or location that its one argument names.
func (t *tool) switchCommand(
	use, arg, short, example string, act func(context.Context, string) (admin.Changed, error),
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example,
		Args: exactly(arg),
		RunE: answer(t, func(ctx context.Context, args []string) (admin.Changed, error) { return act(ctx, args[0]) }, writeChanged),
	}
}

func writeChanged(w io.Writer, c admin.Changed) {
	_, _ = fmt.Fprintf(w, "%s is %s", c.Name, c.State)
	if c.Waiting != "" {
		_, _ = fmt.Fprintf(w, "; its location does not serve yet: %s", c.Waiting)
	}
	_, _ = fmt.Fprintln(w)
}

func (t *tool) linkCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "link",
		Short: "Cut, heal and delay the link between the locations (development)",
		Example: `  antipodectl link cut
  antipodectl link delay 5s
  antipodectl link heal`,
	})
	c.AddCommand(
		&cobra.Command{
			Use: "cut", Short: "Let nothing pass between the locations",
			Example: `  antipodectl link cut`,
			Args:    exactly(),
			RunE:    answer(t, func(ctx context.Context, _ []string) (admin.Link, error) { return t.client.CutLink(ctx) }, writeLink),
		},
		&cobra.Command{
			Use: "heal", Short: "End a cut or a delay",
			Example: `  antipodectl link heal`,
			Args:    exactly(),
			RunE:    answer(t, func(ctx context.Context, _ []string) (admin.Link, error) { return t.client.HealLink(ctx) }, writeLink),
		},
		&cobra.Command{
			Use: "delay DURATION", Short: "Hold back all that passes between the locations; ends a cut",
			Example: `  antipodectl link delay 5s
  antipodectl link delay 250ms`,
			Args: exactly("DURATION"),
			RunE: answer(t, func(ctx context.Context, args []string) (admin.Link, error) {
				d, err := time.ParseDuration(args[0])
				if err != nil || d <= 0 {
					return admin.Link{}, command.Wrong(fmt.Errorf("%q is no delay: give one such as 5s or 250ms", args[0]))
				}
				return t.client.DelayLink(ctx, d)
			}, writeLink),
		},
	)
	return c
}

func writeLink(w io.Writer, l admin.Link) { _, _ = fmt.Fprintf(w, "link is %s\n", link(l)) }
