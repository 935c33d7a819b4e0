package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"antipode/geo"
)

// Epochs says whether a location takes writes of accounts that have a copy: whether it knows that it still is their
// primary.
type Epochs struct {
	// Confirmed reports that it does. By is what confirmed it: exchange, node, witness, override or policy.
	Confirmed bool   `json:"confirmed"`
	By        string `json:"by,omitempty"`
	// Policy: the location goes on without an answer of the other one.
	Policy bool `json:"policy,omitempty"`
	// Witness: there is one, whose lease confirms them. Without one a location that runs and is cut off goes on to take
	// writes, whatever was promoted meanwhile.
	Witness bool `json:"witness"`
	// Waiting is why the other location, or the witness, gave no answer last. Absent if it did.
	Waiting string `json:"waiting,omitempty"`
	// Refused are accounts that have a higher epoch at the other location, whatever Confirmed says.
	Refused []RefusedEpoch `json:"refused,omitempty"`
}

// WarnsOfEpochs begins a warning of a location whose Epochs are not confirmed.
const WarnsOfEpochs = "epochs are not confirmed"

// RefusedEpoch is an account whose writes are refused, with its epoch at the other location.
type RefusedEpoch struct {
	Account geo.Account `json:"account"`
	Epoch   Epoch       `json:"epoch"`
}

// OverrideEpochs has a location take writes of accounts that have a copy although the other location does not answer. The
// caller knows that none of them was promoted there: otherwise both locations take writes, and one side's are lost.
func (c *Client) OverrideEpochs(ctx context.Context, l geo.Location) (Epochs, error) {
	path := fmt.Sprintf("/v1/locations/%s/epochs/override", url.PathEscape(string(l)))
	return fetch[Epochs](ctx, c, http.MethodPost, path, nil)
}
