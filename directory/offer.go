package directory

import (
	"encoding/json"
	"fmt"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
)

// The bodies of the calls of a move on the wire.

// offerBody is an Offer.
type offerBody struct {
	Account json.RawMessage `json:"account"`
	Ends    heads           `json:"ends"`
}

func (o Offer) encode() ([]byte, error) {
	a, err := o.Account.Encode()
	if err != nil {
		return nil, err
	}
	return json.Marshal(offerBody{a, o.Ends})
}

// parseOffer parses an account that the location other may offer here.
func parseOffer(b []byte, here, other geo.Location) (o Offer, err error) {
	var body offerBody
	if err := json.Unmarshal(b, &body); err != nil {
		return o, fmt.Errorf("offer: %w", err)
	}
	a, err := parseOffered(body.Account, here, other)
	if err != nil {
		return o, err
	}
	if !body.Ends.valid() {
		return o, fmt.Errorf("offer of account %s: malformed ends of its streams", a.Name)
	}
	return Offer{*a, body.Ends}, nil
}

// parseOffered parses the record of an account that the location other may offer here.
func parseOffered(b []byte, here, other geo.Location) (*catalog.Account, error) {
	return record.ParseOf(b, here, other, func(a *catalog.Account) bool {
		return a.Active && a.Redundancy.Geo() && a.Offered() && a.Operation.Move.Claim > a.Epoch
	})
}

// takenBody is a Taken.
type takenBody struct {
	Account json.RawMessage `json:"account"`
	Opened  bool            `json:"opened"`
	Forks   []catalog.Fork  `json:"forks,omitempty"`
	Catalog bool            `json:"catalog,omitempty"`
}

func (t Taken) encode() ([]byte, error) {
	a, err := t.Account.Encode()
	if err != nil {
		return nil, err
	}
	return json.Marshal(takenBody{a, t.Opened, t.Forks, t.Catalog})
}

// parseTaken parses the record of an account that the location other has taken from this one.
func parseTaken(b []byte, here, other geo.Location) (t Taken, err error) {
	var body takenBody
	if err := json.Unmarshal(b, &body); err != nil {
		return t, fmt.Errorf("taken: %w", err)
	}
	a, err := record.ParseOf(body.Account, here, other, func(a *catalog.Account) bool {
		return a.Active && a.Redundancy.Geo() && a.Operation != nil && a.Operation.Kind == catalog.OperationTaken
	})
	if err != nil {
		return t, err
	}
	return Taken{*a, body.Opened, body.Forks, body.Catalog}, nil
}
