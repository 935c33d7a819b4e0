package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	wire "antipode/client/admin"
	"antipode/client/command"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/server/config"
	"antipode/server/dev"
	"antipode/server/location"
	"antipode/server/progress"
)

// procsPerCPU is how many goroutines may run per processor: a goroutine that waits for an fsync
// keeps its slot until the runtime takes it away, and six nodes fsync.
const procsPerCPU = 3

// gcPercent lets the heap grow further between collections than Go's default. The live heap is
// small compared with what requests allocate, so collections cost more than memory.
const gcPercent = 400

// portBaseDefault is that of --port-base: its blob, queue and table ports are those of UseDevelopmentStorage=true, and its
// admin port is the one that antipodectl tries by itself.
const portBaseDefault = 10000

type devFlags struct {
	data     string
	host     string
	portBase int
	zones    []string
	dnsZone  string
	// hosts are those of --data-host, and adminHosts those of --admin-host.
	hosts, adminHosts []string
	accounts          string
	logLevel          logLevel
	quiet             bool
	scrub             time.Duration
	nameRest          time.Duration
	outbox            location.OutboxBudget
	notices           noticesFlags
	// accountsShown by their names in metrics.
	accountsShown int
}

func devCommand() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run two locations, three nodes each, on this machine",
		Example: `  antipode dev
  antipode dev --data /tmp/antipode --port-base 20000
  antipode dev --accounts "photos:BASE64KEY,mail:BASE64KEY1:BASE64KEY2"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDev(cmd.OutOrStdout(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "./antipode-data", "data folder")
	flags.StringVar(&f.host, "host", "127.0.0.1", "address to listen on; one that is not loopback prints a warning")
	flags.IntVar(&f.portBase, "port-base", portBaseDefault, "first port: blob N, queue N+1, table N+2, DNS N+53, admin N+80; locations at N+1000 and N+2000; a base that reaches into the ports of outgoing connections prints a warning")
	flags.StringSliceVar(&f.zones, "zone", []string{string(geo.LocalZone)}, "DNS zones under which accounts have host names, ACCOUNT.SERVICE.ZONE; under other names the account is in the path")
	flags.StringVar(&f.dnsZone, "dns-zone", devZone, "zone of the name server on port N+53, UDP and TCP; also a DNS zone of accounts, as --zone")
	flags.StringSliceVar(&f.hosts, "data-host", nil, "further names by which the data ports may be addressed, such as that of a container; requests to other names are refused, but for zones, localhost and addresses")
	flags.StringSliceVar(&f.adminHosts, "admin-host", nil, "further names by which the admin ports may be addressed; requests to other names are refused")
	flags.StringVar(&f.accounts, "accounts", os.Getenv(accountsEnv), accountsUsage)
	f.logLevel.register(cmd)
	flags.DurationVar(&f.scrub, "scrub-period", 0, "time within which all data on the disks is read and checked once; default 168h")
	flags.DurationVar(&f.nameRest, "name-rest", 0, "how long the name of a deleted table, queue or container cannot be created again; 40s in the public service")
	flags.Var(command.Flag{Bytes: &f.outbox.Bytes}, "outbox-bytes", "`size` of what each node keeps of changes, payload included, for a secondary that does not take them; default a share of the disk")
	flags.Var(command.Flag{Bytes: &f.outbox.AccountBytes}, "outbox-account-bytes", "the same `size` of each account; default no bound")
	flags.DurationVar(&f.outbox.Age, "outbox-age", 0, "how old such a change may be; default 72h")
	flags.IntVar(&f.accountsShown, "metrics-accounts", 0, "accounts that metrics show by their names, those that are worst off; all others are in one series; default 100, -1 for none")
	f.notices.register(cmd)
	flags.BoolVar(&f.quiet, "quiet", false, "print nothing but errors")
	return cmd
}

// validate returns the first flag that cannot be used. Accounts and zones are checked by their parsers.
func (f devFlags) validate() error {
	switch {
	case f.portBase < 1 || f.portBase > dev.PortBaseMax:
		return fmt.Errorf("--port-base %d: want 1 to %d, so that the second location's ports fit", f.portBase, dev.PortBaseMax)
	case f.nameRest < 0:
		return fmt.Errorf("--name-rest %s: want a span of time, or 0 for none", f.nameRest)
	case f.outbox.Age < 0:
		return fmt.Errorf("--outbox-age %s: want a span of time, or 0 for the default of 72h", f.outbox.Age)
	case max(f.outbox.Bytes, f.outbox.AccountBytes) > math.MaxInt64:
		return fmt.Errorf("--outbox-bytes %d, --outbox-account-bytes %d: want %d at most", f.outbox.Bytes, f.outbox.AccountBytes, math.MaxInt64)
	case f.accountsShown < -1 || f.accountsShown > location.MetricsAccountsMax:
		return fmt.Errorf("--metrics-accounts %d: want 1 to %d, -1 for none, or 0 for the default of 100", f.accountsShown, location.MetricsAccountsMax)
	case f.scrub < 0:
		return fmt.Errorf("--scrub-period %s: want a span of time, or 0 for the default of 168h", f.scrub)
	}
	for flag, hosts := range map[string][]string{"--admin-host": f.adminHosts, "--data-host": f.hosts} {
		for _, host := range hosts {
			if !config.ValidHost(host) {
				return fmt.Errorf("%s %q: want a name or an address, without a port", flag, host)
			}
		}
	}
	return nil
}

func runDev(out io.Writer, f devFlags) error {
	list, err := parseAccounts(f.accounts)
	if err != nil {
		return command.Wrong(err)
	}
	if err := f.validate(); err != nil {
		return command.Wrong(err)
	}
	log := f.logLevel.logger()
	if f.quiet {
		out = io.Discard
	}
	receiver, err := f.notices.options(os.Getenv)
	if err != nil {
		return err
	}
	zones, dnsZone, err := f.parseZones()
	if err != nil {
		return err
	}
	tuneRuntime()
	warnOpenHost(os.Stderr, f.host, list)
	warnEphemeral(os.Stderr, f.portBase, dev.PortBaseMax, readEphemeral())
	folder, err := openFolder(f.data, dataFlag)
	if err != nil {
		return err
	}
	ctx := untilSignal(out, stopMax)
	if _, err := fmt.Fprintf(out, "Starting %s and %s in %s.\n", dev.North, dev.South, f.data); err != nil {
		return errors.Join(err, folder.Close())
	}
	c, err := dev.Open(dev.ClusterOptions{Dir: f.data, Version: version, Host: f.host, PortBase: f.portBase, Zones: zones, DNSZone: dnsZone, Hosts: f.hosts, AdminHosts: f.adminHosts, Logger: log, ScrubPeriod: f.scrub, NameRest: f.nameRest, Outbox: f.outbox, MetricsAccounts: f.accountsShown, Notices: receiver})
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		err = fmt.Errorf("%w with --host", err)
	}
	if err != nil {
		return errors.Join(err, folder.Close())
	}
	err = progress.During(ctx, clock.System{}, c.Waiting, sayTo(out), func() error { return prepare(ctx, out, c, f, list) })
	if err == nil {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		err = nil // Stopped while it was still starting.
	}
	return errors.Join(err, c.Close(), folder.Close())
}

// sayTo writes each report of a start on a line.
func sayTo(out io.Writer) func(what string, lasted time.Duration) {
	return func(what string, lasted time.Duration) { _, _ = fmt.Fprintln(out, progress.Line(what, lasted)) }
}

// tuneRuntime sets the runtime's parameters that the environment does not set.
func tuneRuntime() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(procsPerCPU * runtime.GOMAXPROCS(0))
	}
	if os.Getenv("MALLOC_ARENA_MAX") == "" {
		boundArenas()
	}
}

// stopMax is how long the process may take to stop. It is above the drains of both locations'
// listeners, which follow each other.
const stopMax = time.Minute

// untilSignal returns a context that ends with the first SIGINT or SIGTERM. A second signal, or
// within, ends the process at once, which is safe: acknowledged writes are in the logs.
func untilSignal(out io.Writer, within time.Duration) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		untilExit(out, within, signals, cancel)
		os.Exit(1)
	}()
	return ctx
}

// untilExit stops the process with the first signal, and returns when it has to exit at once. It waits for no output: a
// write that nobody reads does not return.
func untilExit(out io.Writer, within time.Duration, signals <-chan os.Signal, stop func()) {
	<-signals
	stop()
	var said sync.WaitGroup
	said.Go(func() { _, _ = fmt.Fprintln(out, "Stopping: draining requests. Once more to exit at once.") })
	select {
	case <-signals:
	case <-time.After(within):
		slowly, cancel := context.WithTimeout(context.Background(), time.Second)
		go func() {
			said.Wait()
			_, _ = fmt.Fprintf(out, "Not stopped after %s: exits.\n", within)
			cancel()
		}()
		<-slowly.Done()
	}
}

// prepare runs the locations, makes the accounts, waits until their statistics are live, and
// prints how to use them. It fails only if ctx ends or with errors that waiting does not help.
func prepare(ctx context.Context, out io.Writer, c *dev.Cluster, f devFlags, list []account) error {
	if err := c.Start(ctx); err != nil {
		return err
	}
	for _, a := range list {
		if err := c.EnsureAccount(ctx, dev.North, a.name, a.key1, a.key2); err != nil {
			return fmt.Errorf("--accounts: %w", err)
		}
	}
	ctl := ctlFor(os.Args[0], dev.Ports{Host: f.host, Base: f.portBase}.Admin())
	var first wire.AccountInfo
	for i, a := range list {
		info, err := c.WaitLive(ctx, a.name)
		if err != nil {
			return err
		}
		if i == 0 {
			first = info
		}
	}
	if err := c.FinalizeNew(ctx); err != nil {
		_, _ = fmt.Fprintln(out, notAtLevel(ctl, err))
	}
	_, err := fmt.Fprintf(out, `Antipode runs: %[1]s (primary) and %[2]s (secondary), three nodes each, data in %[3]s.

Connection string:
  %[4]s

Names of accounts: zone %[5]s at %[6]s, such as
  %[8]s

Next:
  %[7]s status --watch     how far the secondary is
  %[7]s link cut           cut the link: Last Sync Time stands still
  %[7]s link heal
  docs/quickstart.md has a tour of five minutes. Ctrl-C stops.
`, dev.North, dev.South, f.data, list[0].connectionString(ctl, first), f.dnsZone, c.NameServer(), ctl, digFor(c.NameServer(), list[0].name, f.dnsZone))
	return err
}

// notAtLevel is the line about locations that were just made and could not be raised to the feature level of this program.
func notAtLevel(ctl string, err error) string {
	return fmt.Sprintf("WARNING: the new locations are at an earlier feature level: %v; try: %s cluster finalize", err, ctl)
}

// devZone is the zone of the name server: nobody else has names under it (RFC 6761).
const devZone = "antipode.test"

// digFor returns the command that shows where the blobs of an account are served.
func digFor(server string, account geo.Account, zone string) string {
	host, port, _ := net.SplitHostPort(server) // Ours.
	return fmt.Sprintf("dig @%s -p %s +short %s.blob.%s", host, port, account, zone)
}

// parseZones reads --zone and --dns-zone, which is one of the zones.
func (f devFlags) parseZones() (zones []geo.Zone, dns geo.Zone, err error) {
	if zones, err = parseZones(f.zones); err != nil {
		return nil, "", err
	}
	if dns, err = geo.ParseZone(f.dnsZone); err != nil {
		return nil, "", command.Wrong(fmt.Errorf("--dns-zone %q: %w", f.dnsZone, err))
	}
	if !slices.Contains(zones, dns) {
		zones = append(zones, dns)
	}
	return zones, dns, nil
}

// parseZones reads --zone.
func parseZones(texts []string) ([]geo.Zone, error) {
	var out []geo.Zone
	for _, text := range texts {
		zone, err := geo.ParseZone(text)
		if err != nil {
			return nil, command.Wrong(fmt.Errorf("--zone %q: %w", text, err))
		}
		out = append(out, zone)
	}
	return out, nil
}

// warnOpenHost warns if everyone who reaches this machine can use the admin ports, and the
// accounts whose key is public.
func warnOpenHost(w io.Writer, host string, list []account) {
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() {
		return
	}
	_, _ = fmt.Fprintf(w, "WARNING: the admin ports listen on %s, too: everybody who reaches this machine sees status and metrics,\n"+
		"WARNING: and the admin token, which shows keys and stops nodes, travels unencrypted. Keep others out of these ports.\n", host)
	for _, a := range list {
		if a.public() {
			_, _ = fmt.Fprintf(w, "WARNING: listening on %s with the well-known development key of %s:\n"+
				"WARNING: everybody who reaches this machine can read and write everything. Use --accounts.\n", host, a.name)
		}
	}
}
