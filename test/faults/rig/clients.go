package rig

import (
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/dev"
	"antipode/test/rest"
)

// Admin is a client of a process's admin port.
func (r *Rig) Admin(name string) *wire.Client {
	c, err := wire.New("http://"+r.ports(name).Admin(), r.http)
	if err != nil {
		panic("rig: " + err.Error()) // An address of our own making.
	}
	return c
}

// Client is a client of the dev account at a process's front end.
func (r *Rig) Client(name string, secondary bool) *rest.Client {
	return rest.NewPathStyle(r.http, r.ports(name).Base, secondary)
}

// ClientOf is a client of an account that has the key of the dev account.
func (r *Rig) ClientOf(name string, account geo.Account, secondary bool) *rest.Client {
	return rest.NewPathStyleOf(r.http, account, r.ports(name).Base, secondary)
}

// BlobPort is the port of a process's blob service, on loopback.
func (r *Rig) BlobPort(name string) int { return r.ports(name).Base }

func (r *Rig) ports(name string) dev.Ports {
	switch name {
	case Gateway:
		return r.opts.Gateway()
	case SecondGateway:
		return r.second
	}
	l, id, err := wire.ParseNodeName(name)
	if err != nil {
		panic("rig: " + err.Error())
	}
	location := 0
	if l == South {
		location = 1
	}
	return r.opts.NodePorts(location, int(id)-1)
}
