package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"antipode/internal/clock"
	"antipode/server/config"
	"antipode/server/node"
	"antipode/server/progress"
)

func nodeCommand() *cobra.Command {
	var f processFlags
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Run one node of a location",
		Long: "Runs the node that a node.yaml describes. SIGTERM or SIGINT has other nodes lead what it leads, drains\n" +
			"requests within drain.timeout, and stops it; once more stops it at once.\n" +
			"docs/configuration.md has every field; `antipode config check` lists the problems of a file.",
		Example: `  antipode node --config /etc/antipode/node.yaml`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runNode(cmd.OutOrStdout(), f) },
	}
	f.register(cmd, "node.yaml")
	return cmd
}

func runNode(out io.Writer, f processFlags) error {
	c, log, err := load(&f, config.Load)
	if err != nil {
		return err
	}
	tuneNode()
	folder, err := openFolder(c.Data, dataField)
	if err != nil {
		return err
	}
	ctx := untilSignal(out, c.Drain.Timeout.Duration()+stopMax)
	n, err := node.Open(node.Options{Config: c, Version: version, Warnings: c.DomainWarnings(), Clock: nodeClock(c), Logger: log})
	if err != nil {
		return errors.Join(err, folder.Close())
	}
	say := func(what string, lasted time.Duration) {
		log.Warn("the node does not serve yet", "node", c.Name, "waiting", what, "since_start", lasted.Round(time.Second))
	}
	err = progress.During(ctx, clock.System{}, n.Waiting, say, func() error {
		if err := n.Start(ctx); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "Node %s of %s runs; admin port %s, data in %s.\n", c.Name, c.Location, c.Listen.Admin, c.Data)
		if err != nil {
			return err
		}
		return n.AwaitServing(ctx)
	})
	if err == nil {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		drain(out, n.Drain)
		err = nil // Stopped while it was still starting.
	}
	return errors.Join(err, n.Close(), folder.Close())
}
