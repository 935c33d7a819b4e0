package admin

// Failover asks for a failover of an account to its secondary, or for the end of one without effect.
type Failover struct {
	// Type is FailoverPlanned, or FailoverEnd.
	Type string `json:"type"`
	// WithinSeconds is after how long a planned failover ends by itself, without effect, if the secondary has not taken
	// the account: 30 s where it is 0, an hour at most.
	WithinSeconds float64 `json:"within_seconds,omitempty"`
}

// The types of a Failover.
const (
	// FailoverPlanned makes the secondary the primary once it has all that was committed; nothing is lost.
	FailoverPlanned = "planned"
	// FailoverEnd ends a planned failover without effect, unless the secondary has taken the account.
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
	// FailoverEnding: the account stays where it is, and takes writes again.
	FailoverEnding = "ending"
	// FailoverTaken: the location is the primary, and the former one does not know yet, or not all of its ranges do.
	FailoverTaken = "taken"
)
