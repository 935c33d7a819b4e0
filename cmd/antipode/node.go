package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"antipode/internal/clock"
	"antipode/server/config"
	"antipode/server/gateway"
	"antipode/server/node"
	"antipode/server/progress"
)

// processFlags are those of commands that run one process from a file.
type processFlags struct {
	config   string
	logLevel string
}

func (f *processFlags) register(cmd *cobra.Command, file string) {
	cmd.Flags().StringVar(&f.config, "config", "", "path of "+file)
	cmd.Flags().StringVar(&f.logLevel, "log-level", "warn", "debug, info, warn or error")
	_ = cmd.MarkFlagRequired("config") // Fails for a flag that does not exist.
}

// logger writes to standard error from the level on.
func logger(level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %s: want debug, info, warn or error", level)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: l})), nil
}

// begin reads the file of a process, and writes what should be known of it to the log.
func begin[T any](f processFlags, load func(path string) (T, config.Problems, error)) (c T, log *slog.Logger, err error) {
	if log, err = logger(f.logLevel); err != nil {
		return c, nil, err
	}
	c, problems, err := load(f.config)
	if err != nil {
		return c, nil, fmt.Errorf("%s: %w", f.config, err)
	}
	for _, p := range problems {
		log.Warn("configuration", "file", f.config, "problem", p.String())
	}
	return c, log, nil
}

func nodeCommand() *cobra.Command {
	var f processFlags
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Run one node of a location",
		Long: "Runs the node that a node.yaml describes, until SIGTERM or SIGINT: then it drains requests and stops.\n" +
			"docs/node.md has every field; `antipode config check` says what is wrong with a file.",
		Example: `  antipode node --config /etc/antipode/node.yaml`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runNode(cmd.OutOrStdout(), f) },
	}
	f.register(cmd, "node.yaml")
	return cmd
}

func runNode(out io.Writer, f processFlags) error {
	c, log, err := begin(f, config.Load)
	if err != nil {
		return err
	}
	tuneRuntime()
	folder, err := openFolder(c.Data)
	if err != nil {
		return err
	}
	ctx := untilSignal(out)
	n, err := node.Open(node.Options{Config: c, Warnings: c.DomainWarnings(), Clock: clock.System{}, Logger: log})
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
		err = nil // Stopped while it was still starting.
	}
	return errors.Join(err, n.Close(), folder.Close())
}

func gatewayCommand() *cobra.Command {
	var f processFlags
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Run the gateway of all locations",
		Long: "Hands each request to a node of the location that has the account, and an operator's orders to the nodes\n" +
			"they are for. It keeps nothing: run as many as you like.",
		Example: `  antipode gateway --config /etc/antipode/gateway.yaml`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runGateway(cmd.OutOrStdout(), f) },
	}
	f.register(cmd, "gateway.yaml")
	return cmd
}

func runGateway(out io.Writer, f processFlags) error {
	c, log, err := begin(f, config.LoadGateway)
	if err != nil {
		return err
	}
	ctx := untilSignal(out)
	d, err := gateway.Open(gateway.Options{Config: c, Clock: clock.System{}, Logger: log})
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(out, "The gateway is open; admin port %s.\n", c.Listen.Admin); err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, d.Close())
}
