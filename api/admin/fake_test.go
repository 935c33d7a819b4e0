package admin

import (
	"context"
	"fmt"
	"sync"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

const (
	north = geo.Location("northcentralus")
	south = geo.Location("southcentralus")
)

// fake is a Process that writes down what was asked of it.
type fake struct {
	mu    sync.Mutex
	asked []string
	ready []wire.LocationReadiness
	// fail is returned by every operation.
	fail error
	// wait makes operations last until their context ends.
	wait bool
	// bug makes operations panic.
	bug func()
}

func newFake() *fake {
	return &fake{ready: []wire.LocationReadiness{{Name: north, Ready: true, Serving: true}, {Name: south, Ready: true, Serving: true}}}
}

// Ready implements Process.
func (f *fake) Ready(context.Context) []wire.LocationReadiness { return f.ready }

// Operations implements Process: some calls of each kind.
func (f *fake) Operations() []Operation {
	return []Operation{
		does[wire.None](f, wire.CallStatus.Route), does[wire.None](f, wire.CallEvents.Route), does[wire.None](f, wire.CallAccounts.Route),
		does[wire.None](f, wire.CallAccount.Route), does[wire.None](f, wire.CallKeys.Route), does[wire.LagQuery](f, wire.CallLag.Route),
		does[wire.NewAccount](f, wire.CallCreateAccount.Route), does[wire.None](f, wire.CallStartNode.Route), does[wire.None](f, wire.CallStopNode.Route),
		does[wire.None](f, wire.CallStartLocation.Route), does[wire.None](f, wire.CallStopLocation.Route),
		does[wire.RecoverRange](f, wire.CallRecoverRange.Route), does[wire.None](f, wire.CallCutLink.Route), does[wire.None](f, wire.CallHealLink.Route),
		does[wire.Delay](f, wire.CallDelayLink.Route),
	}
}

// does is an operation that notes its question.
func does[Req any](f *fake, r wire.Route) Operation {
	return Operation{Route: r, Creates: r == wire.CallCreateAccount.Route, Serve: func(ctx context.Context, q *Question) (any, error) {
		var in Req
		if any(in) != any(wire.None{}) {
			if err := q.Decode(&in); err != nil {
				return nil, err
			}
		}
		if f.bug != nil {
			f.bug()
		}
		if !q.Shows(q.At.Location) && q.At.Location != "" {
			return nil, OutOfScope("do", r.Name, q.Scope)
		}
		if err := f.note(ctx, "%s %+v %+v", r.Name, q.At, in); err != nil {
			return nil, Failed("do", r.Name, err)
		}
		if r.Name == wire.CallAccount.Name {
			return nil, Failed("find", string(q.At.Account), storageerr.AccountNotFound)
		}
		return wire.Keys{Key1: "a2V5MQ=="}, nil
	}}
}

func (f *fake) note(ctx context.Context, format string, args ...any) error {
	f.mu.Lock()
	if ctx.Err() != nil {
		format = "too late: " + format
	}
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	f.mu.Unlock()
	if f.wait {
		<-ctx.Done()
		return fmt.Errorf("wait for the node: %w", ctx.Err())
	}
	return f.fail
}

func (f *fake) calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}
