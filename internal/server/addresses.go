package server

import (
	"antipode/geo"
	"antipode/internal/config"
)

// addresses are where a front end listens or is reached, host:port.
type addresses struct{ blob, queue, table string }

func (a addresses) of(s geo.Service) string {
	switch s {
	case geo.Blob:
		return a.blob
	case geo.Queue:
		return a.queue
	default:
		return a.table
	}
}

func peerFront(p config.Peer) addresses { return addresses{p.Blob, p.Queue, p.Table} }
