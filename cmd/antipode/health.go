package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/command"
)

// healthTimeout bounds a check: less than what a supervisor waits for one.
const healthTimeout = 4 * time.Second

// healthCommand is for images without a shell or curl: the check of a container, and the probe of a pod.
func healthCommand() *cobra.Command {
	var inSync, variable string
	cmd := &cobra.Command{
		Use:   "health URL",
		Short: "Check a running process: exit code 0 if it is healthy, else 1",
		Long: "Asks a process for /healthz at the URL of its admin port, of the metrics port for antipode dns: it lives.\n" +
			"With --in-sync also whether the leader of each range counts that node's replica in sync: until then no\n" +
			"other node of the location may be stopped. A node whose location has no leader is not in sync.",
		Example: `  antipode health http://127.0.0.1:10080
  antipode health --in-sync north-1 http://127.0.0.1:10080`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if variable != "" {
				if inSync = os.Getenv(variable); inSync == "" {
					return command.Wrong(fmt.Errorf("--in-sync-env: the environment has no %s", variable))
				}
			}
			return checkHealth(cmd.Context(), args[0], inSync)
		},
	}
	cmd.Flags().StringVar(&inSync, "in-sync", "", "`node` that must be in sync, such as north-1")
	cmd.Flags().StringVar(&variable, "in-sync-env", "", "`variable` of the environment with that node: probes of pods expand none")
	cmd.MarkFlagsMutuallyExclusive("in-sync", "in-sync-env")
	return cmd
}

// checkHealth returns nil if the process at base lives and, where a node is named, that node is in sync.
func checkHealth(ctx context.Context, base, inSync string) error {
	h := &http.Client{Timeout: healthTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	if err := lives(ctx, h, base); err != nil || inSync == "" {
		return err
	}
	client, err := admin.New(base, h)
	if err != nil {
		return err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	return nodeInSync(status, inSync)
}

// lives reports whether a process answers.
func lives(ctx context.Context, h *http.Client, base string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", nil)
	if err != nil {
		return err
	}
	answer, err := h.Do(r)
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", base, err)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<10))
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s/healthz answers %s", base, answer.Status)
	}
	return err
}

// nodeInSync returns nil if each range of the node's location has a leader and each leader counts the node's replica,
// if it has one, in sync. A node without any replica is no node of the status.
func nodeInSync(s admin.Status, node string) error {
	name, _, err := admin.ParseNodeName(node)
	if err != nil {
		return fmt.Errorf("--in-sync: %w", err)
	}
	found := false
	for _, l := range s.Locations {
		if l.Name != name {
			continue
		}
		for _, r := range l.Ranges {
			if r.LeaderView == nil {
				return fmt.Errorf("the %s range %d of %s has no leader", r.Service, r.Range, name)
			}
			for _, at := range r.Standings {
				if at.Node == node && !at.InSync {
					return fmt.Errorf("%s is not in sync in the %s range %d", node, r.Service, r.Range)
				}
				found = found || at.Node == node
			}
		}
	}
	if !found {
		return fmt.Errorf("no leader counts a replica of %s", node)
	}
	return nil
}
