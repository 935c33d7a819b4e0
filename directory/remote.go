package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"antipode/directory/batch"
	"antipode/directory/record"
	"antipode/failover/planned"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/replication/link"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// The methods are on the wire: never rename them.
const (
	methodReserve = "directory.Reserve"
	methodPrepare = "directory.Prepare"
	methodOffer   = "directory.Offer"
	methodRefuse  = "directory.Refuse"
	methodAdopt   = "directory.Adopt"
	methodRejoin  = "directory.Rejoin"
)

// peerAnswer is the outcome of a call. Errors of the call itself are apart.
type peerAnswer struct {
	// Status, Code and Message are the protocol's error. Code is empty after a success.
	Status  int    `json:"status,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Seen is set by a PassedError.
	Seen *seenEpoch `json:"seen,omitempty"`
	// Diverged is set by ErrDiverged.
	Diverged bool `json:"diverged,omitempty"`
	// Rewinds is set by errRewinds.
	Rewinds bool `json:"rewinds,omitempty"`
	// Catalog is set by errCatalogLost.
	Catalog bool `json:"catalog,omitempty"`
	// Account is the record of an account as the catalog stores it, for the methods that return one.
	Account json.RawMessage `json:"account,omitempty"`
}

// seenEpoch is a geo.Epoch on the wire.
type seenEpoch struct {
	Number   geo.EpochNumber `json:"number"`
	Location geo.Location    `json:"location"`
}

// remotePeer calls the directory of the other location.
type remotePeer struct{ c link.Caller }

// NewRemotePeer returns the directory of the paired location, where ServePeer answers.
func NewRemotePeer(c link.Caller) Peer { return remotePeer{&batch.SharedCaller{Caller: c}} }

// Reserve implements Peer.
func (p remotePeer) Reserve(ctx context.Context, a catalog.Account) error {
	return p.call(ctx, methodReserve, a)
}

// Announce implements Peer.
func (p remotePeer) Announce(ctx context.Context, a catalog.Account) error {
	return p.call(ctx, record.MethodAnnounce, a)
}

// Prepare implements Peer.
func (p remotePeer) Prepare(ctx context.Context, a catalog.Account) error {
	return p.call(ctx, methodPrepare, a)
}

// Offer implements Peer.
func (p remotePeer) Offer(ctx context.Context, o planned.Offer) (*catalog.Account, error) {
	body, err := o.Encode()
	if err != nil {
		return nil, err
	}
	a, err := p.ask(ctx, methodOffer, body)
	if err == nil && a == nil {
		err = fmt.Errorf("%s: an answer without an account", methodOffer)
	}
	return a, err
}

// Refuse implements Peer.
func (p remotePeer) Refuse(ctx context.Context, a catalog.Account) (*catalog.Account, error) {
	body, err := a.Encode()
	if err != nil {
		return nil, err
	}
	return p.ask(ctx, methodRefuse, body)
}

// Adopt implements Peer.
func (p remotePeer) Adopt(ctx context.Context, t rejoin.Taken) error {
	body, err := t.Encode()
	if err == nil {
		_, err = p.ask(ctx, methodAdopt, body)
	}
	return err
}

// Rejoin implements Peer.
func (p remotePeer) Rejoin(ctx context.Context, a catalog.Account) error {
	return p.call(ctx, methodRejoin, a)
}

// LostRows implements Peer.
func (p remotePeer) LostRows(ctx context.Context, a catalog.Account, r geo.RangeID, from rejoin.LostRow) (out rejoin.LostRows, err error) {
	of, err := a.Encode()
	if err != nil {
		return out, err
	}
	body, err := json.Marshal(rejoin.LostRowsBody{Account: of, Range: r, From: from})
	if err != nil {
		return out, err
	}
	b, err := p.c.Call(ctx, rejoin.MethodLostRows, body)
	if err != nil {
		return out, fmt.Errorf("%s: %w", rejoin.MethodLostRows, err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, fmt.Errorf("%s: malformed answer: %w", rejoin.MethodLostRows, err)
	}
	return out, nil
}

// call calls a method of the peer. The body is the account as the catalog stores it.
func (p remotePeer) call(ctx context.Context, method string, a catalog.Account) error {
	body, err := a.Encode()
	if err == nil {
		_, err = p.ask(ctx, method, body)
	}
	return err
}

// ask calls a method of the peer. It returns the account in the answer, nil for none.
func (p remotePeer) ask(ctx context.Context, method string, body []byte) (a *catalog.Account, err error) {
	b, err := p.c.Call(ctx, method, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	var out peerAnswer
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, fmt.Errorf("%s: malformed answer: %w", method, err)
	}
	switch {
	case out.Seen != nil:
		return nil, &record.PassedError{Seen: geo.Epoch(*out.Seen)}
	case out.Diverged:
		return nil, rejoin.ErrDiverged
	case out.Rewinds:
		return nil, rejoin.ErrRewinds
	case out.Catalog:
		return nil, rejoin.ErrCatalogLost
	case out.Code != "":
		return nil, storageerr.Row{Status: out.Status, Code: out.Code, Message: out.Message}
	case out.Account == nil:
		return nil, nil
	}
	if a, err = catalog.ParseAccount(out.Account); err != nil {
		return nil, fmt.Errorf("%s: malformed answer: %w", method, err)
	}
	return a, nil
}

// ServePeer answers remote peers for the directory d, on the node that leads the catalog. Other
// nodes redirect callers there with the error that elsewhere returns. elsewhere may be nil.
func ServePeer(h link.Handlers, l *link.Link, d *Directory, elsewhere link.Elsewhere) {
	open := func() error {
		if cut, _ := l.State(); cut {
			return link.ErrCut
		}
		if elsewhere != nil {
			return elsewhere(d.stamp.Route().Catalog())
		}
		return nil
	}
	handlers := map[string]func(ctx context.Context, body []byte) ([]byte, error){}
	handle := func(method string, f func(ctx context.Context, body []byte) ([]byte, error)) {
		handlers[method] = func(ctx context.Context, body []byte) ([]byte, error) {
			if err := open(); err != nil {
				return nil, err
			}
			return f(ctx, body)
		}
		h.Handle(method, handlers[method])
	}
	answer := func(method string, f func(ctx context.Context, body []byte) (*catalog.Account, error)) {
		handle(method, func(ctx context.Context, body []byte) ([]byte, error) {
			a, err := f(ctx, body)
			out, err := peerAnswerOf(a, err)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", method, err)
			}
			return json.Marshal(out)
		})
	}
	h.Handle(batch.Method, func(ctx context.Context, body []byte) ([]byte, error) {
		if err := open(); err != nil {
			return nil, err
		}
		return batch.Answer(ctx, body, handlers)
	})
	serve := func(method string, parse func(body []byte, here, other geo.Location) (*catalog.Account, error), f func(context.Context, catalog.Account) error) {
		answer(method, func(ctx context.Context, body []byte) (*catalog.Account, error) {
			a, err := parse(body, d.stamp.Location(), d.other)
			if err != nil {
				return nil, err
			}
			return nil, f(ctx, *a)
		})
	}
	serve(methodReserve, parseReserve, d.Reserve)
	serve(record.MethodAnnounce, parseAnnounced, d.Announce)
	serve(methodPrepare, parsePrepared, d.Prepare)
	answer(methodOffer, func(ctx context.Context, body []byte) (*catalog.Account, error) {
		o, err := planned.ParseOffer(body, d.stamp.Location(), d.other)
		if err != nil {
			return nil, err
		}
		return d.Offer(ctx, o)
	})
	answer(methodRefuse, func(ctx context.Context, body []byte) (*catalog.Account, error) {
		a, err := planned.ParseOffered(body, d.stamp.Location(), d.other)
		if err != nil {
			return nil, err
		}
		return d.Refuse(ctx, *a)
	})
	serve(methodRejoin, rejoin.ParseRejoined, d.Rejoin)
	handle(rejoin.MethodLostRows, d.rejoin.AnswerLostRows)
	answer(methodAdopt, func(ctx context.Context, body []byte) (*catalog.Account, error) {
		t, err := rejoin.ParseTaken(body, d.stamp.Location(), d.other)
		if err != nil {
			return nil, err
		}
		return nil, d.rejoin.Adopt(ctx, t)
	})
}

// peerAnswerOf returns the answer that says what a method returned; an error that is none of the
// protocol's stays one.
func peerAnswerOf(a *catalog.Account, err error) (peerAnswer, error) {
	var passed *record.PassedError
	if errors.As(err, &passed) {
		seen := seenEpoch(passed.Seen)
		return peerAnswer{Seen: &seen}, nil
	}
	if errors.Is(err, rejoin.ErrDiverged) {
		return peerAnswer{Diverged: true}, nil
	}
	if errors.Is(err, rejoin.ErrRewinds) {
		return peerAnswer{Rewinds: true}, nil
	}
	if errors.Is(err, rejoin.ErrCatalogLost) { // For a former version it is an error, too.
		busy := storageerr.ServerBusy
		return peerAnswer{Catalog: true, Status: busy.Status, Code: busy.Code, Message: busy.Message}, nil
	}
	if err == nil && a == nil {
		return peerAnswer{}, nil
	}
	if err == nil {
		b, err := a.Encode()
		return peerAnswer{Account: b}, err
	}
	row, ours := storageerr.Of(err)
	if !ours {
		return peerAnswer{}, err
	}
	return peerAnswer{Status: row.Status, Code: row.Code, Message: row.Message}, nil
}

// parseReserve parses an account that the location other may reserve here.
func parseReserve(body []byte, here, other geo.Location) (*catalog.Account, error) {
	return record.ParseOf(body, here, other, func(a *catalog.Account) bool { return !a.Active })
}

// parseAnnounced parses a complete account whose primary is the location other.
func parseAnnounced(body []byte, here, other geo.Location) (*catalog.Account, error) {
	return record.ParseOf(body, here, other, func(a *catalog.Account) bool { return a.Active })
}

// parsePrepared parses an account of the location other whose copy here begins.
func parsePrepared(body []byte, here, other geo.Location) (*catalog.Account, error) {
	return record.ParseOf(body, here, other, func(a *catalog.Account) bool { return a.Active && a.Bootstraps() })
}
