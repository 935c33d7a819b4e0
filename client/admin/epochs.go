package admin

import (
	"context"

	"antipode/geo"
)

// Epochs says whether a location takes writes of accounts that have a copy: whether it knows that it still is their
// primary. Each process of a location finds that out by itself. The worst of several counts, so that no refusal is
// hidden behind a process that takes writes.
type Epochs struct {
	// Confirmed reports that it does. By is what confirmed it: exchange, node, witness, override or policy.
	Confirmed bool   `json:"confirmed"`
	By        string `json:"by,omitempty"`
	// Policy: the location goes on without an answer of the other one.
	Policy bool `json:"policy,omitempty"`
	// Witness: there is one, whose lease confirms them. Without one a location that runs and is cut off goes on to take
	// writes, whatever was promoted meanwhile.
	Witness bool `json:"witness"`
	// WitnessAddress is where that is, host:port. Absent without one.
	WitnessAddress string `json:"witness_address,omitempty"`
	// Waiting is why the other location, or the witness, gave no answer last. Absent if it did.
	Waiting string `json:"waiting,omitempty"`
	// UnconfirmedNodes are the nodes that answer and to which Confirmed does not apply, WaitingNodes those to which Waiting
	// does. Both are absent from a process of an earlier version.
	UnconfirmedNodes []string `json:"unconfirmed_nodes,omitempty"`
	WaitingNodes     []string `json:"waiting_nodes,omitempty"`
	// PartedSeconds is for how long nothing that the location sends to the other one has got there, calls neither. Absent if
	// something does.
	PartedSeconds float64 `json:"parted_seconds,omitempty"`
	// Refused are accounts that have a higher epoch at the other location, whatever Confirmed says.
	Refused []RefusedEpoch `json:"refused,omitempty"`
}

// WarnsOfEpochs begins the warning by which a process of an earlier version repeats, as text, that its Epochs are not
// confirmed.
const WarnsOfEpochs = "epochs are not confirmed"

// RefusedEpoch is an account whose writes are refused, with its epoch at the other location.
type RefusedEpoch struct {
	Account geo.Account `json:"account"`
	Epoch   Epoch       `json:"epoch"`
}

// ConfirmEpochs has a location take writes of accounts that have a copy although the other location does not answer. The
// caller knows that none of them was promoted there: otherwise both locations take writes, and one side's are lost.
func (c *Client) ConfirmEpochs(ctx context.Context, l geo.Location) (Epochs, error) {
	return CallConfirmEpochs.Do(ctx, c, At{Location: l}, None{})
}
