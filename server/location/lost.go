package location

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/replication/verify"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// lostSpan are the keys of what a range has kept of an account's lost changes.
func lostSpan(s geo.Service, a geo.Account) (from, end []byte) {
	prefix := keys.AppendContainer(nil, s, keys.LostChanges, string(a), keys.Generation{})
	return prefix, keys.PrefixEnd(prefix)
}

// Lost lists the changes of an account that this location had committed as its primary, and that the other one, which
// became the primary without it, does not have (R22).
func (l *Location) Lost(ctx context.Context, q wire.LostQuery) (wire.Lost, error) {
	out := wire.Lost{Location: l.o.Name, Claims: []wire.LostClaim{}, Changes: []wire.LostChange{}}
	after, err := hex.DecodeString(q.After)
	if err != nil {
		return out, noFound("the change " + q.After)
	}
	if q.After == "" {
		switch a, err := l.Directory.Account(ctx, q.Account); {
		case errors.Is(err, storageerr.AccountNotFound):
		case err != nil:
			return out, err
		default:
			out.Awaited = lostAwaited(a, l.o.Name)
		}
	}
	for _, d := range l.o.Route.Ranges() {
		prefix, end := lostSpan(d.Service, q.Account)
		err := l.eachRow(ctx, d, foundFrom(prefix, after), end, func(key, value []byte) bool {
			p, row, err := keys.ParsePartition(key)
			if err == nil && p.Object == "" {
				out.Claims = append(out.Claims, describeClaim(d, value))
				return true
			}
			if out.More = len(out.Changes) == wire.LostChangesMax; !out.More {
				out.Changes = append(out.Changes, describeLost(key, p.Object, row, value))
			}
			return !out.More
		})
		if err != nil || out.More {
			return out, err
		}
	}
	return out, nil
}

// lostAwaited returns the former primary of an account of this location that has not reported yet, nil for none: it reports
// when it follows, before it is rewound or has to be rebuilt.
func lostAwaited(a *catalog.Account, here geo.Location) *wire.LostAwaited {
	op := a.Operation
	if a.Primary != here || op == nil || op.Kind != catalog.OperationTaken || !op.Unplanned || op.Rewinding || op.Diverged {
		return nil
	}
	return &wire.LostAwaited{Location: a.Secondary, Since: wire.Time{Time: a.FailedOver().Time()}}
}

// eachRow calls f with the rows of a range with keys in [from, end) until it returns false.
func (l *Location) eachRow(ctx context.Context, d route.Range, from, end []byte, f func(key, value []byte) bool) error {
	if bytes.Compare(from, end) >= 0 {
		return nil
	}
	snap, err := ranges.Snapshot(ctx, l, d.ID)
	if err != nil {
		return err
	}
	it, err := snap.Scan(from, end)
	if err != nil {
		return errors.Join(err, snap.Close())
	}
	for it.Next() && f(it.Key(), it.Value()) {
	}
	return errors.Join(it.Close(), snap.Close())
}

func describeClaim(d route.Range, value []byte) wire.LostClaim {
	c, err := change.ParseLostClaim(value)
	out := wire.LostClaim{Service: d.Service.String(), Range: d.ID}
	if err != nil {
		out.Reason = err.Error()
		return out
	}
	out.Epoch = wire.Epoch{Number: c.Number, Location: c.Location}
	out.Kept, out.Changes, out.Perhaps = wire.Time{Time: c.Kept.Time()}, c.Changes, c.Perhaps
	if out.Complete = !c.Incomplete; !out.Complete {
		out.Reason = c.Why
	}
	if c.Since > 0 {
		out.IncompleteSince = wire.Time{Time: c.Since.Time()}
	}
	return out
}

// describeLost describes a lost change. One that cannot be decoded is named too.
func describeLost(key []byte, stream string, row, value []byte) wire.LostChange {
	out := wire.LostChange{Key: hex.EncodeToString(key), Stream: stream, Answered: wire.AnsweredPerhaps}
	n, _, err := keys.CutUint64(row)
	lost, unreadable := change.ParseLost(value)
	if err = errors.Join(err, unreadable); err != nil {
		out.Unreadable = err.Error()
		return out
	}
	out.Number, out.Bytes, out.PayloadBytes, out.Committed = n, lost.Bytes, lost.Payload, wire.Time{Time: lost.At.Time()}
	if lost.Surely {
		out.Answered = wire.AnsweredSurely
	}
	first := bytes.Clone(lost.Partition)
	for i, op := range lost.Ops {
		if op.Delete {
			out.Deleted++
		} else {
			out.Rows++
		}
		if i == 0 {
			first = append(first, op.Row...)
		}
	}
	at := describeDifference(verify.Difference{Key: first})
	out.Service, out.Container, out.Object, out.Row = at.Service, at.Container, at.Object, at.Row
	return out
}

// DropLost deletes a page of what was kept of an account's lost changes, and with the last page what was claimed about them.
func (l *Location) DropLost(ctx context.Context, q wire.DropLost) (out wire.LostDropped, err error) {
	stamp, err := l.Stamp()
	if err != nil {
		return out, err
	}
	switch a, err := l.Directory.Account(ctx, q.Account); {
	case errors.Is(err, storageerr.AccountNotFound):
	case err != nil:
		return out, err
	case a.Secondary == l.o.Name && a.Unsure():
		return out, storageerr.OperationInProgress.Saying("the report is needed until the copy of the account is whole: " + a.Operation.Describe())
	}
	for _, d := range l.o.Route.Ranges() {
		from, end := lostSpan(d.Service, q.Account)
		var cmd ranges.DropFound
		var claims [][]byte
		err := l.eachRow(ctx, d, from, end, func(key, _ []byte) bool {
			if p, _, err := keys.ParsePartition(key); err == nil && p.Object == "" {
				claims = append(claims, bytes.Clone(key))
				return true
			}
			if out.More = len(cmd.Keys) == wire.LostChangesMax; !out.More {
				cmd.Keys = append(cmd.Keys, bytes.Clone(key))
			}
			return !out.More
		})
		if !out.More {
			cmd.Keys = append(cmd.Keys, claims...)
		}
		if err == nil && len(cmd.Keys) > 0 {
			if err = stamp.Submit(ctx, d.ID, &cmd); err == nil { // Else it may be evaluated yet.
				out.Dropped += cmd.Dropped
			}
		}
		if err != nil || out.More {
			return out, err
		}
	}
	return out, nil
}
