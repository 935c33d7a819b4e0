package dev

import (
	"net"
	"strconv"

	"antipode/geo"
)

// Offsets from the port base: the front door, then one block for each location.
const (
	offsetBlob   = 0
	offsetQueue  = 1
	offsetTable  = 2
	offsetAdmin  = 80
	locationStep = 1000
)

// ports are the ports of one front end and its admin port.
type ports struct {
	host string
	base int
}

func (p ports) of(s geo.Service) string {
	offset := map[geo.Service]int{geo.Blob: offsetBlob, geo.Queue: offsetQueue, geo.Table: offsetTable}[s]
	return p.addr(offset)
}

func (p ports) admin() string { return p.addr(offsetAdmin) }

func (p ports) addr(offset int) string { return net.JoinHostPort(p.host, strconv.Itoa(p.base+offset)) }

// PortBaseMax is the greatest port base: the second location's admin port must fit.
const PortBaseMax = 65535 - 2*locationStep - offsetAdmin
