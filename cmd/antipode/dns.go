package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"antipode/internal/clock"
	"antipode/server/config"
	"antipode/server/nameserver"
)

func dnsCommand() *cobra.Command {
	var f processFlags
	cmd := &cobra.Command{
		Use:   "dns",
		Short: "Run a name server for the names of accounts",
		Long: "Answers ACCOUNT.SERVICE.ZONE and ACCOUNT-secondary.SERVICE.ZONE, over UDP and TCP, with the location that the\n" +
			"account is served from, as the stamps of both locations know it: the higher epoch wins. It asks them twice a\n" +
			"second, answers on while they are away, also after a restart, and never goes back to a lower epoch. It can push\n" +
			"the same records to another server (RFC 2136, TSIG). Run as many as you like, each with its own folder.\n" +
			"docs/dns.md has the names, the file and how to look.",
		Example: `  antipode dns --config /etc/antipode/dns.yaml
  antipode config check --dns /etc/antipode/dns.yaml
  dig @ns1.storage.example pictures.blob.storage.example
  dig @ns1.storage.example +short TXT _epoch.pictures.blob.storage.example`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDNS(cmd.OutOrStdout(), f) },
	}
	f.register(cmd, "dns.yaml")
	return cmd
}

func runDNS(out io.Writer, f processFlags) error {
	c, log, err := load(&f, config.LoadDNS)
	if err != nil {
		return err
	}
	if err := makeFolder(c.Data); err != nil {
		return fmt.Errorf("cannot make the data folder %s: %w", c.Data, err)
	}
	ctx := untilSignal(out, stopMax)
	p, err := nameserver.Open(nameserver.ProcessOptions{Config: c, Clock: clock.System{}, Logger: log})
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(out, "The name server of %s runs at %s; metrics at %s.\n", c.Zone, p.Addr(), c.Listen.Metrics); err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, p.Close())
}
