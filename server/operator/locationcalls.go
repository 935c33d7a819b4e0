package operator

import (
	"context"
	"slices"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/flow"
)

// The calls that a location carries out, each with what does it. Their routes and documents are in client/admin/calls.go.
var (
	showStatus = operation[wire.None, wire.Status]{
		Call: wire.CallStatus, place: gathered, merge: mergeStatus, silent: unreachableNode, remote: checkStatus, earlier: earlierStatusOf,
		here: func(ctx context.Context, l *Local, _ wire.At, _ wire.None) (wire.Status, error) { return l.status(ctx) },
	}
	listEvents = operation[wire.None, wire.EventList]{
		Call: wire.CallEvents, place: gathered, merge: mergeEvents, remote: silentEvents, earlier: earlierEventsOf,
		silent: func(node string) wire.EventList { return wire.EventList{Silent: []string{node}} },
		here: func(_ context.Context, l *Local, _ wire.At, _ wire.None) (wire.EventList, error) {
			return wire.EventList{Events: l.view().Events()}, nil
		},
	}

	listAccounts = operation[wire.None, wire.AccountList]{
		Call: wire.CallAccounts,
		here: func(ctx context.Context, l *Local, _ wire.At, _ wire.None) (wire.AccountList, error) {
			return l.accounts(ctx)
		},
	}
	showAccount = operation[wire.None, wire.AccountInfo]{
		Call: wire.CallAccount,
		here: func(ctx context.Context, l *Local, at wire.At, _ wire.None) (wire.AccountInfo, error) {
			return l.account(ctx, at.Account)
		},
	}
	showKeys = operation[wire.None, wire.Keys]{
		Call: wire.CallKeys,
		here: func(ctx context.Context, l *Local, at wire.At, _ wire.None) (wire.Keys, error) {
			return l.keys(ctx, at.Account)
		},
	}
	createAccount = operation[wire.NewAccount, wire.AccountInfo]{
		Call: wire.CallCreateAccount, place: catalogLeader,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.NewAccount) (wire.AccountInfo, error) {
			return described(l.Location.CreateAccount(ctx, in))
		},
	}
	updateAccount = operation[wire.UpdateAccount, wire.AccountUpdated]{
		Call: wire.CallUpdateAccount, place: catalogLeader,
		here: func(ctx context.Context, l *Local, at wire.At, in wire.UpdateAccount) (wire.AccountUpdated, error) {
			return l.update(ctx, at.Account, in)
		},
	}

	showFlows = operation[wire.None, wire.Flows]{
		Call: wire.CallFlows, place: gathered, merge: mergeFlows, remote: onlyFlow, earlier: earlierFlowsOf,
		silent: func(node string) wire.Flows { return wire.Flows{Flows: []wire.Flow{{Silent: []string{node}}}} },
		here: func(ctx context.Context, l *Local, at wire.At, _ wire.None) (wire.Flows, error) {
			f, err := l.Location.Flow(ctx, at.Account)
			return wire.Flows{Flows: []wire.Flow{f}}, err
		},
	}
	showVerify = operation[wire.None, wire.Verify]{
		Call: wire.CallVerify, asksOne: true,
		here: func(_ context.Context, l *Local, at wire.At, _ wire.None) (wire.Verify, error) {
			return l.Location.Verified(at.Account)
		},
	}
	startVerify = operation[wire.VerifyQuery, wire.Verify]{
		Call: wire.CallStartVerify,
		here: func(ctx context.Context, l *Local, at wire.At, in wire.VerifyQuery) (wire.Verify, error) {
			return l.Location.StartVerify(ctx, at.Account, in)
		},
	}

	showClone = operation[wire.None, wire.Clone]{
		Call: wire.CallClone, members: showMembersClone,
		here: func(_ context.Context, l *Local, at wire.At, _ wire.None) (wire.Clone, error) {
			return l.Location.Clone(at.Account)
		},
	}
	openClone = operation[wire.OpenClone, wire.Clone]{
		Call: wire.CallOpenClone, members: openMembersClone,
		here: func(ctx context.Context, l *Local, at wire.At, in wire.OpenClone) (wire.Clone, error) {
			return l.Location.OpenClone(ctx, at.Account, in)
		},
	}
	dropClone = operation[wire.None, wire.Clone]{
		Call: wire.CallDropClone, members: dropMembersClone,
		here: func(ctx context.Context, l *Local, at wire.At, _ wire.None) (wire.Clone, error) {
			return l.Location.DropClone(ctx, at.Account)
		},
	}

	listReservations = operation[wire.None, wire.Reservations]{
		Call: wire.CallReservations,
		here: func(ctx context.Context, l *Local, _ wire.At, _ wire.None) (wire.Reservations, error) {
			return l.reservations(ctx)
		},
	}
	freeReservation = operation[wire.None, wire.Reservations]{
		Call: wire.CallFreeReservation,
		here: func(ctx context.Context, l *Local, at wire.At, _ wire.None) (wire.Reservations, error) {
			return l.free(ctx, at.Account)
		},
	}
	listNames = operation[wire.NamesQuery, wire.Names]{
		Call: wire.CallNames,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.NamesQuery) (wire.Names, error) {
			return l.Location.Names(ctx, in.Since, in.After)
		},
	}

	startNode = operation[wire.None, wire.Changed]{
		Call: wire.CallStartNode, place: theNode,
		here: func(_ context.Context, l *Local, at wire.At, _ wire.None) (wire.Changed, error) {
			return l.setNode(at, wire.Running, l.view().StartNode)
		},
		process: func(
			ctx context.Context, m *Members, _ *operation[wire.None, wire.Changed], at wire.At, _ wire.None,
		) (wire.Changed, error) {
			return wire.Changed{Name: at.Node, State: wire.Running}, m.o.Server.Begin(ctx)
		},
	}
	stopNode = operation[wire.None, wire.Changed]{
		Call: wire.CallStopNode, place: theNode,
		here: func(_ context.Context, l *Local, at wire.At, _ wire.None) (wire.Changed, error) {
			return l.setNode(at, wire.Stopped, l.view().StopNode)
		},
		process: func(
			_ context.Context, m *Members, _ *operation[wire.None, wire.Changed], at wire.At, _ wire.None,
		) (wire.Changed, error) {
			return wire.Changed{Name: at.Node, State: wire.Stopped}, m.o.Server.Stop()
		},
	}
	nodeSupport = operation[wire.None, wire.Support]{
		Call: wire.CallNodeSupport, place: theNode,
		here: func(_ context.Context, l *Local, at wire.At, _ wire.None) (wire.Support, error) { return l.support(at) },
	}
	startLocation = operation[wire.None, wire.Changed]{
		Call: wire.CallStartLocation, place: everyProcess, process: startProcess,
		here: func(ctx context.Context, l *Local, at wire.At, _ wire.None) (wire.Changed, error) {
			return wire.Changed{Name: string(at.Location), State: wire.Running}, l.Server.Begin(ctx)
		},
	}
	stopLocation = operation[wire.None, wire.Changed]{
		Call: wire.CallStopLocation, place: everyProcess, process: stopProcess,
		here: func(_ context.Context, l *Local, at wire.At, _ wire.None) (wire.Changed, error) {
			return wire.Changed{Name: string(at.Location), State: wire.Stopped}, l.Server.Stop()
		},
	}

	recoverRange = operation[wire.RecoverRange, wire.RangeRecovered]{
		Call: wire.CallRecoverRange, // The best survivor may be on any node that the stamp reaches.
		here: func(ctx context.Context, l *Local, at wire.At, in wire.RecoverRange) (wire.RangeRecovered, error) {
			return l.Location.RecoverRange(ctx, at.Range, in)
		},
	}
	overrideEpochs = operation[wire.None, wire.Epochs]{
		Call: wire.CallOverrideEpochs, members: overrideEverywhere, process: overrideHere, passesAway: true,
		here: func(ctx context.Context, l *Local, _ wire.At, _ wire.None) (wire.Epochs, error) {
			return l.Location.OverrideEpochs(ctx)
		},
	}
	showLocationFailover = operation[wire.None, wire.LocationFailover]{
		Call: wire.CallLocationFailover,
		here: func(ctx context.Context, l *Local, _ wire.At, _ wire.None) (wire.LocationFailover, error) {
			return l.Location.LocationFailover(ctx)
		},
	}
	failLocationOver = operation[wire.Failover, wire.LocationFailover]{
		Call: wire.CallFailLocationOver,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.Failover) (wire.LocationFailover, error) {
			return l.Location.FailLocationOver(ctx, in)
		},
	}

	listForks = operation[wire.None, wire.Forks]{
		Call: wire.CallForks,
		here: func(ctx context.Context, l *Local, _ wire.At, _ wire.None) (wire.Forks, error) {
			return l.Location.Forks(ctx)
		},
	}
	resumeStream = operation[wire.StreamName, wire.Resumed]{
		Call: wire.CallResume,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.StreamName) (wire.Resumed, error) {
			return l.Location.ResumeStream(ctx, in)
		},
	}
	resolveFork = operation[wire.ResolveFork, wire.ForkResolved]{
		Call: wire.CallResolve,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.ResolveFork) (wire.ForkResolved, error) {
			return l.Location.ResolveFork(ctx, in)
		},
	}
	copyAlone = operation[wire.AloneQuery, wire.CopyAlone]{
		Call: wire.CallCopyAlone,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.AloneQuery) (wire.CopyAlone, error) {
			return l.Location.CopyAlone(ctx, in.Account)
		},
	}
	listFound = operation[wire.FoundQuery, wire.Found]{
		Call: wire.CallFound,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.FoundQuery) (wire.Found, error) {
			return l.Location.Found(ctx, in)
		},
	}
	readFound = operation[wire.FoundChunk, wire.FoundPayload]{
		Call: wire.CallFoundPayload,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.FoundChunk) (wire.FoundPayload, error) {
			return l.Location.FoundPayload(ctx, in)
		},
	}
	dropFound = operation[wire.DropFound, wire.FoundDropped]{
		Call: wire.CallDropFound,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.DropFound) (wire.FoundDropped, error) {
			return l.Location.DropFound(ctx, in)
		},
	}
	listLost = operation[wire.LostQuery, wire.Lost]{
		Call: wire.CallLost,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.LostQuery) (wire.Lost, error) {
			return l.Location.Lost(ctx, in)
		},
	}
	dropLost = operation[wire.DropLost, wire.LostDropped]{
		Call: wire.CallDropLost,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.DropLost) (wire.LostDropped, error) {
			return l.Location.DropLost(ctx, in)
		},
	}

	raiseLevels = operation[wire.Levels, wire.Levels]{
		Call: wire.CallRaiseLevels,
		here: func(ctx context.Context, l *Local, _ wire.At, in wire.Levels) (wire.Levels, error) {
			return in, l.Location.RaiseLevels(ctx, in)
		},
	}

	// The link has an end in each process. One that cannot be reached comes back with a link that is up.
	cutLink = operation[wire.None, wire.Link]{
		Call: wire.CallCutLink, place: everyProcess, passesAway: true,
		here: func(_ context.Context, l *Local, _ wire.At, _ wire.None) (wire.Link, error) {
			return l.setLink(wire.Link{State: wire.LinkCut})
		},
	}
	healLink = operation[wire.None, wire.Link]{
		Call: wire.CallHealLink, place: everyProcess, passesAway: true,
		here: func(_ context.Context, l *Local, _ wire.At, _ wire.None) (wire.Link, error) {
			return l.setLink(wire.Link{State: wire.LinkUp})
		},
	}
	delayLink = operation[wire.Delay, wire.Link]{
		Call: wire.CallDelayLink, place: everyProcess, passesAway: true,
		here: func(_ context.Context, l *Local, _ wire.At, in wire.Delay) (wire.Link, error) {
			return l.setLink(wire.Link{State: wire.LinkDelayed, DelaySeconds: in.Seconds})
		},
	}
)

// locationCalls has all of them.
var locationCalls = []carried{
	&showStatus, &listEvents, &listAccounts, &showAccount, &showKeys, &createAccount, &updateAccount, &showFlows, &showVerify, &startVerify,
	&showClone, &openClone, &dropClone, &listReservations, &freeReservation, &listNames, &startNode, &stopNode, &nodeSupport,
	&startLocation, &stopLocation, &recoverRange, &overrideEpochs, &showLocationFailover, &failLocationOver, &listForks, &resumeStream,
	&resolveFork, &copyAlone, &listFound, &readFound, &dropFound, &listLost, &dropLost, &raiseLevels, &cutLink, &healLink, &delayLink,
}

// locationCall returns the one of a name, nil for none.
func locationCall(name string) carried {
	i := slices.IndexFunc(locationCalls, func(c carried) bool { return c.route().Name == name })
	if i < 0 {
		return nil
	}
	return locationCalls[i]
}

// mergeEvents lists the events of all processes.
func mergeEvents(of []wire.EventList) (out wire.EventList) {
	for _, l := range of {
		out.Events, out.Silent = append(out.Events, l.Events...), append(out.Silent, l.Silent...)
	}
	return out
}

// mergeFlows makes one flow of those of the processes of a location.
func mergeFlows(of []wire.Flows) wire.Flows {
	var all []wire.Flow
	for _, f := range of {
		all = append(all, f.Flows...)
	}
	return wire.Flows{Flows: []wire.Flow{flow.Merge(all)}}
}

// unreachableNode is the status that a process shows that does not answer.
func unreachableNode(node string) wire.Status {
	return wire.Status{Locations: []wire.Location{{Nodes: []wire.Node{{Name: node, State: wire.Unreachable}}}}}
}

// setLink changes this end of the link.
func (l *Local) setLink(to wire.Link) (wire.Link, error) {
	l.Location.SetLink(to)
	return to, nil
}

// setNode starts or stops a node of this process.
func (l *Local) setNode(at wire.At, to wire.State, set func(geo.NodeID) error) (wire.Changed, error) {
	_, id, err := wire.ParseNodeName(at.Node)
	if err == nil {
		err = set(id)
	}
	return wire.Changed{Name: at.Node, State: to}, err
}
