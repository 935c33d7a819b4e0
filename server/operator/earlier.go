package operator

import (
	"context"
	"encoding/json"
	"errors"

	wire "antipode/client/admin"
	"antipode/geo"
)

// What a location shows while its nodes are upgraded one by one: a node of the earlier version has a call of its own for each
// of three documents, and none of the others. Both answer each other, so that a status during an upgrade is whole. It goes with
// the next version.

// The calls of the earlier version.
const (
	methodView   = "admin.view"
	methodEvents = "admin.events"
	methodFlow   = "admin.flow"
)

// earlierStatus is the answer to methodView.
type earlierStatus struct {
	Location wire.Location        `json:"location"`
	Link     wire.Link            `json:"link"`
	Accounts []wire.AccountStatus `json:"accounts"`
}

// askEarlier asks a node of the earlier version, if err is what it has answered to the question of this version.
func askEarlier(ctx context.Context, m *Members, id geo.NodeID, method string, question []byte, into any, err error) error {
	var said *wire.Error
	if !errors.As(err, &said) || said.Code != wire.CodeOtherVersion {
		return err
	}
	body, earlier := m.o.Calls.CallProcess(ctx, id, method, question)
	if earlier != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

func earlierStatusOf(ctx context.Context, m *Members, id geo.NodeID, _ wire.At, err error) (wire.Status, error) {
	var s earlierStatus
	if err := askEarlier(ctx, m, id, methodView, nil, &s, err); err != nil {
		return wire.Status{}, err
	}
	return wire.Status{Locations: []wire.Location{s.Location}, Link: s.Link, Accounts: s.Accounts}, nil
}

func earlierEventsOf(ctx context.Context, m *Members, id geo.NodeID, _ wire.At, err error) (out wire.EventList, _ error) {
	return out, askEarlier(ctx, m, id, methodEvents, nil, &out.Events, err)
}

func earlierFlowsOf(ctx context.Context, m *Members, id geo.NodeID, at wire.At, err error) (wire.Flows, error) {
	out := wire.Flows{Flows: make([]wire.Flow, 1)}
	return out, askEarlier(ctx, m, id, methodFlow, []byte(at.Account), &out.Flows[0], err)
}

// serveEarlier answers nodes of the earlier version.
func (m *Members) serveEarlier() {
	serve := func(method string, f func(ctx context.Context, question []byte) (any, error)) {
		m.o.Calls.HandleProcess(method, func(ctx context.Context, question []byte) ([]byte, error) {
			out, err := f(ctx, question)
			if err != nil {
				return nil, err
			}
			return json.Marshal(out)
		})
	}
	serve(methodView, func(ctx context.Context, _ []byte) (any, error) {
		s, err := statusOf(ctx, m.o.Own)
		if err != nil || len(s.Locations) != 1 {
			return nil, err
		}
		return earlierStatus{s.Locations[0], s.Link, s.Accounts}, nil
	})
	serve(methodEvents, func(ctx context.Context, _ []byte) (any, error) {
		list, err := ask(ctx, m.o.Own, &listEvents, wire.At{}, wire.None{})
		return list.Events, err
	})
	serve(methodFlow, func(ctx context.Context, name []byte) (any, error) { return flowOf(ctx, m.o.Own, geo.Account(name)) })
}

// earlierCloneOrder is what a node of the earlier version asks with methodClones: to open a clone of an account, to drop it, or,
// without either, to list all.
type earlierCloneOrder struct {
	Open *json.RawMessage `json:"open"`
	Drop bool             `json:"drop"`
}

// earlierRefusal is how such a node reads that it is refused.
func earlierRefusal(e *wire.Error) any {
	return struct {
		Status  int    `json:"status"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}{e.Status, e.Code, e.Message}
}
