package gateway

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"antipode/api"
	"antipode/api/admin"
	"antipode/api/protocol"
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/metrics"
	"antipode/server/config"
	"antipode/server/listen"
)

// Options configures a Gateway.
type Options struct {
	Config config.Door
	Clock  clock.Clock
	Logger *slog.Logger
}

// Gateway is the front door: it hands each request to a node of the location that has the
// account, and an operator's orders to the nodes they are for. It keeps no state.
type Gateway struct {
	o       Options
	started time.Time
	nodes   map[geo.Location][]member
	http    *http.Client
	forward *api.Forwarder
	front   *listen.Front
}

// portsOf is where an operator chooses the ports of the process.
const portsOf = "the section listen of its configuration"

// member is a node as the gateway reaches it.
type member struct {
	config.DoorNode
	name string
	// admin is nil where the configuration does not say where its admin port is.
	admin *wire.Client
}

// callWait bounds an operator's order to one node; nodes bound it themselves below that.
const callWait = 70 * time.Second

// Open listens and serves.
func Open(o Options) (_ *Gateway, err error) {
	d := &Gateway{o: o, started: o.Clock.Now(), nodes: map[geo.Location][]member{}, http: &http.Client{Timeout: callWait}}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	var token admin.TokenFile
	if file := o.Config.Admin.TokenFile; file != "" {
		if token, err = admin.OpenTokenFile(file); err != nil {
			return nil, err
		}
	}
	for _, l := range o.Config.Locations {
		for _, n := range l.Nodes {
			dn := member{DoorNode: n, name: wire.NodeName(l.Name, n.ID)}
			if n.Admin != "" {
				if dn.admin, err = wire.New("http://"+n.Admin, d.http); err != nil {
					return nil, fmt.Errorf("admin port of %s: %w", dn.name, err)
				}
				dn.admin.UseSharedToken(func() (wire.Token, error) { return token.Token(), nil })
			}
			d.nodes[l.Name] = append(d.nodes[l.Name], dn)
		}
	}
	var seed [32]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, err
	}
	d.forward = api.NewForwarder("door", d.endpoints, nil)
	if files := o.Config.TLS; files != (config.TLS{}) {
		keyring, err := identity.OpenDoorKeyring(identity.Files{CA: files.CA, Cert: files.Cert, Key: files.Key}, o.Clock, o.Logger)
		if err != nil {
			return nil, fmt.Errorf("certificates of the section tls: %w", err)
		}
		d.forward.WithTLS(keyring.HopClientConfig(d.locations()...))
	}
	registry := metrics.NewRegistry()
	observer, err := metrics.NewDoor(registry, d.locations(), api.DoorOutcomes())
	if err != nil {
		return nil, err
	}
	s := api.NewServer(api.Options{
		Locations: d.locations(), Zones: o.Config.Zones, Clock: o.Clock, IDs: protocol.NewRequestIDs(seed), Forward: d.forward, Door: observer, Logger: o.Logger,
	})
	ls := listen.Services(d.o.Config.Listen.Services().Of, "front door", s.Handler)
	ls = append(ls, listen.Listener{
		Addr: o.Config.Listen.Admin, What: "admin", Limit: admin.Limit,
		Handler: admin.Handler(control{d}, registry, admin.Options{TokenFile: token, Listen: o.Config.Listen.Admin, Hosts: o.Config.Admin.Hosts, Log: o.Logger}),
	})
	d.front, err = listen.Open(ls, portsOf, o.Logger)
	return d, err
}

// locations are the door's, in the order of its configuration.
func (d *Gateway) locations() []geo.Location {
	var out []geo.Location
	for _, l := range d.o.Config.Locations {
		out = append(out, l.Name)
	}
	return out
}

func (d *Gateway) endpoints(l geo.Location, s geo.Service) []string {
	var out []string
	for _, n := range d.nodes[l] {
		if d.o.Config.TLS != (config.TLS{}) {
			out = append(out, api.HopAddress(n.Hop, s))
		} else {
			out = append(out, n.Services().Of(s))
		}
	}
	return out
}

// Close drains requests and closes.
func (d *Gateway) Close() error {
	var err error
	if d.front != nil {
		err = d.front.Close()
	}
	if d.forward != nil {
		d.forward.Close()
	}
	d.http.CloseIdleConnections()
	return err
}
