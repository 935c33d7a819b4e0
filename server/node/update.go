package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
	stampnode "antipode/stamp/node"
)

// methodUpdate is on the wire between processes of a location: never rename it.
const methodUpdate = "admin.updateAccount"

// updateQuestion is the body of methodUpdate.
type updateQuestion struct {
	Name   geo.Account        `json:"name"`
	Update wire.UpdateAccount `json:"update"`
}

// updateAnswer is how an update ended.
type updateAnswer struct {
	createAnswer
	Updated wire.AccountUpdated `json:"updated"`
}

// UpdateAccount implements operator.Location. The node with the catalog's leader updates the account.
func (m *members) UpdateAccount(ctx context.Context, name geo.Account, u wire.UpdateAccount) (wire.AccountUpdated, error) {
	switch id, known := m.catalogLeader(); {
	case !known:
		return wire.AccountUpdated{}, storageerr.ServerBusy
	case id == m.self:
		return m.Location.UpdateAccount(ctx, name, u)
	default:
		return m.updateAt(ctx, id, updateQuestion{name, u})
	}
}

// updateAt has another node update an account.
func (m *members) updateAt(ctx context.Context, id geo.NodeID, q updateQuestion) (wire.AccountUpdated, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return wire.AccountUpdated{}, err
	}
	body, err = m.calls.CallProcess(ctx, id, methodUpdate, body)
	if errors.Is(err, stampnode.ErrUnreachable) {
		return wire.AccountUpdated{}, storageerr.ServerBusy
	}
	var out updateAnswer
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	if err == nil {
		err = out.err()
	}
	return out.Updated, err
}

// serveUpdate answers updateAt.
func (m *members) serveUpdate() {
	m.calls.HandleProcess(methodUpdate, func(ctx context.Context, body []byte) ([]byte, error) {
		var q updateQuestion
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, fmt.Errorf("malformed update: %w", err)
		}
		updated, err := m.Location.UpdateAccount(ctx, q.Name, q.Update)
		out := updateAnswer{Updated: updated}
		if err != nil {
			if out.createAnswer, err = answerOf(err); err != nil {
				return nil, err
			}
		}
		return json.Marshal(out)
	})
}
