package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"antipode/internal/clock"
	"antipode/server/config"
	"antipode/server/witness"
)

func witnessCommand() *cobra.Command {
	var f processFlags
	cmd := &cobra.Command{
		Use:   "witness",
		Short: "Run the witness of two locations at a third place",
		Long: "Keeps one lease for each location, and the claims of promotions. A location whose lease has ended acknowledges\n" +
			"no writes of accounts that have a copy; a promotion waits until the other location's has. Run one, at a place\n" +
			"that fails with neither location.",
		Example: `  antipode witness --config /etc/antipode/witness.yaml`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runWitness(cmd.OutOrStdout(), f) },
	}
	f.register(cmd, "witness.yaml")
	return cmd
}

func runWitness(out io.Writer, f processFlags) error {
	c, log, err := load(&f, config.LoadWitness)
	if err != nil {
		return err
	}
	folder, err := openFolder(c.Data, dataField)
	if err != nil {
		return err
	}
	ctx := untilSignal(out, stopMax)
	w, err := witness.Open(witness.Options{Config: c, Clock: clock.System{}, Logger: log})
	if err != nil {
		return errors.Join(err, folder.Close())
	}
	if _, err = fmt.Fprintf(out, "The witness runs; port %s; metrics at %s.\n", c.Listen, c.Metrics); err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, w.Close(), folder.Close())
}
