package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// group makes a command that only holds others. Called alone it prints its help.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = onlyCommands
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(commands...)
	return cmd
}

// onlyCommands refuses arguments, and suggests the command that may be meant: cobra itself suggests
// commands of the root only.
func onlyCommands(cmd *cobra.Command, args []string) error {
	err := cobra.NoArgs(cmd, args)
	if err == nil {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2 // As for the root.
	if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
		return fmt.Errorf("%w: did you mean %s?", err, strings.Join(names, " or "))
	}
	return err
}

// required makes flags of a command mandatory.
func required(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		_ = cmd.MarkFlagRequired(name) // Fails for a flag that does not exist.
	}
}

// form is the flag --output: text or json.
type form string

const (
	formText form = "text"
	formJSON form = "json"
)

// String implements the Value interface of package pflag.
func (f *form) String() string { return string(*f) }

// Type implements the Value interface of package pflag.
func (f *form) Type() string { return "form" }

// Set implements the Value interface of package pflag.
func (f *form) Set(s string) error {
	if form(s) != formText && form(s) != formJSON {
		return errors.New("want text or json")
	}
	*f = form(s)
	return nil
}

// logLevel is the flag --log-level: the least level that is logged.
type logLevel struct{ slog.Level }

// String implements the Value interface of package pflag.
func (l *logLevel) String() string { return strings.ToLower(l.Level.String()) }

// Type implements the Value interface of package pflag.
func (l *logLevel) Type() string { return "level" }

// Set implements the Value interface of package pflag.
func (l *logLevel) Set(s string) error {
	if l.UnmarshalText([]byte(s)) != nil {
		return errors.New("want debug, info, warn or error")
	}
	return nil
}

// register adds the flag --log-level.
func (l *logLevel) register(cmd *cobra.Command) {
	l.Level = slog.LevelWarn
	cmd.Flags().Var(l, "log-level", "debug, info, warn or error")
}

// logger logs to standard error.
func (l *logLevel) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: l.Level}))
}
