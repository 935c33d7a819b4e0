package admin

import (
	"context"

	"antipode/geo"
)

// RecoverRange is what an operator agrees to when a range is re-formed from one replica.
type RecoverRange struct {
	// AcceptLoss must be true: what only the other replicas held is lost.
	AcceptLoss bool `json:"accept_loss"`
	// Untrusted allows a replica that lost what it had fsynced, where no trusted one is left.
	Untrusted bool `json:"untrusted,omitempty"`
	// WithoutPair re-forms the range although the other location does not answer: the times that it
	// has received are not checked.
	WithoutPair bool `json:"without_pair,omitempty"`
	// DryRun changes nothing, and needs no AcceptLoss: the answer is what would be kept and given up.
	DryRun bool `json:"dry_run,omitempty"`
}

func (r RecoverRange) reads() bool { return r.DryRun }

// GivenUp is a replica that answered and was not chosen: what only it holds is lost.
type GivenUp struct {
	Node string `json:"node"`
	// Index and Term are of the last entry that it could have kept.
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	// Reason is why it is not trusted; absent if it is.
	Reason string `json:"reason,omitempty"`
}

// RangeRecovered is the result of re-forming a range.
type RangeRecovered struct {
	Location geo.Location `json:"location"`
	Range    geo.RangeID  `json:"range"`
	// Recovery counts the recoveries of the range, and names the node.
	Recovery string `json:"recovery"`
	// Survivor is the node whose replica it is, now of the id Replica.
	Survivor string        `json:"survivor"`
	Replica  geo.ReplicaID `json:"replica"`
	Trusted  bool          `json:"trusted"`
	// KeptIndex and KeptTerm are of the last entry that was kept. Those above
	// KnownCommitted may or may not have been acknowledged; they are kept all the same.
	KeptIndex      uint64 `json:"kept_index"`
	KeptTerm       uint64 `json:"kept_term"`
	KnownCommitted uint64 `json:"known_committed"`
	// LostIndex is the highest index known to a replica that was not chosen; absent if it is not
	// above KeptIndex.
	LostIndex uint64 `json:"lost_index,omitempty"`
	// Above is the time that every commit of the range is above from now on: the other location has
	// received up to there. It is absent if the other location was not asked, or has received nothing.
	Above Time `json:"above,omitzero"`
	// TimesUnchecked: the other location was not asked how far it has received the range.
	TimesUnchecked bool `json:"times_unchecked,omitempty"`
	// SilentNodes did not answer: they must stay dead, or be able to reach the survivor.
	SilentNodes []string `json:"silent_nodes"`
	// GivenUp are the other replicas that answered; absent from a node of an earlier version.
	GivenUp []GivenUp `json:"given_up,omitempty"`
	// DryRun: nothing was changed.
	DryRun bool `json:"dry_run,omitempty"`
}

// RecoverRange re-forms a range that has no quorum of trusted replicas from its best
// survivor. With DryRun it changes nothing.
func (c *Client) RecoverRange(ctx context.Context, l geo.Location, id geo.RangeID, in RecoverRange) (RangeRecovered, error) {
	return CallRecoverRange.Do(ctx, c, At{Location: l, Range: id}, in)
}
