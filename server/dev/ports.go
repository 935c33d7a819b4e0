package dev

import (
	"net"
	"strconv"

	"antipode/geo"
)

// Offsets from the port base. The gateway has the first block of ports, each location one more.
const (
	offsetBlob   = 0
	offsetQueue  = 1
	offsetTable  = 2
	offsetDNS    = 53
	offsetAdmin  = 80
	locationStep = 1000
)

// Ports are the ports of one front end and its admin port.
type Ports struct {
	Host string
	Base int
}

// Of returns the address of a service.
func (p Ports) Of(s geo.Service) string {
	offset := offsetTable
	switch s {
	case geo.Blob:
		offset = offsetBlob
	case geo.Queue:
		offset = offsetQueue
	}
	return p.addr(offset)
}

// Admin returns the address of the admin port.
func (p Ports) Admin() string { return p.addr(offsetAdmin) }

// DNS returns the address of the name server.
func (p Ports) DNS() string { return p.addr(offsetDNS) }

func (p Ports) addr(offset int) string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Base+offset)) }

// At returns the ports of a location, counted from 0.
func (p Ports) At(location int) Ports { return Ports{p.Host, p.Base + (location+1)*locationStep} }

// PortBaseMax is the greatest port base: the second location's admin port must fit.
const PortBaseMax = 65535 - 2*locationStep - offsetAdmin
