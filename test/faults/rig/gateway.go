package rig

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"antipode/geo"
	"antipode/server/cluster"
	"antipode/server/config"
	"antipode/server/dev"
	"antipode/test/devproc"
)

// SecondGateway is a gateway beside the first one: see StartSecondGateway.
const SecondGateway = "spare"

// StartSecondGateway runs another gateway with the configuration of the first one, on other ports.
func (r *Rig) StartSecondGateway() error {
	c, _, err := config.LoadGateway(filepath.Join(r.opts.Dir, Gateway, "config.yaml"))
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(c.Listen.Admin)
	if err != nil {
		return err
	}
	at := func(base int) dev.Ports { return dev.Ports{Host: host, Base: base} }
	base, err := devproc.FindPortBase(r.held, func(base int) []string {
		return []string{at(base).Admin(), at(base).Of(geo.Blob), at(base).Of(geo.Queue), at(base).Of(geo.Table)}
	})
	if err != nil {
		return err
	}
	r.second = at(base)
	c.Listen = config.GatewayListen{
		Blob: r.second.Of(geo.Blob), Queue: r.second.Of(geo.Queue), Table: r.second.Of(geo.Table), Admin: r.second.Admin(),
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	dir := filepath.Join(r.opts.Dir, SecondGateway)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	r.commands[SecondGateway] = cluster.Command{Name: SecondGateway, Args: []string{"gateway", "--config", file}}
	if err := r.Launch(SecondGateway); err != nil {
		return fmt.Errorf("second gateway: %w", err)
	}
	return nil
}
