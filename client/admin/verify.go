package admin

import (
	"context"

	"antipode/geo"
)

// VerifyQuery is what is compared of an account, and how.
type VerifyQuery struct {
	// Service is blob, queue or table; empty for all.
	Service string `json:"service,omitempty"`
	// Payload has the payload chunks at the secondary read, too. Without it they are only looked for.
	Payload bool `json:"payload,omitempty"`
	// BytesPerSecond bounds what each location reads. Zero means 64 MiB/s.
	BytesPerSecond uint64 `json:"bytes_per_second,omitempty"`
	// Repair has the rows that differ repaired at the secondary. The primary is right.
	Repair bool `json:"repair,omitempty"`
	// RepairBytesPerSecond bounds what is sent for that. Zero means 8 MiB/s.
	RepairBytesPerSecond uint64 `json:"repair_bytes_per_second,omitempty"`
}

// States of a Verify.
const (
	VerifyRunning = "running"
	VerifyDone    = "done"
)

// VerifyDifferencesMax is how many differences a Verify lists.
const VerifyDifferencesMax = 1000

// VerifyRateMin is the least rate of a comparison and of its repair, in bytes per second. At a lower one it would hold its
// snapshots, and its place among those that may run, for as good as ever.
const VerifyRateMin = 64 << 10

// Codes of refusals.
const (
	// CodeAskPrimary: the location of the account's primary compares.
	CodeAskPrimary = "AskThePrimary"
	// CodeNoSecondary: the account has one copy.
	CodeNoSecondary = "NoSecondary"
	// CodeNoVerify: the process has not compared the account.
	CodeNoVerify = "VerifyNotFound"
	// CodeBusy: too many comparisons run, or something that must not meet a repair.
	CodeBusy = "TooManyComparisons"
)

// Outcomes of a Verify that is done.
const (
	// VerifyEqual: every lane was compared, and nothing differs.
	VerifyEqual = "equal"
	// VerifyDifferent: there are differences.
	VerifyDifferent = "different"
	// VerifyIncomplete: nothing that was compared differs, but not everything was compared.
	VerifyIncomplete = "incomplete"
	// VerifyRepaired: there were differences. They were repaired, every lane was compared after that, and
	// nothing differs.
	VerifyRepaired = "repaired"
)

// Verify is a comparison of both copies of an account: it runs, or has ended.
type Verify struct {
	Account   geo.Account  `json:"account"`
	Primary   geo.Location `json:"primary"`
	Secondary geo.Location `json:"secondary"`
	VerifyQuery
	State string `json:"state"`
	// Outcome is empty while it runs.
	Outcome string          `json:"outcome,omitempty"`
	Started Time            `json:"started"`
	Ended   Time            `json:"ended,omitzero"`
	Ranges  []VerifiedRange `json:"ranges"`
	// Differences are the first of DifferencesTotal. AtLeast is set if there may be more of them.
	Differences      []VerifyDifference `json:"differences"`
	DifferencesTotal uint64             `json:"differences_total"`
	AtLeast          bool               `json:"at_least,omitempty"`
	// Repaired is what a repair has done, nil without one.
	Repaired *VerifyRepair `json:"repaired,omitempty"`
	// BytesCrossed is how much the two locations have sent each other for it.
	BytesCrossed uint64 `json:"bytes_crossed"`
}

// VerifyRepair is what the repair of a Verify has done so far.
type VerifyRepair struct {
	// Set and Deleted are the rows of the secondary that were set to what the primary has, and deleted. Gone
	// are those whose table or container was deleted meanwhile.
	Set     uint64 `json:"set"`
	Deleted uint64 `json:"deleted"`
	Gone    uint64 `json:"gone"`
	// NotRepaired are the others.
	NotRepaired uint64 `json:"not_repaired"`
	// Remaining is how many differences the last comparison found.
	Remaining uint64 `json:"remaining"`
	// Bytes were sent again, payload included.
	Bytes uint64 `json:"bytes"`
}

// VerifiedRange is a range of a Verify.
type VerifiedRange struct {
	Range   geo.RangeID `json:"range"`
	Service string      `json:"service"`
	// Done is set once the range was compared. Round counts the pairs of snapshots, BytesRead what was read at
	// the primary in all of them.
	Done      bool   `json:"done"`
	Round     int    `json:"round"`
	BytesRead uint64 `json:"bytes_read"`
	// Lanes is how many there are, Compared how many were compared.
	Lanes    int `json:"lanes"`
	Compared int `json:"compared"`
	// NotCompared are the other ones, once the range is done.
	NotCompared []LaneNotCompared `json:"not_compared"`
	// Rows and Bytes are those of the compared lanes.
	Rows  uint64 `json:"rows"`
	Bytes uint64 `json:"bytes"`
	// Chunks is how many payload chunks were examined, and ChunkBytes how many bytes of them were read.
	Chunks     uint64 `json:"chunks"`
	ChunkBytes uint64 `json:"chunk_bytes"`
}

// LaneNotCompared is a lane that was not compared.
type LaneNotCompared struct {
	Lane   geo.Lane `json:"lane"`
	Reason string   `json:"reason"`
}

// VerifyDifference is a row in which the two copies differ.
type VerifyDifference struct {
	// Kind is missing (at the secondary), extra (there), different, payload missing or payload corrupt.
	Kind    string `json:"kind"`
	Service string `json:"service"`
	// Container is a table or container, Object a PartitionKey or the name of a blob. In the catalog
	// Object is the service and the name of a table or container.
	Container string `json:"container,omitempty"`
	Object    string `json:"object"`
	// Row is the RowKey, or which row of the blob it is.
	Row string `json:"row,omitempty"`
	// Chunk and Reason belong to payload.
	Chunk  string `json:"chunk,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Repair is what a repair did: set, deleted, container deleted, or why the row is not repaired.
	Repair string `json:"repair,omitempty"`
}

// StartVerify begins to compare both copies of an account, and returns at once. If a comparison of the
// account runs it is returned as it is.
func (c *Client) StartVerify(ctx context.Context, name geo.Account, q VerifyQuery) (Verify, error) {
	return CallStartVerify.Do(ctx, c, At{Account: name}, q)
}

// Verify returns the last comparison of an account at the process that is asked.
func (c *Client) Verify(ctx context.Context, name geo.Account) (Verify, error) {
	return CallVerify.Do(ctx, c, At{Account: name}, None{})
}
