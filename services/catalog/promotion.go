package catalog

import (
	"encoding/json"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/kv"
)

// Promotion is how far the unplanned failover of an account to this location is, which is its secondary (R20). It is a row
// of its own beside the account's record: that is the primary's, and is replaced by every change there. Like an operation
// it is the lock of the account here.
type Promotion struct {
	Version int `json:"v"`
	// Number and Location are the epoch of the present primary, in which the copy here is frozen.
	Number   geo.EpochNumber `json:"epoch"`
	Location geo.Location    `json:"location"`
	Phase    PromotionPhase  `json:"phase"`
	// Turn is that of the frozen gates: see change.Gate.Turn.
	Turn uint32 `json:"turn"`
	// Begun is when the promotion began. Until is after what time, by the wall clock, it ends by itself if nothing was committed.
	Begun geo.Timestamp `json:"begun"`
	Until geo.Timestamp `json:"until"`
	// Reason is why the promotion ends without effect, in words for people; empty while it does not.
	Reason string `json:"reason,omitempty"`
	// Claim is the number of the epoch that is, or may be, claimed at the witness (R21), 0 for none.
	Claim geo.EpochNumber `json:"claim,omitempty"`
	// Unwitnessed: an operator has it go on without the witness.
	Unwitnessed bool `json:"unwitnessed,omitempty"`
	// AcceptPart: an operator accepts a copy of which a recovery with loss left a part (R4).
	AcceptPart bool `json:"accept_part,omitempty"`
}

// PromotionPhase is a phase of a promotion. It is in catalog rows: never rename a value.
type PromotionPhase string

// The phases, in their order. PromotionThawing may follow each of the first three.
const (
	// PromotionClaiming registers the claim at the witness, and waits for the leases that were granted before.
	PromotionClaiming PromotionPhase = "claiming"
	// PromotionApplying applies what is here of the streams.
	PromotionApplying PromotionPhase = "applying"
	// PromotionFreezing closes the gates of all ranges in the present primary's epoch; then the one commit follows.
	PromotionFreezing PromotionPhase = "freezing"
	// PromotionThawing opens the gates again in that epoch: the account stays where it is.
	PromotionThawing PromotionPhase = "thawing"
	// PromotionWithdrawing has the witness forget a claim whose epoch can never begin any more. The gates are open.
	PromotionWithdrawing PromotionPhase = "withdrawing"
)

// GeoEpoch returns the epoch of the present primary.
func (p *Promotion) GeoEpoch() geo.Epoch { return geo.Epoch{Number: p.Number, Location: p.Location} }

// Describe says for people what the promotion is.
func (p *Promotion) Describe() string {
	switch p.Phase {
	case PromotionClaiming:
		return "an unplanned failover to this location: it waits for the witness, and for the lease of the present primary to end"
	case PromotionApplying:
		return "an unplanned failover to this location: it applies what has arrived"
	case PromotionFreezing:
		return "an unplanned failover to this location: the copy is frozen"
	case PromotionThawing:
		return "the end of an unplanned failover without effect: " + p.Reason
	case PromotionWithdrawing:
		return "the end of an unplanned failover without effect, whose claim the witness is to forget: " + p.Reason
	}
	return "an unplanned failover to this location"
}

// promotionRow is the row of an account's partition that holds its promotion, forkRow the prefix of those that hold the
// fork records.
const (
	promotionRow = "promotion"
	forkRow      = "fork/"
)

// PromotionOp returns the change of the account's partition that keeps p; nil deletes it.
func PromotionOp(p *Promotion) (change.Op, error) {
	if p == nil {
		return change.Op{Row: []byte(promotionRow), Delete: true}, nil
	}
	p.Version = formatVersion
	v, err := json.Marshal(p)
	return change.Op{Row: []byte(promotionRow), Value: v}, err
}

// GetPromotion reads the promotion of an account, nil for none.
func GetPromotion(get kv.Getter, name geo.Account) (*Promotion, error) {
	v, ok, err := get.Get(append(AccountPartition(name).Append(nil), promotionRow...))
	if err != nil || !ok {
		return nil, err
	}
	return parsePromotion(v)
}

func parsePromotion(b []byte) (*Promotion, error) {
	var p Promotion
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("catalog promotion: %w", err)
	}
	if p.Version != formatVersion {
		return nil, wrongVersion("promotion", p.Version)
	}
	return &p, nil
}

// Fork is the fork record of a source range (R20): where the copy of an account ended in the streams of the former primary,
// when this location became the primary without it.
type Fork struct {
	Version int `json:"v"`
	// Number and Location are the epoch of the streams.
	Number   geo.EpochNumber `json:"epoch"`
	Location geo.Location    `json:"location"`
	Range    geo.RangeID     `json:"range"`
	// Closed is the greatest closed time that was received of the range, zero for none: what was committed there later is
	// not known here. Span and Descriptor are what the range held then.
	Closed     geo.Timestamp         `json:"closed,omitempty"`
	Wall       geo.Timestamp         `json:"wall,omitempty"` // That of Closed: see change.Closed.Wall.
	Start      []byte                `json:"start,omitempty"`
	End        []byte                `json:"end,omitempty"`
	Descriptor geo.DescriptorVersion `json:"descriptor,omitempty"`
	Streams    []ForkStream          `json:"streams,omitempty"`
	// Recovered: the range with the copy was recovered with loss, at any time.
	Recovered bool `json:"recovered,omitempty"`
}

// ForkStream is where the copy ended in one stream.
type ForkStream struct {
	Lane geo.Lane `json:"lane"`
	Seq  geo.Seq  `json:"seq,omitempty"`
	Hash geo.Hash `json:"hash,omitempty"`
	// Behind is the head that a closed record has named above Seq, zero for none, and Sync the sync time then (R13).
	Behind geo.Seq       `json:"behind,omitempty"`
	Sync   geo.Timestamp `json:"sync,omitempty"`
	// SyncWall is that of Sync: see change.Closed.Wall.
	SyncWall geo.Timestamp `json:"sync_wall,omitempty"`
	// Stopped is why the stream was stopped here, empty if it was not.
	Stopped change.StopReason `json:"stopped,omitempty"`
}

// GeoEpoch returns the epoch of the streams.
func (f *Fork) GeoEpoch() geo.Epoch { return geo.Epoch{Number: f.Number, Location: f.Location} }

// Of returns where the copy ended in the stream of a lane; the zero value where it had none of it.
func (f *Fork) Of(lane geo.Lane) ForkStream {
	for _, s := range f.Streams {
		if s.Lane == lane {
			return s
		}
	}
	return ForkStream{Lane: lane}
}

// ForkOp returns the change of the account's partition that keeps f.
func ForkOp(f Fork) (change.Op, error) {
	f.Version = formatVersion
	v, err := json.Marshal(f)
	return change.Op{Row: forkKey(f.Range), Value: v}, err
}

func forkKey(r geo.RangeID) []byte { return fmt.Appendf(nil, "%s%d", forkRow, r) }

// GetFork reads the fork record of a source range, nil for none.
func GetFork(get kv.Getter, name geo.Account, r geo.RangeID) (*Fork, error) {
	v, ok, err := get.Get(append(AccountPartition(name).Append(nil), forkKey(r)...))
	if err != nil || !ok {
		return nil, err
	}
	return ParseFork(v)
}

var errFork = errors.New("catalog fork: malformed")

// ParseFork decodes a stored fork record.
func ParseFork(b []byte) (*Fork, error) {
	var f Fork
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("catalog fork: %w", err)
	}
	if f.Version != formatVersion {
		return nil, wrongVersion("fork", f.Version)
	}
	for i, s := range f.Streams {
		if s.Lane >= geo.LaneCount || i > 0 && s.Lane <= f.Streams[i-1].Lane {
			return nil, errFork
		}
	}
	return &f, nil
}
