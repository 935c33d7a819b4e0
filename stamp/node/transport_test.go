package node_test

import (
	"testing"

	"antipode/geo"
	"antipode/stamp/memtransport"
	"antipode/stamp/node"
	"antipode/stamp/transport/transporttest"
)

// memory is the network of a memtransport.Transport.
type memory struct{ t *memtransport.Transport }

func (m memory) Start(id geo.NodeID, member node.Member) { m.t.Attach(id, member) }
func (m memory) Stop(id geo.NodeID)                      { m.t.Attach(id, nil) }
func (m memory) At(geo.NodeID) transporttest.Transport   { return m.t }

// The transport in memory passes the suite of all transports.
func TestMemoryConformance(t *testing.T) {
	transporttest.Run(t, func(*testing.T) transporttest.Network { return memory{memtransport.New()} })
}
