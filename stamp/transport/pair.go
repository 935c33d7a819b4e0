package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"antipode/geo"
	"antipode/stamp/kv"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/transport/wire"
)

// ElsewhereError is a handler's answer that another node of its stamp is to be asked.
// Nothing happened.
type ElsewhereError struct {
	// Node is that node, 0 where it is not known.
	Node geo.NodeID
}

func (e *ElsewhereError) Error() string {
	if e.Node == 0 {
		return "another node is to be asked; which one is not known"
	}
	return fmt.Sprintf("node %d is to be asked", e.Node)
}

// Elsewhere is what a handler of HandlePair returns when another node of its stamp leads
// what is asked for; 0 where it does not know which.
func Elsewhere(id geo.NodeID) error { return &ElsewhereError{id} }

// pair is the way to the nodes of the paired location.
type pair struct {
	links []*pairLink

	mu sync.Mutex
	// next is the link that answered last, or the one behind that which did not.
	next int
}

// pairLink is the way to one of them.
type pairLink struct {
	address string
	conn    *grpc.ClientConn
	// node is who answers there, 0 while that is not known. Guarded by pair.mu.
	node geo.NodeID
}

func newPair(t *Transport) (*pair, error) {
	p := &pair{}
	for _, address := range t.o.Pair.Addresses {
		conn, err := t.dial(address, t.o.Keyring.PairConfig(t.o.Pair.Location))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("paired node at %s: %w", address, err), p.close())
		}
		p.links = append(p.links, &pairLink{address: address, conn: conn})
	}
	return p, nil
}

func (p *pair) close() error {
	var errs []error
	for _, l := range p.links {
		errs = append(errs, l.conn.Close())
	}
	return errors.Join(errs...)
}

// HandlePair sets what answers a method for the nodes of the paired location; nil takes
// it away. A handler that returns Elsewhere, or ranges.ErrNotLeader, sends the caller to
// another node.
func (t *Transport) HandlePair(method string, f node.CallHandler) { t.pairCalls.set(method, f) }

// CallPair asks the paired location: the node that answered last, then, while they are not
// reachable or send it elsewhere, the others, each once. Errors: as those of Call;
// node.ErrUnreachable where no node took it: nothing happened.
func (t *Transport) CallPair(ctx context.Context, method string, body []byte) ([]byte, error) {
	tried := make([]bool, len(t.pair.links))
	var why []error
	for wanted := geo.NodeID(0); ; {
		i := t.pair.choose(tried, wanted)
		if i < 0 {
			return nil, fmt.Errorf("%s: %s: %w", t.o.Pair.Location, method, &untakenError{why})
		}
		tried[i] = true
		answer, err := t.askPair(ctx, i, method, body)
		if err == nil {
			return answer, nil
		}
		err = fmt.Errorf("%s: %w", t.pair.links[i].address, err)
		var elsewhere *ElsewhereError
		wanted = 0
		switch {
		case errors.As(err, &elsewhere):
			wanted = elsewhere.Node
		case errors.Is(err, ranges.ErrNotLeader), errors.Is(err, node.ErrUnreachable):
		default:
			return nil, fmt.Errorf("%s: %s at %w", t.o.Pair.Location, method, err)
		}
		why = append(why, err)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %s: %w", t.o.Pair.Location, method, &untakenError{why})
		}
	}
}

// untakenError is node.ErrUnreachable for a whole pair, in one line: why has what each node answered that was asked.
type untakenError struct{ why []error }

func (e *untakenError) Error() string {
	var each []string
	for _, err := range e.why {
		each = append(each, err.Error())
	}
	return "no node takes it: " + strings.Join(each, "; ")
}

func (e *untakenError) Unwrap() []error { return append([]error{node.ErrUnreachable}, e.why...) }

// choose returns the link of the wanted node, else the next one, that was not tried; -1
// where all were.
func (p *pair) choose(tried []bool, wanted geo.NodeID) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, l := range p.links {
		if wanted != 0 && l.node == wanted && !tried[i] {
			return i
		}
	}
	for i := range p.links {
		if i = (p.next + i) % len(p.links); !tried[i] {
			return i
		}
	}
	return -1
}

// askPair makes one call to one node of the pair and remembers who it was, and whether
// it is the one to ask first.
func (t *Transport) askPair(ctx context.Context, i int, method string, body []byte) ([]byte, error) {
	l := t.pair.links[i]
	var at peer.Peer
	answer, err := t.ask(ctx, wire.NewStampClient(l.conn).CallPair, method, body, grpc.Peer(&at))
	t.pair.mu.Lock()
	defer t.pair.mu.Unlock()
	if id, nameErr := named(at.AuthInfo); nameErr == nil {
		l.node = id.Node
	}
	switch {
	case err == nil:
		t.pair.next = i
	case t.pair.next == i && (errors.Is(err, node.ErrUnreachable) || errors.Is(err, kv.ErrUnknown)):
		t.pair.next = (i + 1) % len(t.pair.links)
	}
	return answer, err
}
