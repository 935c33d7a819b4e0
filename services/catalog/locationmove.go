package catalog

import (
	"encoding/json"
	"fmt"
	"time"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// LocationMove is how far the failover of all accounts of a location is. It is a row of one catalog alone: of that location
// for a planned one, of the other location for an unplanned one. It only begins the failovers of accounts, wave by wave.
// Each is moved by its own commit (R19), and how many were is counted from their records.
type LocationMove struct {
	Version int `json:"v"`
	// From is the location that the accounts leave, To the one that they go to.
	From geo.Location `json:"from"`
	To   geo.Location `json:"to"`
	// Unplanned: To becomes the primary without From (R20).
	Unplanned bool `json:"unplanned,omitempty"`
	// WithoutWitness: no witness is asked that From takes no writes any more.
	WithoutWitness bool `json:"without_witness,omitempty"`
	// AcceptPart: copies of which a recovery with loss left a part are promoted, too (R4).
	AcceptPart bool              `json:"accept_part,omitempty"`
	Phase      LocationMovePhase `json:"phase"`
	Begun      geo.Timestamp     `json:"begun"`
	// Over is when it was over; zero before.
	Over geo.Timestamp `json:"over,omitempty"`
	// Within is how long the planned failover of each account may take.
	Within time.Duration `json:"within,omitempty"`
	// Round counts how often the accounts were gone through, from 1. After is the last one, by name, whose failover has
	// begun, or was refused, in this round.
	Round int         `json:"round"`
	After geo.Account `json:"after,omitempty"`
	// Refused are accounts of this round whose failover did not begin, the first LocationRefusedMax, and RefusedCount is
	// how many there are.
	Refused      []LocationRefused `json:"refused,omitempty"`
	RefusedCount int               `json:"refused_count,omitempty"`
	// Reason is why it ends before all accounts were gone through. Of one that has gone through them and is over it is why
	// some have not moved. Else it is empty.
	Reason string `json:"reason,omitempty"`
	// Ended is how many accounts it had moved when it was over; nil before, and in rows of an earlier version.
	Ended *LocationMoveEnded `json:"ended,omitempty"`
}

// LocationMoveEnded counts accounts at the end of a LocationMove. Later failovers change nothing of it.
type LocationMoveEnded struct {
	// Waiting had a copy and had not moved; Moved had; Alone had no copy.
	Waiting int `json:"waiting"`
	Moved   int `json:"moved"`
	Alone   int `json:"alone"`
}

// LocationRefused is an account whose failover did not begin.
type LocationRefused struct {
	Account geo.Account `json:"account"`
	Why     string      `json:"why"`
}

// LocationRefusedMax bounds LocationMove.Refused.
const LocationRefusedMax = 20

// LocationMovePhase is a phase of a LocationMove. It is in catalog rows: never rename a value.
type LocationMovePhase string

// The phases.
const (
	// LocationMoving begins the failovers of accounts.
	LocationMoving LocationMovePhase = "moving"
	// LocationEnding begins no more, and ends those under way without effect as far as that is possible.
	LocationEnding LocationMovePhase = "ending"
	// LocationOver has no failover under way. The row stays as a report.
	LocationOver LocationMovePhase = "over"
)

// Refuse adds an account whose failover did not begin.
func (m *LocationMove) Refuse(name geo.Account, why string) {
	m.RefusedCount++
	if len(m.Refused) < LocationRefusedMax {
		m.Refused = append(m.Refused[:len(m.Refused):len(m.Refused)], LocationRefused{name, why})
	}
}

// Active reports whether the failover of the location is under way.
func (m *LocationMove) Active() bool { return m != nil && m.Phase != LocationOver }

// LocationPartition is where the catalog keeps its LocationMove: no account can have the name.
func LocationPartition() keys.Partition {
	return keys.Partition{Service: geo.Catalog, Account: "-", Object: "location-failover"}
}

// LocationMoveOp returns the change of LocationPartition that keeps m.
func LocationMoveOp(m *LocationMove) (change.Op, error) {
	m.Version = formatVersion
	v, err := json.Marshal(m)
	return change.Op{Value: v}, err
}

// GetLocationMove reads the LocationMove of a catalog, nil for none.
func GetLocationMove(get kv.Getter) (*LocationMove, error) {
	v, ok, err := get.Get(LocationPartition().Append(nil))
	if err != nil || !ok {
		return nil, err
	}
	return parseLocationMove(v)
}

func parseLocationMove(b []byte) (*LocationMove, error) {
	var m LocationMove
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("catalog location failover: %w", err)
	}
	if m.Version != formatVersion {
		return nil, wrongVersion("location failover", m.Version)
	}
	return &m, nil
}
