package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/command"
	"antipode/geo"
)

// cloneFlags are the flags of drill --clone.
type cloneFlags struct {
	tool              *tool
	clone, show, drop bool
	life              time.Duration
}

func (f *cloneFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.clone, "clone", false, "open a clone of the account at its secondary location in place of a failover")
	c.Flags().DurationVar(&f.life, "for", admin.CloneLifeDefault, "`TIME` after which the clone is deleted, 24h at most")
	c.Flags().BoolVar(&f.show, "show", false, "show the clone that is open")
	c.Flags().BoolVar(&f.drop, "drop", false, "delete the clone that is open")
}

// given reports whether the command is about a clone.
func (f *cloneFlags) given(c *cobra.Command) bool {
	return f.clone || f.show || f.drop || c.Flags().Changed("for")
}

// run opens, shows or drops the clone of an account.
func (f *cloneFlags) run(cmd *cobra.Command, name geo.Account) error {
	for _, other := range []string{
		"yes", "dry-run", "html", "duration", "within", "follow", "unplanned", "kill", "kill-command", "start-command", "rebuild",
	} {
		if cmd.Flags().Changed(other) {
			return command.Wrong(fmt.Errorf("--%s is of a drill with failovers, and --clone fails nothing over", other))
		}
	}
	switch {
	case !f.clone:
		return command.Wrong(errors.New("--for, --show and --drop go with --clone"))
	case f.show && f.drop:
		return command.Wrong(errors.New("give one of --show and --drop"))
	case (f.show || f.drop) && cmd.Flags().Changed("for"):
		return command.Wrong(errors.New("--for goes with a clone that is opened"))
	case f.life < admin.CloneLifeLeast || f.life > admin.CloneLifeMax:
		return command.Wrong(fmt.Errorf("--for is from %s to %s, not %s", admin.CloneLifeLeast, admin.CloneLifeMax, f.life))
	}
	t, ctx := f.tool, cmd.Context()
	var out admin.Clone
	var err error
	switch {
	case f.drop:
		if out, err = t.client.DropClone(ctx, name); err == nil {
			return t.print(out, func(w io.Writer) { _, _ = fmt.Fprintf(w, "the clone %s is deleted\n", out.Name) })
		}
	case f.show:
		out, err = t.client.Clone(ctx, name)
	default:
		out, err = t.client.OpenClone(ctx, name, admin.OpenClone{ForSeconds: f.life.Seconds()})
	}
	if err != nil {
		return command.Tried(err)
	}
	return t.print(out, func(w io.Writer) { writeClone(w, out) })
}

func writeClone(w io.Writer, c admin.Clone) {
	_, _ = fmt.Fprintf(w, "account    %s (keys of %s)\n", c.Name, c.Account)
	_, _ = fmt.Fprintf(w, "on         %s; opened %s in %.1fs\n", c.Node, instant(c.Opened), c.TookSeconds)
	_, _ = fmt.Fprintf(w, "deleted    %s, or by antipodectl drill %s --clone --drop\n\n", instant(c.Expires), c.Account)
	urls := map[string]string{}
	for _, e := range c.Endpoints {
		urls[e.Service] = e.URL
	}
	rows := [][]string{{"SERVICE", "HAS ALL UP TO", "ENDPOINT"}}
	for _, cut := range c.Cut {
		has := "unknown: " + cut.Reason
		if !cut.LastSyncTime.IsZero() {
			has = instant(cut.LastSyncTime)
		}
		rows = append(rows, []string{cut.Service, has, orNone(urls[cut.Service])})
	}
	table(w, rows)
}
