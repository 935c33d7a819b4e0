package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	wire "antipode/client/admin"
	"antipode/internal/cluster"
	"antipode/internal/dev"
)

type clusterFlags struct {
	dir      string
	portBase int
	accounts string
}

func (f clusterFlags) options() (cluster.Options, error) {
	if f.portBase < 1 || f.portBase > cluster.PortBaseMax {
		return cluster.Options{}, fmt.Errorf("--port-base %d: want 1 to %d, so that the second location's ports fit", f.portBase, cluster.PortBaseMax)
	}
	binary, err := os.Executable()
	return cluster.Options{Dir: f.dir, PortBase: f.portBase, Binary: binary}, err
}

func clusterCommand() *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Run a whole deployment of node processes on this machine",
		Long: "Two locations of three node processes each, and the front door, on loopback, with the ports of `antipode dev`.\n" +
			"Certificates, configurations, logs and data are in folders below --dir.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	start := &cobra.Command{
		Use:   "start",
		Short: "Start the processes that do not run",
		Example: `  antipode cluster start
  antipode cluster start --dir /tmp/cluster --port-base 20000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return startCluster(cmd.Context(), cmd.OutOrStdout(), f) },
	}
	start.Flags().IntVar(&f.portBase, "port-base", 10000, "first port of the front door; locations at N+1000 and N+2000, their nodes 100 apart")
	start.Flags().StringVar(&f.accounts, "accounts", os.Getenv(accountsEnv), "accounts as name:key,name:key (also "+accountsEnv+"); default the development account")
	stop := &cobra.Command{
		Use:     "stop",
		Short:   "Stop all of them; what was acknowledged is kept",
		Example: `  antipode cluster stop`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cluster.Stop(context.Background(), cluster.Options{Dir: f.dir})
		},
	}
	for _, c := range []*cobra.Command{start, stop} {
		c.Flags().StringVar(&f.dir, "dir", "./antipode-cluster", "folder of everything")
	}
	cmd.AddCommand(start, stop)
	return cmd
}

func startCluster(ctx context.Context, out io.Writer, f clusterFlags) error {
	list, err := parseAccounts(f.accounts)
	if err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	if err := cluster.Start(ctx, o); err != nil {
		return err
	}
	for _, a := range list {
		key := base64.StdEncoding.EncodeToString(a.key)
		if err := cluster.EnsureAccount(ctx, o, wire.NewAccount{Name: a.name, Location: dev.North, Key1: key, Key2: key}); err != nil {
			return err
		}
	}
	if err := cluster.AwaitReady(ctx, o); err != nil {
		return err
	}
	info, err := o.Admin().Account(ctx, list[0].name)
	if err != nil {
		return err
	}
	keys := wire.Keys{Name: list[0].name, Key1: base64.StdEncoding.EncodeToString(list[0].key)}
	_, err = fmt.Fprintf(out, `Antipode runs: %s (primary) and %s (secondary), three node processes each, in %s.

Connection string:
  %s

Next:
  antipodectl status --watch     how far the secondary is
  antipode cluster stop          stop all of it
`, dev.North, dev.South, f.dir, wire.ConnectionString(info, keys))
	return err
}
