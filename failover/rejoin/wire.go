package rejoin

import (
	"encoding/json"
	"fmt"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
)

// takenBody is a Taken.
type takenBody struct {
	Account json.RawMessage `json:"account"`
	Opened  bool            `json:"opened"`
	Forks   []catalog.Fork  `json:"forks,omitempty"`
	Catalog bool            `json:"catalog,omitempty"`
}

// Encode encodes a Taken for the wire.
func (t Taken) Encode() ([]byte, error) {
	a, err := t.Account.Encode()
	if err != nil {
		return nil, err
	}
	return json.Marshal(takenBody{a, t.Opened, t.Forks, t.Catalog})
}

// ParseTaken parses the record of an account that the location other has taken from this one.
func ParseTaken(b []byte, here, other geo.Location) (t Taken, err error) {
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

// MethodLostRows is on the wire, too.
const MethodLostRows = "directory.LostRows"
