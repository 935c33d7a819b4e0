package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/command"
)

// intervalLeast keeps a watch from being a load.
const intervalLeast = 100 * time.Millisecond

func (t *tool) statusCommand() *cobra.Command {
	var watch bool
	var interval time.Duration
	var view statusView
	c := &cobra.Command{
		Use:   "status",
		Short: "Show locations, nodes, ranges, backlog and Last Sync Time",
		Long: `status shows the health of antipodectl check, a row for each location, the nodes and ranges
that are not well, and how far the secondaries of the accounts are that are worst off.
--all shows every node, each range with its leader, in-sync replicas and backlog, and every
account with its services; --account NAME that account with them.

Last Sync Time: every write committed at or before it can be read at the secondary.
Its lag is its age. Both are "unknown" where they cannot be computed.

With --output json it prints GET /v1/status unchanged (docs/admin.md).`,
		Example: `  antipodectl status
  antipodectl status --all
  antipodectl status --account pictures
  antipodectl status --watch --interval 500ms
  antipodectl status --output json | jq '.accounts[].services'`,
		Args: exactly(),
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			switch {
			case watch && interval < intervalLeast:
				return command.Wrong(fmt.Errorf("--interval is at least %s, not %s", intervalLeast, interval))
			case watch:
				return t.watchStatus(cmd.Context(), interval, view)
			case cmd.Flags().Changed("interval"):
				return command.Wrong(errors.New("--interval goes with --watch"))
			}
			b, err := t.status(cmd.Context(), view)
			if err != nil {
				return err
			}
			return t.write(b)
		}),
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "show it again and again until interrupted")
	c.Flags().BoolVarP(&view.all, "all", "a", false, "show every node, range and account")
	c.Flags().StringVar((*string)(&view.account), "account", "", "show `NAME` alone of the accounts")
	c.Flags().DurationVar(&interval, "interval", time.Second, "time between two looks of --watch")
	return c
}

// status returns what the status command prints.
func (t *tool) status(ctx context.Context, view statusView) ([]byte, error) {
	b, err := t.client.StatusJSON(ctx)
	if err != nil || t.output == "json" {
		return b, err
	}
	var s admin.Status
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("%s answered what is no status: is it an admin port? (%w)", t.client.URL(), err)
	}
	if s.Version != admin.StatusVersion {
		return nil, fmt.Errorf("%s speaks status version %d and this antipodectl %d: use the one of the server's release",
			t.client.URL(), s.Version, admin.StatusVersion)
	}
	if err := knows(s, view.account); err != nil {
		return nil, err
	}
	var out strings.Builder
	writeStatus(&out, s, view)
	return t.paint(out.String()), nil
}

// watchStatus shows the status until ctx ends. A server that cannot be reached at
// first is a failure; one that goes away later may come back.
func (t *tool) watchStatus(ctx context.Context, interval time.Duration, view statusView) error {
	clearScreen := t.output == "text" && isTerminal(t.out)
	for shown := 0; ; {
		b, err := t.status(ctx, view)
		switch {
		case ctx.Err() != nil:
			return nil // The user had enough.
		case err != nil && shown == 0:
			return err
		case err != nil:
			t.complain(err)
		default:
			switch {
			case clearScreen:
				b = append([]byte("\x1b[H\x1b[2J"), b...)
			case shown > 0 && t.output == "text":
				b = append([]byte("\n"), b...)
			}
			if err := t.write(b); err != nil {
				return err
			}
			shown++
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.after(interval):
		}
	}
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
