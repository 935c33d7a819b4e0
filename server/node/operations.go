package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/location"
	"antipode/services/storageerr"
	stampnode "antipode/stamp/node"
)

// What the processes of a location ask of each other for an operator. The names travel:
// never rename one.
const (
	methodView   = "admin.view"
	methodEvents = "admin.events"
	methodOrder  = "admin.order"
	methodCreate = "admin.createAccount"
)

// order is what an operator wants done to the node of a process.
type order struct {
	Start bool `json:"start,omitempty"`
	Stop  bool `json:"stop,omitempty"`
	// Lenient takes what is done already for done.
	Lenient bool `json:"lenient,omitempty"`
	// Link is the new state of this end of the link.
	Link *wire.Link `json:"link,omitempty"`
}

// obey carries out an order at this process. A start may go on after it returned: see begin.
func (n *Node) obey(ctx context.Context, o order) error {
	if o.Link != nil {
		location.SetLink(n.link, *o.Link)
		return nil
	}
	if o.Lenient && o.Start == n.running() {
		return nil
	}
	if o.Start {
		return n.begin(ctx, o)
	}
	return n.stop()
}

// order gives an order to the process of a node.
func (n *Node) order(ctx context.Context, l geo.Location, id geo.NodeID, o order) error {
	if _, peer := n.peers[id]; l != n.o.Config.Location || !peer && id != n.id {
		return fmt.Errorf("there is no node %s", wire.NodeName(l, id))
	}
	if id == n.id {
		return n.obey(ctx, o)
	}
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = n.transport.CallProcess(ctx, id, methodOrder, body)
	return err
}

// orderAll gives an order to all processes of the location, at once.
func (n *Node) orderAll(ctx context.Context, l geo.Location, o order) error {
	if l != n.o.Config.Location {
		return fmt.Errorf("there is no location %s here: this is a node of %s", l, n.o.Config.Location)
	}
	ids := n.nodes()
	errs := make([]error, len(ids))
	var given sync.WaitGroup
	for i, id := range ids {
		given.Go(func() { errs[i] = n.order(ctx, l, id, o) })
	}
	given.Wait()
	return errors.Join(errs...)
}

// createAnswer is how the creation of an account ended.
type createAnswer struct {
	// Status, Code and Message are the protocol's error; no code is success.
	Status  int    `json:"status,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// createElsewhere has the node with the catalog's leader make an account.
func (n *Node) createElsewhere(ctx context.Context, a wire.NewAccount) error {
	id, known := n.location.LeaderNode(geo.FirstRange(geo.Catalog))
	if !known || id == n.id {
		return storageerr.ServerBusy
	}
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	body, err = n.transport.CallProcess(ctx, id, methodCreate, body)
	if errors.Is(err, stampnode.ErrUnreachable) {
		return storageerr.ServerBusy
	}
	var out createAnswer
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	if err == nil && out.Code != "" {
		err = storageerr.Row{Status: out.Status, Code: out.Code, Message: out.Message}
	}
	return err
}

// serveOperators answers what other processes of the location ask for an operator.
func (n *Node) serveOperators() {
	n.transport.HandleProcess(methodView, func(ctx context.Context, _ []byte) ([]byte, error) {
		v, err := n.view(ctx)
		if err != nil {
			return nil, err
		}
		return json.Marshal(v)
	})
	n.transport.HandleProcess(methodEvents, func(context.Context, []byte) ([]byte, error) {
		return json.Marshal(n.location.Events())
	})
	n.transport.HandleProcess(methodOrder, func(ctx context.Context, body []byte) ([]byte, error) {
		var o order
		if err := json.Unmarshal(body, &o); err != nil {
			return nil, fmt.Errorf("malformed order: %w", err)
		}
		return nil, n.obey(ctx, o)
	})
	n.transport.HandleProcess(methodCreate, func(ctx context.Context, body []byte) ([]byte, error) {
		var a wire.NewAccount
		if err := json.Unmarshal(body, &a); err != nil {
			return nil, fmt.Errorf("malformed account: %w", err)
		}
		var out createAnswer
		if _, err := n.location.CreateAccount(ctx, a); err != nil {
			row, ours := storageerr.Of(err)
			if !ours {
				return nil, err
			}
			out = createAnswer{row.Status, row.Code, row.Message}
		}
		return json.Marshal(out)
	})
}
