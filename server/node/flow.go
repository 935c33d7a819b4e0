package node

import (
	"context"
	"encoding/json"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/flow"
)

// Flow implements operator.Location. Leaders of ranges and the receiver may be in different processes.
func (m *members) Flow(ctx context.Context, name geo.Account) (wire.Flow, error) {
	own, err := m.Location.Flow(ctx, name)
	if err != nil {
		return own, err
	}
	peers := askPeers(ctx, m, methodFlow, []byte(name), func(id geo.NodeID, _ error) wire.Flow {
		return wire.Flow{Silent: []string{wire.NodeName(m.Name(), id)}}
	})
	return flow.Merge(append([]wire.Flow{own}, peers...)), nil
}

// serveFlow answers methodFlow. The question is the name of the account.
func (m *members) serveFlow() {
	m.calls.HandleProcess(methodFlow, func(ctx context.Context, name []byte) ([]byte, error) {
		f, err := m.Location.Flow(ctx, geo.Account(name))
		if err != nil {
			return nil, err
		}
		return json.Marshal(f)
	})
}
