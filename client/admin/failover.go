package admin

import (
	"context"

	"antipode/geo"
)

// Failover asks for a failover of an account to its secondary, or for the end of one without effect.
type Failover struct {
	// Type is FailoverPlanned, FailoverUnplanned or FailoverEnd.
	Type string `json:"type"`
	// To is the location that an unplanned failover makes the primary: the account's secondary where it is empty.
	To geo.Location `json:"to,omitempty"`
	// DryRun changes nothing: the answer is what an unplanned failover would lose, or has lost; of a location, which
	// accounts it would refuse. A planned one answers 503 if the other location does not answer, or its streams do
	// not move.
	DryRun bool `json:"dry_run,omitempty"`
	// WithoutWitness has an unplanned failover not ask the witness, and one that waits for the witness go on (R21): an
	// operator knows that the present primary takes no writes. Of no meaning without a witness.
	WithoutWitness bool `json:"without_witness,omitempty"`
	// AcceptPart has an unplanned failover go on where a recovery with loss has left a part of the copy: an operator accepts
	// that rows are missing which the copy had.
	AcceptPart bool `json:"accept_part,omitempty"`
	// NotTaken, of a FailoverEnd, is an operator's word that the secondary, which does not answer, has not taken the
	// account and never will: the failover ends without asking it.
	NotTaken bool `json:"not_taken,omitempty"`
	// WithinSeconds is after how long a planned failover ends by itself, without effect, if the secondary has not taken
	// the account: 30 s where it is 0, an hour at most.
	WithinSeconds float64 `json:"within_seconds,omitempty"`
}

// Plans reports whether the request asks what a failover would do, which changes nothing.
func (f Failover) Plans() bool { return f.DryRun }

func (f Failover) reads() bool { return f.DryRun }

// The types of a Failover.
const (
	// FailoverPlanned makes the secondary the primary once it has all that was committed; nothing is lost.
	FailoverPlanned = "planned"
	// FailoverUnplanned makes the secondary the primary with what has arrived there, without the primary.
	FailoverUnplanned = "unplanned"
	// FailoverEnd ends a failover without effect, unless the secondary has taken the account.
	FailoverEnd = "end"
)

// The phases of a failover.
const (
	// FailoverDraining: little is to be on its way to the secondary. Clients notice nothing.
	FailoverDraining = "draining"
	// FailoverClosing: writes wait, and what was committed is on its way. Reads go on.
	FailoverClosing = "closing"
	// FailoverOffered: the secondary takes the account, or has.
	FailoverOffered = "offered"
	// FailoverClaiming: of an unplanned failover with a witness. The claim is registered there, and the lease of the present
	// primary ends.
	FailoverClaiming = "claiming"
	// FailoverApplying: of an unplanned failover. What has arrived is applied.
	FailoverApplying = "applying"
	// FailoverFreezing: nothing that arrives is applied any more, and the secondary becomes the primary.
	FailoverFreezing = "freezing"
	// FailoverThawing: an unplanned failover ends without effect.
	FailoverThawing = "thawing"
	// FailoverWithdrawing: it has ended without effect, and waits until the witness has forgotten its claim.
	FailoverWithdrawing = "withdrawing"
	// FailoverEnding: the account stays where it is, and takes writes again.
	FailoverEnding = "ending"
	// FailoverTaken: the location is the primary, and the former one does not know yet, or not all of its ranges do.
	FailoverTaken = "taken"
)

// Promoting reports whether an unplanned failover of the account is under way at its secondary, or ends there without
// effect. The primary does not know of it.
func (a Account) Promoting() bool {
	switch a.FailoverPhase {
	case FailoverClaiming, FailoverApplying, FailoverFreezing, FailoverThawing, FailoverWithdrawing:
		return true
	}
	return false
}

// ServiceLoss is what an unplanned failover loses of a service, as far as the location that becomes the primary knows.
type ServiceLoss struct {
	// Service is "blob", "queue" or "table", or "catalog" for the account's containers, tables and queues and their
	// properties.
	Service string `json:"service"`
	// LastSyncTime is the guarantee: all that was committed up to it is kept. Absent if there is none; Reason is why.
	LastSyncTime Time   `json:"last_sync_time,omitzero"`
	Reason       string `json:"reason,omitempty"`
	// KnownRecords are those that the former primary has named and that have not arrived: at least so many are lost.
	KnownRecords uint64 `json:"known_records"`
	// UnboundedSince is the last contact. Whatever was committed after it is lost, and how much that is nobody knows here.
	// Absent if there was no contact that counts: then there is no bound at all.
	UnboundedSince Time `json:"unbounded_since,omitzero"`
}

// LocationFailover is the failover of all accounts of a location, at the location that begins those of the accounts: the
// answer of GET and POST /v1/locations/{location}/failover.
type LocationFailover struct {
	// From is the location that the accounts leave, To the one that they go to; both empty if there was none yet.
	From geo.Location `json:"from,omitempty"`
	To   geo.Location `json:"to,omitempty"`
	// Type is FailoverPlanned or FailoverUnplanned.
	Type string `json:"type,omitempty"`
	// Phase is LocationMoving, LocationEnding or LocationOver.
	Phase string `json:"phase,omitempty"`
	// Round counts how often the accounts were gone through, from 1: those that did not move are tried again.
	Round int `json:"round,omitempty"`
	// Begun and Over are when it began and was over.
	Begun Time `json:"begun,omitzero"`
	Over  Time `json:"over,omitzero"`
	// Reason is why it ends, or ended, before all accounts were gone through. Of one that has gone through them and is over it
	// is why the Waiting ones have not moved: a line for each cause, with how many accounts and what shows more.
	Reason string `json:"reason,omitempty"`
	// Waiting is how many accounts have a copy and are where they were, their own failover not begun. Moving are those
	// of which it is under way, by its phase; Moved is how many have arrived since it began. Alone have no copy, and stay.
	Waiting int            `json:"waiting"`
	Moving  map[string]int `json:"moving"`
	Moved   int            `json:"moved"`
	Alone   int            `json:"alone"`
	// Refused is how many accounts of this round were passed over, and RefusedAccounts are the first of them.
	Refused         int               `json:"refused"`
	RefusedAccounts []RefusedFailover `json:"refused_accounts,omitempty"`
	// Unchecked, in the answer to a dry run, is how many accounts are not refused as far as is known: their ranges did not say
	// in time whether their copies are whole. That is checked again before each is promoted.
	Unchecked int `json:"unchecked,omitempty"`
}

// RefusedFailover is an account whose failover did not begin, and why.
type RefusedFailover struct {
	Account geo.Account `json:"account"`
	Why     string      `json:"why"`
}

// The phases of a LocationFailover.
const (
	// LocationMoving begins the failovers of accounts, wave by wave.
	LocationMoving = "moving"
	// LocationEnding ends those under way; accounts that were taken stay moved.
	LocationEnding = "ending"
	// LocationOver has none under way.
	LocationOver = "over"
)

// UnderWay reports whether the failover of the location goes on.
func (f LocationFailover) UnderWay() bool {
	return f.Phase == LocationMoving || f.Phase == LocationEnding
}

// CodeUnaware is the code of the refusal of an unplanned failover of a location to one that does not know yet of failovers to the
// other one.
const CodeUnaware = "FailoverNotKnown"

// LocationFailover returns the failover of a location that is under way at l, or was last.
func (c *Client) LocationFailover(ctx context.Context, l geo.Location) (LocationFailover, error) {
	return CallLocationFailover.Do(ctx, c, At{Location: l}, None{})
}

// FailLocationOver begins or ends a failover of all accounts: FailoverPlanned of those whose primary is l, FailoverUnplanned of
// those whose secondary is l, without asking their primary; FailoverEnd ends the one that is under way at l. The answer to a dry
// run has no Phase: Waiting accounts would move, but for those that are Refused.
func (c *Client) FailLocationOver(ctx context.Context, l geo.Location, f Failover) (LocationFailover, error) {
	return CallFailLocationOver.Do(ctx, c, At{Location: l}, f)
}
