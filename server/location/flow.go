package location

import (
	"context"
	"errors"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/replication/ship"
	"antipode/server/flow"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// flowAccountWait bounds how long Flow waits for the catalog.
const flowAccountWait = time.Second

// Flow returns what this process knows of the streams of an account: of those that it numbers, at the
// ranges that it leads, and of those that it receives. Nothing in it waits for a lease, so that it answers
// while ranges have no leader.
func (l *Location) Flow(ctx context.Context, name geo.Account) (wire.Flow, error) {
	stamp, err := l.Stamp()
	if err != nil {
		return wire.Flow{}, err
	}
	a, err := l.knownAccount(ctx, stamp, name)
	if err != nil {
		return wire.Flow{}, err
	}
	now := l.o.Clock.Now()
	out := wire.Flow{Location: l.o.Name, Account: DescribeAccount(a), At: wire.Time{Time: now}, Link: l.Link()}
	out.Account.OperationWaits = l.operationWaits(a)
	receives := a.Secondary == l.o.Name && (l.Whole() || l.Receives())
	if receives {
		out.Services = l.AccountStatus(ctx, a).Services
		out.Speeds = l.speedsOf(name)
	}
	for _, d := range l.o.Route.Ranges() {
		r := wire.RangeFlow{Range: d.ID, Service: d.Service.String()}
		if node, known := stamp.LeaderNode(d.ID); known {
			r.Leader = wire.NodeName(l.o.Name, node)
		}
		if lead := stamp.Leader(d.ID); lead != nil {
			if n := stamp.Node(lead.Leader()); n != nil {
				r.Lead = flow.Lead(l.o.Name, n, d.ID)
			}
			if a.Primary == l.o.Name {
				r.Source = l.sourceFlow(lead, name)
			}
		}
		if receives {
			r.Receiver = l.receiverFlow(&out, stamp, d, a)
		}
		out.Ranges = append(out.Ranges, r)
	}
	return out, nil
}

// receiverFlow is how far a range here has applied the streams of an account, nil if that is not known. A description
// has one source range for each range.
func (l *Location) receiverFlow(out *wire.Flow, stamp *stamp.Stamp, d route.Range, a *catalog.Account) *wire.ReceiverFlow {
	of := l.sourcesOf(d, a.Primary)
	if len(of) != 1 {
		return nil
	}
	p, known := stamp.ProgressNow(d.ID, of[0], a.Name)
	if !known {
		return nil
	}
	to := flow.Receiver(a.Name, p)
	if receiver := l.receiving.receiver.Load(); receiver != nil {
		flow.Add(out, to, receiver.View(of[0].Range, a.Name))
	}
	return to
}

// knownAccount returns an account; while the catalog does not answer, as a replica of it in this process
// has it, which may be behind.
func (l *Location) knownAccount(ctx context.Context, stamp *stamp.Stamp, name geo.Account) (*catalog.Account, error) {
	ctx, cancel := context.WithTimeout(ctx, flowAccountWait)
	defer cancel()
	a, err := l.Directory.Account(ctx, name)
	if err == nil {
		return a, nil
	}
	if errors.Is(err, storageerr.AccountNotFound) {
		return nil, err
	}
	for _, id := range l.o.Local {
		n := stamp.Node(id)
		if n == nil || n.Range(l.o.Route.Catalog()) == nil {
			continue
		}
		if a, readErr := catalog.GetAccount(n.Range(l.o.Route.Catalog()).State(), name); readErr == nil && a.Active {
			return a, nil
		}
	}
	return nil, err
}

// sourceFlow is what the leader of a range knows of the streams that it numbers.
func (l *Location) sourceFlow(lead *ranges.Range, name geo.Account) *wire.SourceFlow {
	var v ship.View
	if s := l.Shipper(lead.ID()); s != nil {
		v = s.View(name)
	}
	heads, _ := lead.Machine.Heads()
	return flow.Source(name, heads, lead.Machine.Gate(name).Epoch, v)
}

// speedsOf is how fast the Last Sync Time of each service moves, as far as that is known.
func (l *Location) speedsOf(name geo.Account) map[string]float64 {
	out := map[string]float64{}
	for _, s := range geo.Services {
		if v, known := l.watching.speeds.speed(serviceKey{name, s}); known {
			out[s.String()] = v / geo.TicksPerSecond
		}
	}
	return out
}
