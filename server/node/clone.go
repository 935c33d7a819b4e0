package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"antipode/api"
	"antipode/api/routing"
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/operator"
	"antipode/services/storageerr"
	stampnode "antipode/stamp/node"
)

// methodClone opens, drops or lists the clones of accounts in the process of a node. It is on the wire: never rename it.
const methodClone = "admin.clone"

// cloneOrder has the process of a node open a clone of the account, or drop it, or, without either, list all of the
// process.
type cloneOrder struct {
	Account geo.Account     `json:"account,omitempty"`
	Open    *wire.OpenClone `json:"open,omitempty"`
	Drop    bool            `json:"drop,omitempty"`
}

// cloneAnswer is how a call ended. Code is empty after a success.
type cloneAnswer struct {
	Clones []wire.Clone `json:"clones,omitempty"`
	// Node is the one that answers, and Opening are the accounts of which it is having a clone opened: see claims.
	Node    geo.NodeID           `json:"node,omitempty"`
	Opening map[geo.Account]bool `json:"opening,omitempty"`
	Status  int                  `json:"status,omitempty"`
	Code    string               `json:"code,omitempty"`
	Message string               `json:"message,omitempty"`
	// slow: the process has not answered, and may be there.
	slow bool
}

// err is the error of an answer.
func (a cloneAnswer) err() error {
	if a.Code == "" {
		return nil
	}
	return &wire.Error{Status: a.Status, Code: a.Code, Message: a.Message}
}

// serveClones answers methodClone. list returns the clones of this process.
func (m *members) serveClones(list func() []wire.Clone) {
	m.calls.HandleProcess(methodClone, func(ctx context.Context, body []byte) ([]byte, error) {
		var o cloneOrder
		if err := json.Unmarshal(body, &o); err != nil {
			return nil, fmt.Errorf("malformed call about a clone: %w", err)
		}
		var out cloneAnswer
		var one wire.Clone
		var err error
		switch {
		case o.Open != nil:
			one, err = m.Location.OpenClone(ctx, o.Account, *o.Open)
		case o.Drop:
			one, err = m.Location.DropClone(ctx, o.Account)
		default:
			// First what is being opened: what ends meanwhile is in the list then.
			out.Node, out.Opening = m.self, m.claims.all()
			out.Clones = list()
			return json.Marshal(out)
		}
		out.Clones = []wire.Clone{one}
		var said *wire.Error
		row, ours := storageerr.Of(err)
		switch {
		case err == nil:
		case errors.As(err, &said):
			out = cloneAnswer{Status: said.Status, Code: said.Code, Message: said.Message}
		case ours:
			out = cloneAnswer{Status: row.Status, Code: row.Code, Message: row.Message}
		default:
			return nil, err
		}
		return json.Marshal(out)
	})
}

// cloneAt has the process of another node open or drop one clone.
func (m *members) cloneAt(ctx context.Context, id geo.NodeID, o cloneOrder) (wire.Clone, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return wire.Clone{}, err
	}
	body, err = m.calls.CallProcess(ctx, id, methodClone, body)
	var out cloneAnswer
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	if err == nil {
		err = out.err()
	}
	if err != nil || len(out.Clones) != 1 {
		return wire.Clone{}, err
	}
	return out.Clones[0], nil
}

// askClones asks the other processes for their clones, and for those that they are opening.
func (m *members) askClones(ctx context.Context) []cloneAnswer {
	question, err := json.Marshal(cloneOrder{})
	if err != nil {
		return nil
	}
	return askPeers(ctx, m, methodClone, question, func(_ geo.NodeID, err error) cloneAnswer {
		return cloneAnswer{slow: !errors.Is(err, stampnode.ErrUnreachable)}
	})
}

// clonesElsewhere lists the clones of the other processes that answer.
func (m *members) clonesElsewhere(ctx context.Context) []wire.Clone {
	out, _ := m.allClonesElsewhere(ctx)
	return out
}

// allClonesElsewhere lists the clones of the other processes. They are all unless one that may be there has not answered.
func (m *members) allClonesElsewhere(ctx context.Context) (out []wire.Clone, all bool) {
	all = true
	for _, a := range m.askClones(ctx) {
		out, all = append(out, a.Clones...), all && !a.slow
	}
	return out, all
}

// Clone implements operator.Location.
func (m *members) Clone(ctx context.Context, name geo.Account) (wire.Clone, error) {
	out, err := m.Location.Clone(ctx, name)
	if !operator.NoClone(err) {
		return out, err
	}
	for _, c := range m.clonesElsewhere(ctx) {
		if c.Account == name {
			return c, nil
		}
	}
	return out, err
}

// OpenClone implements operator.Location: in this process, or in one that has everything if this one has not. Of calls at once,
// at whichever processes, one opens a clone, and the others are refused: see cloneClaims.
func (m *members) OpenClone(ctx context.Context, name geo.Account, q wire.OpenClone) (wire.Clone, error) {
	if err := m.claimClone(ctx, name); err != nil {
		return wire.Clone{}, err
	}
	defer m.claims.end(name)
	out, err := m.Location.OpenClone(ctx, name, q)
	for _, id := range m.nodes {
		var said *wire.Error
		if !errors.As(err, &said) || said.Code != wire.CodeNoCloneHost {
			break
		}
		if id != m.self {
			var refused error
			if out, refused = m.cloneAt(ctx, id, cloneOrder{Account: name, Open: &q}); refused == nil || errors.As(refused, &said) {
				err = refused
			}
		}
	}
	return out, err
}

// DropClone implements operator.Location: in whichever processes it is.
func (m *members) DropClone(ctx context.Context, name geo.Account) (wire.Clone, error) {
	out, err := m.Location.DropClone(ctx, name)
	for _, c := range m.clonesElsewhere(ctx) {
		_, id, bad := wire.ParseNodeName(c.Node)
		if c.Account != name || bad != nil {
			continue
		}
		if dropped, failed := m.cloneAt(ctx, id, cloneOrder{Account: name, Drop: true}); failed == nil && operator.NoClone(err) {
			out, err = dropped, nil
		} else if failed != nil {
			err = failed
		}
	}
	return out, err
}

const (
	// cloneHostsFresh is for how long what the other processes said of their clones is taken for true.
	cloneHostsFresh = time.Second
	// cloneHostsWait bounds the question.
	cloneHostsWait = 500 * time.Millisecond
)

// cloneHosts is which other nodes of the location have clones, for the front end. The others are asked only for requests
// of clones, and once in cloneHostsFresh, whatever clients ask for.
type cloneHosts struct {
	mu    sync.Mutex
	asked time.Duration
	at    map[geo.Account]geo.NodeID
	// all: every process that may have a clone has answered.
	all bool
}

// errCloneUnknown: a client that is denied an account that is there would not come again.
var errCloneUnknown = storageerr.ServerBusy.Saying("A node of the location does not say whether it has a clone of the account. Please retry your request.")

// of returns the node that has the clone of an account, 0 for none, errCloneUnknown where a process that has not answered may have
// it. What was known of such a process stays: it has its clone still.
func (h *cloneHosts) of(name geo.Account, now time.Duration, ask func(context.Context) ([]wire.Clone, bool)) (host geo.NodeID, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil || now-h.asked >= cloneHostsFresh {
		ctx, cancel := context.WithTimeout(context.Background(), cloneHostsWait)
		defer cancel()
		var list []wire.Clone
		list, h.all = ask(ctx)
		h.asked = now
		if h.all || h.at == nil {
			h.at = map[geo.Account]geo.NodeID{}
		}
		for _, c := range list {
			if _, id, err := wire.ParseNodeName(c.Node); err == nil {
				h.at[c.Account] = id
			}
		}
	}
	if h.at[name] == 0 && !h.all {
		return 0, errCloneUnknown
	}
	return h.at[name], nil
}

// findClone implements api.Clones.
func (n *Node) findClone(name geo.Account, s geo.Service) (here *api.Server, addr string, err error) {
	if here, _, err = n.location.FindClone(name, s); here != nil || err != nil {
		return here, "", err
	}
	id, err := n.cloneHosts.of(name, n.o.Clock.Mono(), n.members.allClonesElsewhere)
	if err != nil || id == 0 || n.peers[id].ID == 0 {
		return nil, "", err
	}
	return nil, routing.HopAddress(n.peers[id].Hop, s), nil
}
