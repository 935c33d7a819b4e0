package planned

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

// Encode encodes an Offer for the wire.
func (o Offer) Encode() ([]byte, error) {
	a, err := o.Account.Encode()
	if err != nil {
		return nil, err
	}
	return json.Marshal(offerBody{a, o.Ends})
}

// ParseOffer parses an account that the location other may offer here.
func ParseOffer(b []byte, here, other geo.Location) (o Offer, err error) {
	var body offerBody
	if err := json.Unmarshal(b, &body); err != nil {
		return o, fmt.Errorf("offer: %w", err)
	}
	a, err := ParseOffered(body.Account, here, other)
	if err != nil {
		return o, err
	}
	if !body.Ends.valid() {
		return o, fmt.Errorf("offer of account %s: malformed ends of its streams", a.Name)
	}
	return Offer{*a, body.Ends}, nil
}

// ParseOffered parses the record of an account that the location other may offer here.
func ParseOffered(b []byte, here, other geo.Location) (*catalog.Account, error) {
	return record.ParseOf(b, here, other, func(a *catalog.Account) bool {
		return a.Active && a.Redundancy.Geo() && a.Offered() && a.Operation.Move.Claim > a.Epoch
	})
}
