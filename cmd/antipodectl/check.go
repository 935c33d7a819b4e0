package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
)

// checked is what check prints as JSON.
type checked struct {
	// Health is "well", "warning" or "critical".
	Health   string          `json:"health"`
	Findings []check.Finding `json:"findings"`
}

func (t *tool) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Say what is wrong, worst first, and what to do",
		Long: `check has one line for each cause of trouble, worst first, and under it the next command, or the
page of docs/runbooks. Ask a gateway, which looks at both locations: the port of a node, or of a
location, shows that location alone, and the last line names what was not looked at.

critical  clients are refused, or replication stands until somebody acts: to a location, as over
          a link that is cut or behind a full disk, or of an account. A failover would lose what
          is written meanwhile
warning   one more fault could make it so, or it may end by itself, as an election does

Exit codes: 0 all is well, 1 something is critical, or it could not be found out, 3 there are
warnings alone.`,
		Example: `  antipodectl check
  antipodectl check --output json | jq -r '.findings[] | .severity + " " + .what'`,
		Args: exactly(),
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			s, err := t.client.Status(cmd.Context())
			if err != nil {
				return err
			}
			out := checked{Health: "well", Findings: check.Status(s)}
			worst := check.Worst(out.Findings)
			if worst != "" {
				out.Health = string(worst)
			}
			if err := t.print(out, func(w io.Writer) { writeChecked(w, s, out) }); err != nil {
				return err
			}
			switch worst {
			case check.Critical:
				return errors.New("something is critical")
			case check.Warning:
				return &command.Error{Code: command.Partial, Err: errors.New("there are warnings")}
			}
			return nil
		}),
	}
}

func writeChecked(w io.Writer, s admin.Status, c checked) {
	if len(c.Findings) == 0 {
		nodes := 0
		for _, l := range s.Locations {
			nodes += len(l.Nodes)
		}
		_, _ = fmt.Fprintf(w, "all is well: %s, %s, %s\n",
			check.Count(len(s.Locations), "location"), check.Count(nodes, "node"), check.Count(len(s.Accounts), "account"))
	}
	for _, f := range c.Findings {
		_, _ = fmt.Fprintf(w, "%-8s  %s\n", strings.ToUpper(string(f.Severity)), f.What)
		if f.Next != "" {
			_, _ = fmt.Fprintf(w, "          next: %s\n", f.Next)
		}
	}
	for _, name := range check.NotShown(s) {
		_, _ = fmt.Fprintf(w, "%s is not looked at: this port does not show it; ask a gateway\n", name)
	}
}
