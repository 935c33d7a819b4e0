package node

import (
	"context"
	"encoding/json"
	"slices"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/support"
)

// methodSupport asks a process of the location for what it knows of itself. The name is on the wire.
const methodSupport = "admin.support"

// support is what this process knows of itself.
func (n *Node) support() wire.Support {
	return support.Source{Name: wire.NodeName(n.o.Config.Location, n.id), Config: n.o.Config, Gatherer: n.registry}.Gather()
}

// Support implements operator.Location: the process of the node answers.
func (m *members) Support(ctx context.Context, id geo.NodeID) (out wire.Support, err error) {
	if id == m.self {
		return m.Location.Support(ctx, id)
	}
	if !slices.Contains(m.nodes, id) {
		return out, wire.NoNode(m.Name(), id)
	}
	body, err := m.calls.CallProcess(ctx, id, methodSupport, nil)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(body, &out)
}

func (m *members) serveSupport() {
	m.calls.HandleProcess(methodSupport, func(ctx context.Context, _ []byte) ([]byte, error) {
		out, err := m.Location.Support(ctx, m.self)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	})
}
