package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
)

// nodeWait bounds a read from a node's admin port. The node bounds what it asks of its peers
// below that.
const nodeWait = 4 * time.Second

// nodeNext is after how long without an answer another node is asked, too: one that is paused takes a call and never answers,
// and a read of the whole location is bounded by 10 s.
const nodeNext = time.Second

// Remote implements Location over the admin ports of the location's nodes. Any node answers
// for the whole location.
type Remote struct {
	Location geo.Location
	// Nodes are asked in this order.
	Nodes  []Node
	Logger *slog.Logger
}

// Node is a node of a Remote.
type Node struct {
	ID geo.NodeID
	// Admin is nil if the address of its admin port is not known.
	Admin *wire.Client
}

// noNodeAnswers is the reason of a location that is not ready because no node answers.
const noNodeAnswers = "no node of the location answers on its admin port"

// noNode is the error if no node of the location answers. last is the error of the node that was
// asked last, nil if no node's admin port is known.
func (r *Remote) noNode(last error) error {
	return silent("no node of location "+string(r.Location)+" answers on its admin port", last)
}

// silent is the error if nobody answers.
func silent(message string, cause error) error {
	if cause != nil {
		message += fmt.Sprintf(" (%v)", cause)
	}
	return &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeNoNodeAnswers, Message: message}
}

// Name implements Location.
func (r *Remote) Name() geo.Location { return r.Location }

func (r *Remote) nodeName(n Node) string { return wire.NodeName(r.Location, n.ID) }

// read asks the nodes one after the other until one answers: the next one when one has failed, and beside one that has not
// answered within nodeNext. A refusal is an answer; the error of a node that failed is returned only if no other node answers.
func read[T any](ctx context.Context, r *Remote, ask func(context.Context, *wire.Client) (T, error)) (T, error) {
	var asked sync.WaitGroup
	defer asked.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := slices.DeleteFunc(slices.Clone(r.Nodes), func(n Node) bool { return n.Admin == nil })
	answers, waiting := make(chan answer[T], len(left)), 0
	begin := func() {
		c := left[0].Admin
		left, waiting = left[1:], waiting+1
		asked.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, nodeWait)
			defer cancel()
			answers <- answerOf(ask(ctx, c))
		})
	}
	var none T
	var failed, last error
	for waiting+len(left) > 0 {
		if waiting == 0 {
			begin()
		}
		var late <-chan time.Time
		if len(left) > 0 {
			late = time.After(nodeNext)
		}
		select {
		case <-late:
			begin()
		case a := <-answers:
			waiting--
			var said *wire.Error
			switch {
			case a.err == nil:
				return a.value, nil
			case !errors.As(a.err, &said):
				last = a.err
			case said.Status < http.StatusInternalServerError:
				return none, a.err
			default:
				failed = a.err
			}
		}
	}
	if failed != nil {
		return none, failed
	}
	return none, r.noNode(last)
}

// operate has the first node that answers carry out an operation. It may have begun once it was asked for that, so that no other
// is asked after it: which one answers is asked before.
func operate[T any](ctx context.Context, r *Remote, ask func(context.Context, *wire.Client) (T, error)) (T, error) {
	var none T
	c, err := read(ctx, r, func(ctx context.Context, c *wire.Client) (*wire.Client, error) { return c, c.Alive(ctx) })
	if err != nil {
		return none, err
	}
	out, err := ask(ctx, c)
	if errors.Is(err, wire.ErrUnreachable) {
		return none, r.noNode(err)
	}
	return out, err
}

func (r *Remote) do(ctx context.Context, q question) error { return q.of.remotely(ctx, r, q) }

// checkStatus is the status of the first node that answers. If none does, all nodes are unreachable.
func checkStatus(r *Remote, s wire.Status, err error) (wire.Status, error) {
	switch {
	case err != nil:
	case len(s.Locations) != 1:
		err = fmt.Errorf("a node showed %d locations", len(s.Locations))
	case s.Locations[0].Name != r.Location:
		err = fmt.Errorf("a node showed location %s: the configuration names it as a node of %s", s.Locations[0].Name, r.Location)
	default:
		return s, nil
	}
	out := wire.Location{Name: r.Location, State: wire.Unreachable, Warnings: []string{err.Error()}}
	for _, n := range r.Nodes {
		out.Nodes = append(out.Nodes, wire.Node{Name: r.nodeName(n), State: wire.Unreachable})
	}
	return wire.Status{Locations: []wire.Location{out}}, nil
}

// silentEvents names a location whose events could not be read.
func silentEvents(r *Remote, list wire.EventList, err error) (wire.EventList, error) {
	if err != nil {
		r.Logger.Warn("events are missing: no node answers", "location", r.Location, "error", err)
		return wire.EventList{Silent: []string{string(r.Location)}}, nil
	}
	return list, nil
}

// onlyFlow is what a node has answered of its own location: it answers for all processes of that.
func onlyFlow(r *Remote, out wire.Flows, err error) (wire.Flows, error) {
	if err != nil {
		return wire.Flows{}, err
	}
	for _, f := range out.Flows {
		if f.Location == r.Location {
			return wire.Flows{Flows: []wire.Flow{f}}, nil
		}
	}
	return wire.Flows{}, &wire.Error{
		Status: http.StatusServiceUnavailable, Code: wire.CodeNoNodeAnswers, Message: "no node showed the streams of location " + string(r.Location),
	}
}

// Readiness implements Location. It asks all nodes at once; those that do not answer are left
// out.
func (r *Remote) Readiness(ctx context.Context) wire.LocationReadiness {
	ctx, cancel := context.WithTimeout(ctx, nodeWait)
	defer cancel()
	answers := make([][]wire.LocationReadiness, len(r.Nodes))
	var asked sync.WaitGroup
	for i, n := range r.Nodes {
		if n.Admin == nil {
			continue
		}
		asked.Go(func() {
			if ready, err := n.Admin.Readiness(ctx); err == nil {
				answers[i] = ready.Locations
			}
		})
	}
	asked.Wait()
	out := serving(slices.Concat(answers...))
	out.Name = r.Location
	return out
}

// serving is the readiness of a location by that of its nodes: the location serves if any
// node says so. Of several reasons that of a running node is given.
func serving(nodes []wire.LocationReadiness) wire.LocationReadiness {
	out := wire.LocationReadiness{State: wire.Unreachable, Reason: noNodeAnswers}
	for _, state := range []wire.State{wire.Stopped, wire.Starting, wire.Running} {
		for _, n := range nodes {
			if n.Serving {
				return wire.LocationReadiness{State: wire.Running, Serving: true}
			}
			if n.State == state {
				out.State, out.Reason = state, n.Reason
			}
		}
	}
	return out
}

// node finds a node and its admin port.
func (r *Remote) node(name string) (Node, error) {
	_, id, err := wire.ParseNodeName(name)
	if err != nil {
		return Node{}, err
	}
	for _, n := range r.Nodes {
		switch {
		case n.ID != id:
		case n.Admin == nil:
			return n, fmt.Errorf("the configuration does not say where the admin port of %s is", r.nodeName(n))
		default:
			return n, nil
		}
	}
	return Node{}, wire.NoNode(r.Location, id)
}

// atNode has a node carry out an operation.
func atNode[T any](ctx context.Context, r *Remote, name string, ask func(context.Context, *wire.Client) (T, error)) (T, error) {
	n, err := r.node(name)
	if err != nil {
		var none T
		return none, err
	}
	out, err := ask(ctx, n.Admin)
	if errors.Is(err, wire.ErrUnreachable) {
		err = silent("node "+r.nodeName(n)+" does not answer on its admin port", err)
	}
	return out, err
}
