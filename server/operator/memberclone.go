package operator

import (
	"context"
	"encoding/json"
	"errors"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
	stampnode "antipode/stamp/node"
)

// methodClones lists the clones of accounts in the process of a node, and those that it is having opened. It is on the wire:
// never rename it.
const methodClones = "admin.clone"

// clonesAnswer is what a process answers.
type clonesAnswer struct {
	Clones []wire.Clone `json:"clones,omitempty"`
	// Node is the one that answers, and Opening are the accounts of which it is having a clone opened: see claims.
	Node    geo.NodeID           `json:"node,omitempty"`
	Opening map[geo.Account]bool `json:"opening,omitempty"`
	// slow: the process has not answered, and may be there.
	slow bool
}

// serveClones answers askClones.
func (m *Members) serveClones() {
	m.o.Calls.HandleProcess(methodClones, func(_ context.Context, body []byte) ([]byte, error) {
		var earlier earlierCloneOrder
		if err := json.Unmarshal(body, &earlier); err != nil {
			return nil, malformed(err)
		}
		if earlier.Open != nil || earlier.Drop {
			return json.Marshal(earlierRefusal(otherVersion(wire.NodeName(m.Name(), m.o.Self))))
		}
		// First what is being opened: what ends meanwhile is in the list then.
		out := clonesAnswer{Node: m.o.Self, Opening: m.claims.all()}
		out.Clones = m.o.Clones()
		return json.Marshal(out)
	})
}

// askClones asks the other processes for their clones, and for those that they are opening.
func (m *Members) askClones(ctx context.Context) []clonesAnswer {
	return askPeers(ctx, m, func(ctx context.Context, id geo.NodeID) (out clonesAnswer) {
		body, err := m.o.Calls.CallProcess(ctx, id, methodClones, []byte("{}"))
		if err == nil {
			err = json.Unmarshal(body, &out)
		}
		if err != nil {
			return clonesAnswer{slow: !errors.Is(err, stampnode.ErrUnreachable)}
		}
		return out
	})
}

// ClonesElsewhere lists the clones of the other processes. They are all unless one that may be there has not answered.
func (m *Members) ClonesElsewhere(ctx context.Context) (out []wire.Clone, all bool) {
	all = true
	for _, a := range m.askClones(ctx) {
		out, all = append(out, a.Clones...), all && !a.slow
	}
	return out, all
}

// showMembersClone shows the clone of an account, in whichever process it is.
func showMembersClone(ctx context.Context, m *Members, o *operation[wire.None, wire.Clone], at wire.At, in wire.None) (wire.Clone, error) {
	out, err := ask(ctx, m.o.Own, o, at, in)
	if !noClone(err) {
		return out, err
	}
	elsewhere, _ := m.ClonesElsewhere(ctx)
	for _, c := range elsewhere {
		if c.Account == at.Account {
			return c, nil
		}
	}
	return out, err
}

// openMembersClone opens a clone in this process, or in one that has everything if this one has not. Of calls at once, at
// whichever processes, one opens a clone, and the others are refused: see cloneClaims.
func openMembersClone(
	ctx context.Context, m *Members, o *operation[wire.OpenClone, wire.Clone], at wire.At, in wire.OpenClone,
) (wire.Clone, error) {
	if err := m.claimClone(ctx, at.Account); err != nil {
		return wire.Clone{}, err
	}
	defer m.claims.end(at.Account)
	out, err := ask(ctx, m.o.Own, o, at, in)
	for _, id := range m.o.Nodes {
		var said *wire.Error
		if !errors.As(err, &said) || said.Code != wire.CodeNoCloneHost {
			break
		}
		if id != m.o.Self {
			var refused error
			out, refused = hopTo(ctx, m, id, o, at, in)
			if _, ours := storageerr.Of(refused); refused == nil || ours || errors.As(refused, &said) {
				err = refused
			}
		}
	}
	return out, err
}

// dropMembersClone drops the clone of an account, in whichever processes it is.
func dropMembersClone(ctx context.Context, m *Members, o *operation[wire.None, wire.Clone], at wire.At, in wire.None) (wire.Clone, error) {
	out, err := ask(ctx, m.o.Own, o, at, in)
	elsewhere, _ := m.ClonesElsewhere(ctx)
	for _, c := range elsewhere {
		_, id, bad := wire.ParseNodeName(c.Node)
		if c.Account != at.Account || bad != nil {
			continue
		}
		if dropped, failed := hopTo(ctx, m, id, o, at, in); failed == nil && noClone(err) {
			out, err = dropped, nil
		} else if failed != nil {
			err = failed
		}
	}
	return out, err
}
