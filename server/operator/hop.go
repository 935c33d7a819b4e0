package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/stamp/fetch"
)

// methodCall is the call between the processes of a location that carries operator calls. It is on the wire: never rename it.
const methodCall = "admin.call"

// hop is an operator call from one process of a location to another.
type hop struct {
	// Name is that of the call: see wire.Route.
	Name string          `json:"name"`
	At   wire.At         `json:"at"`
	In   json.RawMessage `json:"in"`
}

// hopAnswer is how it ended. Out is there after an error, too, if that says something.
type hopAnswer struct {
	Out   json.RawMessage `json:"out,omitempty"`
	Error *hopError       `json:"error,omitempty"`
}

// hopError is an error that has a code.
type hopError struct {
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Message string `json:"message"`
	// Admin: it is an error of the admin API (wire.Error), not of the storage protocol.
	Admin bool `json:"admin,omitempty"`
}

// hopErrorOf is how an error goes to the process that asked. One that neither the protocol nor the admin API has a code for is
// returned: it goes as text.
func hopErrorOf(err error) (*hopError, error) {
	var said *wire.Error
	if errors.As(err, &said) {
		return &hopError{said.Status, said.Code, said.Message, true}, nil
	}
	row, ours := storageerr.Of(err)
	if !ours {
		return nil, err
	}
	return &hopError{row.Status, row.Code, row.Message, false}, nil
}

// err is the inverse of hopErrorOf.
func (e *hopError) err() error {
	switch {
	case e == nil:
		return nil
	case e.Admin:
		return &wire.Error{Status: e.Status, Code: e.Code, Message: e.Message}
	}
	return storageerr.Row{Status: e.Status, Code: e.Code, Message: e.Message}
}

// hopTo has the process of another node carry out an operation. Errors: stampnode.ErrUnreachable in the chain of one that was
// never asked.
func hopTo[Req, Resp any](ctx context.Context, m *Members, id geo.NodeID, o *operation[Req, Resp], at wire.At, in Req) (out Resp, err error) {
	question, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	body, err := json.Marshal(hop{o.Name, at, question})
	if err != nil {
		return out, err
	}
	body, err = m.o.Calls.CallProcess(ctx, id, methodCall, body)
	if errors.Is(err, fetch.ErrNoHandler) {
		err = otherVersion(wire.NodeName(m.Name(), id))
	}
	if err != nil {
		return out, err
	}
	var answer hopAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return out, err
	}
	if len(answer.Out) > 0 {
		if err := json.Unmarshal(answer.Out, &out); err != nil {
			return out, err
		}
	}
	return out, answer.Error.err()
}

// otherVersion is the error of a call that the process of a node does not know.
func otherVersion(node string) *wire.Error {
	return &wire.Error{Status: http.StatusConflict, Code: wire.CodeOtherVersion, Message: "node " + node + " does not know this call, and " +
		"nothing was done there: it runs another version, or is just starting; ask again once all nodes of the location run one version"}
}

func malformed(err error) error { return fmt.Errorf("malformed call of an operator: %w", err) }

// serve answers hopTo of the location's other processes.
func (m *Members) serve() {
	m.o.Calls.HandleProcess(methodCall, func(ctx context.Context, body []byte) ([]byte, error) {
		var h hop
		if err := json.Unmarshal(body, &h); err != nil {
			return nil, malformed(err)
		}
		o := locationCall(h.Name)
		if o == nil {
			return nil, fmt.Errorf("this version has no call %q", h.Name)
		}
		out, err := o.hopped(ctx, m, h.At, h.In)
		var answer hopAnswer
		if err != nil {
			if answer.Error, err = hopErrorOf(err); err != nil {
				return nil, err
			}
		}
		if answer.Out, err = json.Marshal(out); err != nil {
			return nil, err
		}
		return json.Marshal(answer)
	})
}
