package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"antipode/geo"
	"antipode/replication/verify"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// ErrVerify: verify found a difference where the copies of an account have none, or could not compare a
// lane that is at rest.
var ErrVerify = errors.New("sim: verify does not find the copies equal")

// verifyAll compares both copies of every account, as antipodectl verify does. Where all is at rest every lane
// has to be compared whose stream may go on; otherwise those that stand at one record now.
func (s *Sim) verifyAll(atRest bool) {
	for _, a := range s.accounts {
		if !a.hasCopy() {
			continue
		}
		for _, id := range s.shipped {
			if s.err == nil {
				s.verify(a, id, atRest)
			}
		}
	}
}

func (s *Sim) verify(a *account, id geo.RangeID, atRest bool) {
	near, far := a.home.sessions(), a.home.far.sessions()
	found, err := verify.Run(context.Background(), verify.Comparison{
		Account: a.name, Epoch: a.epoch, Range: id, Near: near, Far: far, Payload: verify.PayloadPresent, Wait: noWait,
		Prefixes: func(context.Context) ([][]byte, error) { return a.prefixes(geo.Service(id)), nil },
	})
	if err = errors.Join(err, near.Close(), far.Close()); err != nil {
		s.fail(err)
		return
	}
	for _, d := range found.Differences {
		s.fail(fmt.Errorf("%w: %s r%d: %s: %q %s %s", ErrVerify, a.name, id, d.Kind, d.Key, d.Chunk, d.Reason))
	}
	s.counts.LaneVerified += uint64(found.Compared)
	for _, u := range found.Uncompared {
		if atRest && !a.home.history[id].laneStopped(a.name, u.Lane) {
			s.fail(fmt.Errorf("%w: %s r%d lane %d: %s", ErrVerify, a.name, id, u.Lane, u.Reason))
		}
	}
}

// laneStopped reports whether a stream of an account is stopped for a reason. An account that fell out of the
// budget has no lane that goes on (R18).
func (h *history) laneStopped(a geo.Account, lane geo.Lane) bool {
	return slices.ContainsFunc(h.streams(a), func(st geo.Stream) bool {
		why := h.mustStop(st)
		return why == change.StopBudget || st.Lane == lane && why != change.NotStopped
	})
}

// prefixes are those of the rows that are compared: see location.verifying.prefixes.
func (a *account) prefixes(svc geo.Service) (out [][]byte) {
	if svc == geo.Catalog {
		for _, of := range a.home.s.used {
			out = append(out, catalog.ContainersPrefix(of, a.name))
		}
	}
	for _, c := range a.containers[svc] {
		if !c.deleted {
			out = append(out, keys.AppendContainer(nil, svc, a.name, c.name, c.generation))
		}
	}
	slices.SortFunc(out, slices.Compare)
	return out
}

// sessions answers questions about the leaders of a location.
func (l *location) sessions() *verify.Sessions {
	return verify.NewSessions(verify.Options{Stamp: leaders{l}, Clock: l.s.clock, RowChunks: blobs.RowChunks, Wait: noWait})
}

// noWait lets no time pass: a comparison sees one moment.
func noWait(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// leaders implements verify.Stamp.
type leaders struct{ l *location }

// Snapshot implements verify.Stamp.
func (v leaders) Snapshot(_ context.Context, id geo.RangeID) (kv.Snapshot, verify.Chunks, error) {
	m := v.l.newest(id)
	if m == nil {
		return nil, nil, ranges.ErrNotLeader
	}
	return m.n.Range(id).State().Snapshot(), m.n.Extents(), nil
}
