package epochs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	wire "antipode/client/admin"
	"antipode/failover/dns"
	"antipode/geo"
	"antipode/services/catalog"
)

// Ask returns a page of what a location knows of the names of accounts.
type Ask func(ctx context.Context, l geo.Location, q wire.NamesQuery) (wire.Names, error)

// source implements dns.Source over a location's admin port, or over what answers it.
type source struct {
	location geo.Location
	ask      Ask
}

// NewSource returns the names that a location answers with.
func NewSource(l geo.Location, ask Ask) dns.Source { return source{l, ask} }

// Location implements dns.Source.
func (s source) Location() geo.Location { return s.location }

// Names implements dns.Source.
func (s source) Names(ctx context.Context, since string, after geo.Account) (dns.Page, error) {
	list, err := s.ask(ctx, s.location, wire.NamesQuery{Since: since, After: after})
	if err != nil {
		return dns.Page{}, err
	}
	if list.Location != s.location {
		return dns.Page{}, fmt.Errorf("location %q answered in place of %q: look at the addresses of its admin ports", list.Location, s.location)
	}
	out := dns.Page{Version: list.Version, Next: list.Next}
	for _, n := range list.Names {
		if n.Primary != n.Epoch.Location {
			return dns.Page{}, fmt.Errorf("account %q: its primary is %q, in epoch %s", n.Account, n.Primary, n.Epoch)
		}
		out.Entries = append(out.Entries, dns.Entry{
			Account: n.Account, Epoch: geo.Epoch(n.Epoch), Secondary: n.Secondary, Redundancy: catalog.Redundancy(n.Redundancy),
		})
	}
	return out, nil
}

// Bounds of a call to the admin port of a node.
const (
	nodeWait = 2 * time.Second
	idleWait = 90 * time.Second
)

// Ports are the admin ports of a location's nodes. They are asked by one goroutine.
type Ports struct {
	clients []*wire.Client
	// at is the one that answered last. A node knows its own versions only, so that it is asked again.
	at int
}

// NewPorts returns the admin ports at addresses, host:port.
func NewPorts(addresses []string, h *http.Client) (*Ports, error) {
	p := &Ports{}
	for _, address := range addresses {
		c, err := wire.New("http://"+address, h)
		if err != nil {
			return nil, err
		}
		p.clients = append(p.clients, c)
	}
	return p, nil
}

// NewHTTP returns the client of all admin ports. It uses no proxy that the environment names.
func NewHTTP() *http.Client {
	return &http.Client{Timeout: nodeWait, Transport: &http.Transport{IdleConnTimeout: idleWait}}
}

// Names asks the nodes one after the other until one answers.
func (p *Ports) Names(ctx context.Context, l geo.Location, q wire.NamesQuery) (out wire.Names, err error) {
	var errs []error
	for range p.clients {
		if out, err = p.clients[p.at].Names(ctx, l, q); err == nil {
			return out, nil
		}
		errs = append(errs, err)
		p.at = (p.at + 1) % len(p.clients)
	}
	return wire.Names{}, errors.Join(errs...)
}
