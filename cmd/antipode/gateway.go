package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"antipode/internal/clock"
	"antipode/server/config"
	"antipode/server/gateway"
)

func gatewayCommand() *cobra.Command {
	var f processFlags
	cmd := &cobra.Command{
		Use: "gateway", SuggestFor: formerGatewayCommands(),
		Short: "Run a gateway to all locations",
		Long: "Forwards each request to a node of the location that has the account, and operations to the nodes they\n" +
			"are for. It keeps no state: run as many as you like. SIGTERM or SIGINT drains requests within drain.timeout, and\n" +
			"stops it; once more stops it at once.",
		Example: `  antipode gateway --config /etc/antipode/gateway.yaml`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runGateway(cmd.OutOrStdout(), f) },
	}
	f.register(cmd, "gateway.yaml")
	return cmd
}

func runGateway(out io.Writer, f processFlags) error {
	c, log, err := load(&f, config.LoadGateway)
	if err != nil {
		return err
	}
	ctx := untilSignal(out, c.Drain.Timeout.Duration()+stopMax)
	d, err := gateway.Open(gateway.Options{Config: c, Clock: clock.System{}, Logger: log})
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(out, "The gateway runs; admin port %s.\n", c.Listen.Admin); err == nil {
		<-ctx.Done()
		drain(out, d.Drain)
	}
	return errors.Join(err, d.Close())
}
