package main

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"antipode/internal/clock"
	"antipode/server/config"
)

// processFlags are the flags of commands that run one process from a configuration file.
type processFlags struct {
	config   string
	logLevel logLevel
}

func (f *processFlags) register(cmd *cobra.Command, file string) {
	cmd.Flags().StringVar(&f.config, "config", "", "path of "+file)
	f.logLevel.register(cmd)
	required(cmd, "config")
}

// load reads the configuration of a process, and logs its warnings.
func load[T any](f *processFlags, read func(path string) (T, config.Problems, error)) (T, *slog.Logger, error) {
	log := f.logLevel.logger()
	c, problems, err := read(f.config)
	if err != nil {
		return c, nil, fmt.Errorf("%s: %w", f.config, err)
	}
	for _, p := range problems {
		log.Warn("configuration", "file", f.config, "problem", p.String())
	}
	return c, log, nil
}

// drain drains a process, and says how long that took and what was left.
func drain(out io.Writer, f func() (left []string)) {
	began := clock.System{}.Mono()
	left := f()
	_, _ = fmt.Fprintf(out, "Drained in %s.\n", (clock.System{}.Mono() - began).Round(time.Millisecond))
	for _, what := range left {
		_, _ = fmt.Fprintf(out, "Left: %s.\n", what)
	}
}
