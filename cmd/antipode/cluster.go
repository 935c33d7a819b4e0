package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	wire "antipode/client/admin"
	"antipode/client/command"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/server/cluster"
	"antipode/server/dev"
	"antipode/server/progress"
)

type clusterFlags struct {
	dir      string
	portBase int
	accounts string
	witness  bool
	dnsZone  string
}

// as takes what was not given from the cluster that is in the folder: a start again is of the same one.
func (f *clusterFlags) as(given func(flag string) bool) (was cluster.Options, err error) {
	was, err = cluster.Existing(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return was, nil
	}
	if !given("port-base") {
		f.portBase = was.PortBase
	}
	if !given("witness") {
		f.witness = was.Witness
	}
	if !given("dns-zone") {
		f.dnsZone = string(was.DNSZone)
	}
	return was, err
}

func (f clusterFlags) options() (cluster.Options, error) {
	if f.portBase < 1 || f.portBase > cluster.PortBaseMax {
		return cluster.Options{}, command.Wrong(fmt.Errorf("--port-base %d: want 1 to %d, so that the second location's ports fit", f.portBase, cluster.PortBaseMax))
	}
	o := cluster.Options{Dir: f.dir, PortBase: f.portBase, Witness: f.witness}
	if f.dnsZone != "" {
		zone, err := geo.ParseZone(f.dnsZone)
		if err != nil {
			return o, command.Wrong(fmt.Errorf("--dns-zone %q: %w", f.dnsZone, err))
		}
		o.DNSZone = zone
	}
	var err error
	o.Binary, err = os.Executable()
	return o, err
}

func clusterCommand() *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Run a whole deployment of node processes on this machine",
		Long: "Two locations of three node processes each, a gateway and a name server, on loopback, with the ports of `antipode dev`.\n" +
			"Certificates, configurations, logs and data are in folders below --dir. A start again is with the ports, the witness\n" +
			"and the zone of before, unless others are given; it writes all config.yaml again.",
	}
	start := &cobra.Command{
		Use:   "start",
		Short: "Start the processes that do not run",
		Example: `  antipode cluster start
  antipode cluster start --dir /tmp/cluster --port-base 20000
  antipode cluster start --witness`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			was, err := f.as(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			return startCluster(cmd.OutOrStdout(), f, was)
		},
	}
	start.Flags().IntVar(&f.portBase, "port-base", portBaseDefault, "first port of the gateway; locations at N+1000 and N+2000, their nodes 100 apart")
	start.Flags().StringVar(&f.accounts, "accounts", os.Getenv(accountsEnv), accountsUsage)
	start.Flags().BoolVar(&f.witness, "witness", false, "run a witness too: a location acknowledges writes under its lease alone, and promotions wait for it")
	start.Flags().StringVar(&f.dnsZone, "dns-zone", devZone, "zone of the name server on port N+53, UDP and TCP, and of accounts' names; empty: no name server")
	stop := &cobra.Command{
		Use:     "stop",
		Short:   "Stop all of them; what was acknowledged is kept",
		Example: `  antipode cluster stop`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cluster.Stop(context.Background(), cluster.Options{Dir: f.dir})
		},
	}
	status := clusterStatusCommand(&f)
	for _, c := range []*cobra.Command{start, status, stop} {
		c.Flags().StringVar(&f.dir, "dir", "./antipode-cluster", "folder of everything")
	}
	return group(cmd, start, status, stop)
}

// witnessChanged is a line about a witness that a cluster had, or has from now on; "" for none.
func witnessChanged(was, now bool) string {
	switch {
	case was && !now:
		return "Without the witness of before: writes need no lease, and before a promotion only you make sure that the other location is down."
	case !was && now:
		return "With a witness from now on: the nodes wait for its lease before they acknowledge."
	}
	return ""
}

func startCluster(out io.Writer, f clusterFlags, was cluster.Options) error {
	list, err := parseAccounts(f.accounts)
	if err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	warnEphemeral(os.Stderr, f.portBase, cluster.PortBaseMax, readEphemeral())
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if _, err := fmt.Fprintf(out, "Starting %s and %s in %s.\n", dev.North, dev.South, f.dir); err != nil {
		return err
	}
	if text := witnessChanged(was.Witness, f.witness); text != "" && was.Dir != "" {
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	var waits atomic.Pointer[string]
	o.OnWait = func(what string) { waits.Store(&what) }
	waiting := func(context.Context) string {
		if what := waits.Load(); what != nil {
			return *what
		}
		return "the processes start"
	}
	err = progress.During(ctx, clock.System{}, waiting, sayTo(out), func() error { return prepareCluster(ctx, out, o, f, list) })
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: the processes that were started go on; antipode cluster stop --dir %s ends them", f.dir)
	}
	return err
}

// prepareCluster starts the processes, makes the accounts, waits until their statistics are live,
// and prints how to use them.
func prepareCluster(ctx context.Context, out io.Writer, o cluster.Options, f clusterFlags, list []account) error {
	if err := makeFolder(o.Dir); err != nil {
		return err
	}
	if err := cluster.Start(ctx, o); err != nil {
		return err
	}
	var first wire.AccountInfo
	for i, a := range list {
		encode := base64.StdEncoding.EncodeToString
		info, err := cluster.EnsureAccount(ctx, o, wire.NewAccount{Name: a.name, Location: dev.North, Key1: encode(a.key1), Key2: encode(a.key2)})
		if ended := (*cluster.Ended)(nil); errors.As(err, &ended) {
			return ended
		}
		if err != nil {
			return notMade(a.name, err)
		}
		if i == 0 {
			first = info
		}
	}
	if err := cluster.AwaitReady(ctx, o); err != nil {
		return err
	}
	ctl := ctlFor(os.Args[0], o.Gateway().Admin())
	if err := cluster.FinalizeNew(ctx, o); err != nil {
		_, _ = fmt.Fprintln(out, notAtLevel(ctl, err))
	}
	names := ""
	if o.DNSZone != "" {
		names = fmt.Sprintf("\nNames of accounts: zone %s at %s, such as\n  %s\n", o.DNSZone, o.Gateway().DNS(), digFor(o.Gateway().DNS(), list[0].name, string(o.DNSZone)))
	}
	_, err := fmt.Fprintf(out, `Antipode runs: %s (primary) and %s (secondary), three node processes each, in %s.

Connection string:
  %s
%s
Next:
  %s status --watch
      how far the secondary is
  %s cluster status --dir %[3]s
      which processes run
  %[7]s cluster stop --dir %[3]s
      stop all of it
`, dev.North, dev.South, f.dir, list[0].connectionString(ctl, first), names, ctl, os.Args[0])
	return err
}
