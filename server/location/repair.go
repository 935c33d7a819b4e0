package location

import (
	"context"
	"errors"
	"fmt"
	"slices"

	wire "antipode/client/admin"
	"antipode/primary"
	"antipode/replication/verify"
	"antipode/services/blobs"
	"antipode/stamp"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// examinedChunks implements verify.Chunks with the chunks of one node. If its copy of a chunk is damaged the
// other nodes read theirs, too: each that knows of its damage takes the chunk again once it is sent.
type examinedChunks struct {
	*extent.Store
	stamp *stamp.Stamp
}

// Read implements verify.Chunks.
func (c examinedChunks) Read(ref extent.Ref, off int64, p []byte) (int, error) {
	n, err := c.Store.Read(ref, off, p)
	if errors.Is(err, extent.ErrCorrupt) {
		c.stamp.ExamineChunk(ref)
	}
	return n, err
}

// repair compares a range of a comparison and repairs what differs, until nothing does.
func (v *verifying) repair(ctx context.Context, j *verifyJob, i int) {
	j.mu.Lock()
	before := *j.out.Repaired
	j.mu.Unlock()
	var total, last verify.Result
	first := true
	c := v.comparison(j, i)
	done, err := verify.Repair(ctx, verify.Repairing{
		Comparison: c, RepairBytesPerSecond: j.out.RepairBytesPerSecond, Clock: v.l.o.Clock,
		Compared: func(found verify.Result) {
			if last = found; first {
				first, total = false, found
			}
			j.take(i, found, nil)
		},
		Repaired: func(r verify.Repairs) { j.repaired(before, r) },
		Rows: func(ctx context.Context, rows [][]byte, read func(context.Context, int) error) ([]verify.Repaired, uint64, error) {
			return v.repairRows(ctx, c, rows, read)
		},
	})
	if err != nil {
		j.take(i, last, err)
	}
	total.Total, total.AtLeast = max(total.Total, uint64(len(done.Rows))), done.More
	j.repaired(before, done)
	j.done(i, total)
	j.mu.Lock()
	defer j.mu.Unlock()
	now := *j.out.Repaired // What describe has returned does not change.
	now.Remaining += last.Total
	j.out.Repaired = &now
	for n, key := range j.keys {
		if r, ok := done.Rows[string(key)]; ok {
			if j.out.Differences[n].Repair = string(r.Fate); r.Fate == verify.FateNot {
				j.out.Differences[n].Repair += ": " + r.Reason
			}
		}
	}
}

// repaired adds what was done in a range to what was done in those before.
func (j *verifyJob) repaired(before wire.VerifyRepair, r verify.Repairs) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.out.Repaired = &wire.VerifyRepair{
		Set: before.Set + r.Set, Deleted: before.Deleted + r.Deleted, Gone: before.Gone + r.Gone,
		NotRepaired: before.NotRepaired + r.Not, Remaining: before.Remaining, Bytes: before.Bytes + r.Bytes,
	}
}

// repairPayloadMax is how much payload of rows is read for one call, but for the last row.
const repairPayloadMax = 32 << 20

// repairRows has rows of a range repaired. Before, it reads their payload: what no replica here holds intact
// cannot be sent, and which side is right is not decided here.
func (v *verifying) repairRows(
	ctx context.Context, c verify.Comparison, rows [][]byte, read func(context.Context, int) error,
) ([]verify.Repaired, uint64, error) {
	d, ok := v.l.o.Route.Range(c.Range)
	if !ok {
		return nil, 0, fmt.Errorf("range r%d is none of this location", c.Range)
	}
	snap, err := ranges.Snapshot(ctx, v.l, c.Range)
	if err != nil {
		return nil, 0, err
	}
	out := make([]verify.Repaired, len(rows))
	var send [][]byte
	var at []int
	payload := payloadReader{l: v.l, read: read}
	for i, key := range rows {
		if payload.bytes >= repairPayloadMax {
			out[i].Fate = verify.FateLater
			continue
		}
		damage, err := payload.damaged(ctx, snap, key)
		if err != nil {
			return nil, 0, errors.Join(err, snap.Close())
		}
		if damage != "" {
			out[i] = verify.Repaired{Fate: verify.FateNot, Reason: damage}
			continue
		}
		send, at = append(send, key), append(at, i)
	}
	if err := snap.Close(); err != nil || len(send) == 0 {
		return out, 0, err
	}
	outcomes, bytes, err := v.l.Primary.Repair(ctx, c.Range, &primary.Repair{
		Account: c.Account, Service: d.Service, Epoch: c.Epoch, Keys: send,
	})
	for i, o := range outcomes {
		out[at[i]] = fateOf(o)
	}
	return out, bytes, err
}

// fateOf words what became of a row.
func fateOf(o primary.RepairOutcome) verify.Repaired {
	switch o {
	case primary.RepairLater:
		return verify.Repaired{Fate: verify.FateLater}
	case primary.RepairSet:
		return verify.Repaired{Fate: verify.FateSet}
	case primary.RepairDeleted:
		return verify.Repaired{Fate: verify.FateDeleted}
	case primary.RepairGone:
		return verify.Repaired{Fate: verify.FateGone}
	case primary.RepairNoPayload:
		return verify.Repaired{Fate: verify.FateWaits}
	case primary.RepairSettling:
		return verify.Repaired{Fate: verify.FateNot, Reason: "its stream is being settled for the side of the secondary: antipodectl fork list"}
	case primary.RepairUnreadable:
		return verify.Repaired{Fate: verify.FateNot, Reason: "the row cannot be decoded at the primary"}
	}
	return verify.Repaired{Fate: verify.FateNot, Reason: "the account is not shipped from here any more in the epoch in which it was compared"}
}

// payloadReader reads the payload that rows name at this location.
type payloadReader struct {
	l     *Location
	read  func(context.Context, int) error
	buf   []byte
	bytes uint64
}

// damaged returns why the payload of a row cannot be sent, empty if it can.
func (p *payloadReader) damaged(ctx context.Context, from kv.Getter, key []byte) (string, error) {
	value, present, err := from.Get(key)
	if err != nil || !present {
		return "", err
	}
	refs, err := blobs.RowChunks(key, value)
	if err != nil {
		return "", nil //nolint:nilerr // The repair finds out itself.
	}
	for _, ref := range refs {
		p.buf = slices.Grow(p.buf[:0], int(ref.Length))[:ref.Length]
		if _, err := p.l.ReadChunk(ref, 0, p.buf); err != nil {
			return "its payload is damaged at the primary, too: " + err.Error(), nil
		}
		p.bytes += uint64(ref.Length)
		if err := p.read(ctx, int(ref.Length)); err != nil {
			return "", err
		}
	}
	return "", nil
}
