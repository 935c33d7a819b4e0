package operator

import (
	"context"
	"encoding/json"

	wire "antipode/client/admin"
	"antipode/geo"
)

// operation is an operator call as the processes of a location carry it out. locationcalls.go has all of them.
type operation[Req, Resp any] struct {
	wire.Call[Req, Resp]
	// place is which processes of the location carry it out.
	place place
	// here carries it out in this process.
	here func(ctx context.Context, l *Local, at wire.At, in Req) (Resp, error)
	// process, if set, is what the process of a node carries out in place of here, where others run the rest of the location.
	process func(ctx context.Context, m *Members, o *operation[Req, Resp], at wire.At, in Req) (Resp, error)
	// members, if set, is what the location does in place of what place says.
	members func(ctx context.Context, m *Members, o *operation[Req, Resp], at wire.At, in Req) (Resp, error)
	// passesAway: a process that cannot be reached is passed over, since it comes back without what is changed.
	passesAway bool
	// merge makes one answer of those of all processes, of which the first is that of the process that was asked. silent is
	// the answer of a process that gives none. Both are of gathered.
	merge  func([]Resp) Resp
	silent func(node string) Resp
	// earlier asks a node of the earlier version, which has not answered but with an error. It is of gathered.
	earlier func(ctx context.Context, m *Members, id geo.NodeID, at wire.At, err error) (Resp, error)
	// asksOne: the node that a change would go to is asked, since it alone knows.
	asksOne bool
	// remote, if set, checks and completes what a node of a location elsewhere has answered.
	remote func(r *Remote, out Resp, err error) (Resp, error)
}

// place is which processes of a location carry out an operation.
type place int

const (
	// anyProcess is the one that is asked.
	anyProcess place = iota
	// catalogLeader is that of the node that leads the catalog.
	catalogLeader
	// theNode is that of the node that is named.
	theNode
	// everyProcess is all of them. One that fails fails it, and the others are done.
	everyProcess
	// gathered is all of them. One that does not answer within peerWait is passed over, and the answers are merged.
	gathered
)

// question is an operation that is asked for: in is its Req, out a *Resp.
type question struct {
	of  carried
	at  wire.At
	in  any
	out any
}

// carried is an operation whatever its documents. Each method carries out a question of it.
type carried interface {
	route() wire.Route
	local(ctx context.Context, l *Local, q question) error
	located(ctx context.Context, m *Members, q question) error
	remotely(ctx context.Context, r *Remote, q question) error
	// hopped answers a question that came from another process of the location.
	hopped(ctx context.Context, m *Members, at wire.At, in json.RawMessage) (any, error)
}

// Location is a location as the process reaches it. Methods may be called concurrently and end when their context does.
type Location interface {
	Name() geo.Location
	// Readiness says how far the location is. With Serving set, and neither Ready nor a
	// Reason, whether the location is ready is for the accounts of all locations to say.
	Readiness(ctx context.Context) wire.LocationReadiness
	// do carries out a question. Its answer may say something after an error, too.
	do(ctx context.Context, q question) error
}

// ask has a location carry out an operation.
func ask[Req, Resp any](ctx context.Context, l Location, o *operation[Req, Resp], at wire.At, in Req) (out Resp, err error) {
	at.Location = l.Name()
	err = l.do(ctx, question{o, at, in, &out})
	return out, err
}

func (o *operation[Req, Resp]) route() wire.Route { return o.Route }

// put puts an answer where a question wants it.
func put[Resp any](q question, out Resp, err error) error {
	*q.out.(*Resp) = out
	return err
}

func (o *operation[Req, Resp]) local(ctx context.Context, l *Local, q question) error {
	out, err := o.here(ctx, l, q.at, q.in.(Req))
	return put(q, out, err)
}

func (o *operation[Req, Resp]) remotely(ctx context.Context, r *Remote, q question) error {
	call := func(ctx context.Context, c *wire.Client) (Resp, error) { return o.Do(ctx, c, q.at, q.in.(Req)) }
	var out Resp
	var err error
	switch {
	case o.place == theNode:
		out, err = atNode(ctx, r, q.at.Node, call)
	case o.Reads() && !o.asksOne:
		out, err = read(ctx, r, call)
	default:
		out, err = operate(ctx, r, call)
	}
	if o.remote != nil {
		out, err = o.remote(r, out, err)
	}
	return put(q, out, err)
}

func (o *operation[Req, Resp]) located(ctx context.Context, m *Members, q question) error {
	in := q.in.(Req)
	var out Resp
	var err error
	if o.members != nil {
		out, err = o.members(ctx, m, o, q.at, in)
		return put(q, out, err)
	}
	switch o.place {
	case anyProcess:
		out, err = inProcess(ctx, m, o, q.at, in)
	case catalogLeader:
		out, err = atCatalogLeader(ctx, m, o, q.at, in)
	case theNode:
		out, err = atMember(ctx, m, o, q.at, in)
	case everyProcess:
		out, err = atEvery(ctx, m, o, q.at, in)
	case gathered:
		out, err = gather(ctx, m, o, q.at, in)
	}
	return put(q, out, err)
}

func (o *operation[Req, Resp]) hopped(ctx context.Context, m *Members, at wire.At, body json.RawMessage) (any, error) {
	var in Req
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, malformed(err)
	}
	return inProcess(ctx, m, o, at, in)
}
