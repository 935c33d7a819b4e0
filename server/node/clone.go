package node

import (
	"context"
	"sync"
	"time"

	"antipode/api"
	"antipode/api/routing"
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

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
	id, err := n.cloneHosts.of(name, n.o.Clock.Mono(), n.members.ClonesElsewhere)
	if err != nil || id == 0 || n.peers[id].ID == 0 {
		return nil, "", err
	}
	return nil, routing.HopAddress(n.peers[id].Hop, s), nil
}
