package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/replication/link"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// methodReserve is on the wire: never rename it.
const methodReserve = "directory.Reserve"

// reserveAnswer is the outcome of a reservation. Errors of the call are apart.
type reserveAnswer struct {
	// Status, Code and Message are the protocol's error. Code is empty after a success.
	Status  int    `json:"status,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Seen is set by a PassedError.
	Seen *seenEpoch `json:"seen,omitempty"`
}

// seenEpoch is a geo.Epoch on the wire.
type seenEpoch struct {
	Number   geo.EpochNumber `json:"number"`
	Location geo.Location    `json:"location"`
}

// remotePeer calls the directory of the other location.
type remotePeer struct{ c link.Caller }

// NewRemotePeer returns the directory of the paired location, where ServePeer answers.
func NewRemotePeer(c link.Caller) Peer { return remotePeer{c} }

// Reserve implements Peer. The body is the account as the catalog stores it.
func (p remotePeer) Reserve(ctx context.Context, a catalog.Account) error {
	body, err := a.Encode()
	if err != nil {
		return err
	}
	b, err := p.c.Call(ctx, methodReserve, body)
	if err != nil {
		return fmt.Errorf("%s: %w", methodReserve, err)
	}
	var out reserveAnswer
	if err := json.Unmarshal(b, &out); err != nil {
		return fmt.Errorf("%s: malformed answer: %w", methodReserve, err)
	}
	if out.Seen != nil {
		return &PassedError{geo.Epoch(*out.Seen)}
	}
	if out.Code != "" {
		return storageerr.Row{Status: out.Status, Code: out.Code, Message: out.Message}
	}
	return nil
}

// ServePeer answers remote peers for the directory d, on the node that leads the catalog. Other
// nodes redirect callers there with the error that elsewhere returns. elsewhere may be nil.
func ServePeer(h link.Handlers, l *link.Link, d *Directory, elsewhere link.Elsewhere) {
	h.Handle(methodReserve, func(ctx context.Context, body []byte) ([]byte, error) {
		if cut, _ := l.State(); cut {
			return nil, link.ErrCut
		}
		if elsewhere != nil {
			if err := elsewhere(geo.FirstRange(geo.Catalog)); err != nil {
				return nil, err
			}
		}
		a, err := parseReserve(body, d.stamp.Location(), d.other)
		if err != nil {
			return nil, err
		}
		out, err := reserveAnswerOf(d.Reserve(ctx, *a))
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	})
}

// reserveAnswerOf returns the answer that says what Reserve returned; an error that is none of the
// protocol's stays one.
func reserveAnswerOf(err error) (reserveAnswer, error) {
	var passed *PassedError
	if errors.As(err, &passed) {
		seen := seenEpoch(passed.Seen)
		return reserveAnswer{Seen: &seen}, nil
	}
	if err == nil {
		return reserveAnswer{}, nil
	}
	row, ours := storageerr.Of(err)
	if !ours {
		return reserveAnswer{}, err
	}
	return reserveAnswer{Status: row.Status, Code: row.Code, Message: row.Message}, nil
}

// parseReserve parses an account that the location other may reserve here.
func parseReserve(body []byte, here, other geo.Location) (*catalog.Account, error) {
	a, err := catalog.ParseAccount(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", methodReserve, err)
	}
	if !a.Name.Valid() || a.Epoch == 0 || a.Created == 0 || a.Active || a.Primary != other || a.Secondary != here {
		return nil, fmt.Errorf("%s: account %q of %s is not one that %s may reserve here", methodReserve, a.Name, a.Primary, other)
	}
	return a, nil
}
