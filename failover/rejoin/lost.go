package rejoin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// A location that was the primary of an account, and finds that the other one became it without being asked, keeps what it
// alone has (R22): in each range, of each record in its outbox above the fork, what it did to which rows, when, and whether
// it was surely answered; and in the lost-and-found what these rows hold. Its gate of the account is closed meanwhile, so
// nothing of that changes. Then the range claims that these are all of its lost changes, or since when there may be others.
// Only then the outbox is given up, and the rows are replaced by those of the present primary.

// Bounds of one keepLost: what it reads of the outbox and keeps, but for the last row, and how many rows it looks at.
const (
	keepLostBytes = 1 << 20
	keepLostRows  = 2000
)

// keepLost is the command that keeps the lost changes of an account in a range, some of them at a time.
type keepLost struct {
	keepLostBody
	// result.Next is where to go on if Claim is nil; else the range has kept everything, and claims so.
	result keepLostResult
	// unnumbered: the range has claimed before that it has changes without numbers.
	unnumbered bool
}

// keepLostBody is an encoded keepLost, and keepLostResult its result.
type (
	keepLostBody struct {
		Account geo.Account `json:"account"`
		// By is the epoch that the present primary began: the gate is a closed one of it.
		By   geo.Epoch    `json:"by"`
		Fork catalog.Fork `json:"fork"`
		// From is where to go on, the zero value for the beginning.
		From lostPlace `json:"from,omitzero"`
	}
	keepLostResult struct {
		Next  lostPlace         `json:"next,omitzero"`
		Claim *change.LostClaim `json:"claim,omitempty"`
	}
)

// lostPlace is a place in the lost changes of a range.
type lostPlace struct {
	// Stream counts the streams in their order, Seq is the number of the record that follows, and Row counts its rows that
	// were kept.
	Stream int     `json:"stream,omitempty"`
	Seq    geo.Seq `json:"seq,omitempty"`
	Row    int     `json:"row,omitempty"`
	// Changes and Perhaps are those of the claim, up to here.
	Changes uint64 `json:"changes,omitempty"`
	Perhaps uint64 `json:"perhaps,omitempty"`
}

// Evaluate implements ranges.Command.
func (c *keepLost) Evaluate(tx *ranges.Tx) error {
	c.result, c.unnumbered = keepLostResult{Next: c.From}, false
	gate, p := tx.Gate(c.Account), keys.LostClaims(ranges.Service(tx.Range()), c.Account)
	had, ok, err := tx.Get(append(p.Append(nil), keys.ClaimRow(c.By)...))
	if err != nil {
		return err
	}
	if ok {
		claim, err := change.ParseLostClaim(had)
		if c.unnumbered = claim.Why == lostUnnumbered && claim.Changes == 0 && closedFor(gate); err != nil || !c.unnumbered {
			c.result.Claim = &claim
			return err
		}
	}
	if gate.Epoch != c.By || gate.Role != change.RoleSecondary || gate.Open {
		return kv.ErrBusy // It has gone on, as the caller finds.
	}
	list, k := c.streams(tx), keeping{tx: tx, answers: tx.Answers()}
	next := &c.result.Next
	for next.Stream < len(list) && !k.full() {
		more, err := c.keep(&k, list[next.Stream])
		if err != nil {
			return err
		}
		if !more {
			next.Stream, next.Seq = next.Stream+1, 0
		}
	}
	if next.Stream < len(list) {
		return nil
	}
	claim := c.claim(tx, list)
	c.result.Claim = &claim
	return stageClaim(tx, claim.Kept, c.Account, claim)
}

// Rehearses implements ranges.Rehearsed: it reads many rows, not side by side.
func (*keepLost) Rehearses() (always bool) { return true }

func stageClaim(tx *ranges.Tx, at geo.Timestamp, a geo.Account, claim change.LostClaim) error {
	p := keys.LostClaims(ranges.Service(tx.Range()), a)
	op := change.Op{Row: keys.ClaimRow(claim.GeoEpoch()), Value: change.AppendLostClaim(nil, claim)}
	return tx.Change(p, change.Record{CommitTime: at, Partition: p.Append(nil), Ops: []change.Op{op}})
}

// claimBefore stages the claim of a range whose outbox does not say all, when it gets its gate: the gate that this replaces
// does. One in an epoch before that of the fork record has nothing of what it committed last. One whose primary gate gave
// no numbers has committed changes that are in no outbox; it keeps those that have numbers still. lost: the location's catalog
// does not have the account any more, as far as it had it.
func claimBefore(tx *ranges.Tx, a geo.Account, by geo.Epoch, f *catalog.Fork, lost bool) error {
	why, gate := "", tx.Gate(a)
	switch {
	case f == nil:
	case lost || gate.Epoch.Compare(f.GeoEpoch()) < 0:
		why = lostBack
	case gate.Role == change.RolePrimary && !gate.Numbered:
		why = lostUnnumbered
	}
	if why == "" {
		return nil
	}
	at := tx.Timestamp(0)
	return stageClaim(tx, at, a, change.LostClaim{
		Number: by.Number, Location: by.Location, Kept: at, Incomplete: true, Since: boundOfLost(f), Why: why,
	})
}

// Reclaims implements ranges.Reclaimer: what it keeps frees the outbox.
func (c *keepLost) Reclaims() {}

// boundOfLost is a commit time up to which the present primary has all that it does not know to lack.
func boundOfLost(f *catalog.Fork) geo.Timestamp {
	out := f.Closed
	for _, s := range f.Streams {
		if s.Behind > 0 {
			out = min(out, s.Sync)
		}
	}
	return out
}

// streams are those that this location has numbered of the account from the epoch of the fork on, in order.
func (c *keepLost) streams(tx *ranges.Tx) (out []geo.Stream) {
	for _, s := range tx.Streams(c.Account) {
		if s.Epoch.Location == tx.Location() && s.Epoch.Compare(c.Fork.GeoEpoch()) >= 0 && s.Epoch.Compare(c.By) < 0 {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, geo.Stream.Compare)
	return out
}

// Why a range may have committed other changes than those that it kept.
const (
	lostTrimmed = "its outbox has lost records that the other location does not have"
	lostStopped = "a stream was stopped at the other location"
	lostBack    = "it has less than the other location had: it was set back"
	lostOther   = "it has other records than the other location had under the same numbers"
	// lostUnnumbered: changes of an LRS account have no numbers.
	lostUnnumbered = "it has committed changes without numbers, which no outbox has"
)

// after returns the number above which the records of a stream are lost, and why these may not be all. What the other
// location had applied must be the beginning of the stream here.
func (c *keepLost) after(tx *ranges.Tx, s geo.Stream) (after geo.Seq, why string) {
	trimmed, head := tx.Trimmed(s), tx.Head(s)
	if s.Epoch != c.Fork.GeoEpoch() {
		if trimmed.Seq > 0 {
			why = lostTrimmed
		}
		return trimmed.Seq, why
	}
	at := c.Fork.Of(s.Lane)
	begins := func() bool {
		if head.Seq > at.Seq {
			before, ok, err := tx.Before(s, at.Seq+1)
			return err == nil && ok && before == geo.Head{Seq: at.Seq, Hash: at.Hash}
		}
		return head == geo.Head{Seq: at.Seq, Hash: at.Hash}
	}
	switch {
	case at.Stopped.Stands() && trimmed.Seq <= at.Seq && begins(): // What it had applied before is not lost.
		return at.Seq, lostStopped
	case at.Stopped != change.NotStopped:
		return trimmed.Seq, lostStopped
	case head.Seq < max(at.Seq, at.Behind): // Behind: a head that this location has said to be committed.
		return trimmed.Seq, lostBack
	case trimmed.Seq > at.Seq:
		return trimmed.Seq, lostTrimmed
	case !begins():
		return trimmed.Seq, lostOther
	}
	return at.Seq, ""
}

// keeping is what one command has read.
type keeping struct {
	tx          *ranges.Tx
	answers     change.Answers
	bytes, rows int
}

func (k *keeping) full() bool { return k.bytes >= keepLostBytes || k.rows >= keepLostRows }

// keep keeps the next lost changes of a stream. more is false at its end.
func (c *keepLost) keep(k *keeping, s geo.Stream) (more bool, err error) {
	after, why := c.after(k.tx, s)
	from := max(c.result.Next.Seq, after+1)
	list, err := k.tx.Unsent(s, from, max(keepLostBytes-k.bytes, 0))
	if err != nil {
		return false, err
	}
	for _, encoded := range list {
		if k.full() {
			return true, nil
		}
		r, err := change.ParseRecord(encoded)
		if err != nil {
			return false, fmt.Errorf("lost change %d of stream %s: %w", from, s, err)
		}
		// Which of these the other location has is not known, but that it has those up to that time.
		if why == "" || r.CommitTime > boundOfLost(&c.Fork) {
			if whole, err := c.keepRecord(k, s, after, &r, encoded); err != nil || !whole {
				return true, err
			}
		}
		k.bytes += len(encoded)
		from++
		c.result.Next.Seq, c.result.Next.Row = from, 0
	}
	return from <= k.tx.Head(s).Seq, nil
}

// keepRecord keeps one change, and what its rows hold: some of them, if the command is full then.
func (c *keepLost) keepRecord(k *keeping, s geo.Stream, after geo.Seq, r *change.Record, encoded []byte) (whole bool, err error) {
	next := &c.result.Next
	next.Seq = r.Seq
	for next.Row < len(r.Ops) {
		if k.full() {
			return false, nil
		}
		if err := k.keepRow(s, after, r, r.Ops[next.Row].Row); err != nil {
			return false, err
		}
		next.Row++
	}
	lost := change.LostOf(r, encoded, k.answers.Surely(r.CommitTime))
	next.Changes++
	if !lost.Surely {
		next.Perhaps++
	}
	p := keys.Lost(ranges.Service(k.tx.Range()), s)
	op := change.Op{Row: keys.AppendUint64(nil, uint64(r.Seq)), Value: change.AppendLost(nil, lost)}
	return true, k.tx.Change(p, change.Record{CommitTime: k.tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{op}})
}

// keepRow keeps what a row holds that a lost change has set.
func (k *keeping) keepRow(s geo.Stream, after geo.Seq, r *change.Record, row []byte) error {
	k.rows++
	if bytes.Equal(r.Partition, catalog.AccountPartition(s.Account).Append(nil)) {
		return nil // The record of the account, with its keys, is the present primary's already.
	}
	key := append(bytes.Clone(r.Partition), row...)
	if kept, err := k.tx.Kept(s, after, key); kept || err != nil {
		return err
	}
	value, ok, err := k.tx.Get(key)
	if err != nil || !ok {
		return err
	}
	k.bytes += len(key) + len(value)
	chunks, err := blobs.RowChunks(key, value)
	if err != nil {
		chunks = r.Chunks // It cannot be decoded, and is kept as it is.
	}
	return k.tx.KeepFound(s, after, key, value, chunks)
}

// claim is what the range claims once all are kept.
func (c *keepLost) claim(tx *ranges.Tx, list []geo.Stream) change.LostClaim {
	out := change.LostClaim{
		Number: c.By.Number, Location: c.By.Location, Kept: tx.Timestamp(0), Changes: c.result.Next.Changes, Perhaps: c.result.Next.Perhaps,
	}
	incomplete := func(why string) {
		if why != "" && !out.Incomplete {
			out.Incomplete, out.Since, out.Why = true, boundOfLost(&c.Fork), why
		}
	}
	if c.unnumbered {
		incomplete(lostUnnumbered)
	}
	known := map[geo.Lane]bool{}
	for _, s := range list {
		known[s.Lane] = known[s.Lane] || s.Epoch == c.Fork.GeoEpoch()
		after, why := c.after(tx, s)
		incomplete(why)
		if head := tx.Head(s).Seq; head > after {
			out.Streams = append(out.Streams, change.LostStream{Number: s.Epoch.Number, Lane: s.Lane, After: after, To: head})
		}
	}
	for _, s := range c.Fork.Streams {
		if !known[s.Lane] && (max(s.Seq, s.Behind) > 0 || s.Stopped != change.NotStopped) {
			incomplete(lostBack)
		}
	}
	return out
}

// keepLost keeps the lost changes of an account in a range.
func (j *Rejoiner) keepLost(ctx context.Context, r route.Range, a catalog.Account, f catalog.Fork) (*change.LostClaim, error) {
	cmd := &keepLost{keepLostBody: keepLostBody{Account: a.Name, By: a.GeoEpoch(), Fork: f}}
	for cmd.result.Claim == nil {
		if err := j.stamp.Submit(ctx, r.ID, cmd); err != nil {
			return nil, fmt.Errorf("account %s: its lost changes in the %s range: %w", a.Name, r.Service, err)
		}
		cmd.From = cmd.result.Next
	}
	return cmd.result.Claim, nil
}

// kindKeepLost is the kind of keepLost. It is on the wire: never rename it.
const kindKeepLost = "directory.keepLost"

// Kind implements ranges.Portable.
func (c *keepLost) Kind() string { return kindKeepLost }

// Encode implements ranges.Portable.
func (c *keepLost) Encode() []byte {
	b, _ := json.Marshal(c.keepLostBody) // It has no value that JSON lacks.
	return b
}

func parseKeepLost(b []byte) (*keepLost, error) {
	var c keepLost
	if err := json.Unmarshal(b, &c.keepLostBody); err != nil {
		return nil, errors.Join(record.ErrCommand, err)
	}
	if !c.Account.Valid() || min(c.From.Stream, c.From.Row) < 0 {
		return nil, fmt.Errorf("%w: lost changes of account %q from stream %d", record.ErrCommand, c.Account, c.From.Stream)
	}
	return &c, nil
}

// EncodeResult implements ranges.Portable.
func (c *keepLost) EncodeResult() []byte {
	b, _ := json.Marshal(c.result) // It has no value that JSON lacks.
	return b
}

// DecodeResult implements ranges.Portable.
func (c *keepLost) DecodeResult(b []byte) error {
	c.result = keepLostResult{}
	return json.Unmarshal(b, &c.result)
}
