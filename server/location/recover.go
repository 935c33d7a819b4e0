package location

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/stamp/membership"
)

// RecoverRange re-forms a range that has no quorum of trusted replicas:
// see stamp.Stamp.Recover. The operator has accepted the loss.
func (l *Location) RecoverRange(ctx context.Context, id geo.RangeID, untrusted bool) (wire.RangeRecovered, error) {
	refused := func(status int, code string, err error) error {
		return &wire.Error{Status: status, Code: code, Message: fmt.Sprintf("could not recover range %d of %s: %v", id, l.o.Name, err)}
	}
	if !slices.Contains(Ranges(), id) {
		return wire.RangeRecovered{}, refused(http.StatusNotFound, "RangeNotFound", errors.New("there is no such range: antipodectl status shows them"))
	}
	s, err := l.Stamp()
	if err != nil {
		return wire.RangeRecovered{}, err
	}
	r, err := s.Recover(ctx, id, untrusted)
	switch {
	case errors.Is(err, membership.ErrQuorum):
		err = refused(http.StatusConflict, "QuorumPresent", err)
	case errors.Is(err, membership.ErrNoSurvivor):
		err = refused(http.StatusConflict, "NoSurvivor", err)
	}
	if err != nil {
		return wire.RangeRecovered{}, err
	}
	out := wire.RangeRecovered{
		Location: l.o.Name, Range: id, Recovery: r.Recovery.String(), Survivor: wire.NodeName(l.o.Name, r.Survivor.Node),
		Replica: r.Replica, Trusted: r.Survivor.Trusted, KeptIndex: r.Survivor.Index, KeptTerm: r.Survivor.Term,
		KnownCommitted: r.Survivor.Commit, LostIndex: r.Ahead,
	}
	for _, n := range r.Silent {
		out.SilentNodes = append(out.SilentNodes, wire.NodeName(l.o.Name, n))
	}
	return out, nil
}
