package location

import (
	"context"
	"fmt"
	"net/http"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/stamp/ranges"
)

// ResumeStream lets a stream go on that was stopped here for a record that could not be decoded or
// evaluated: see ranges.Resume. It changes nothing at the other location, which keeps a stop as well.
func (l *Location) ResumeStream(ctx context.Context, s wire.StreamName) (wire.Resumed, error) {
	refused := func(status int, code, why string) error {
		return &wire.Error{Status: status, Code: code, Message: fmt.Sprintf("could not resume stream %s at %s: %s", s, l.o.Name, why)}
	}
	if _, ok := l.o.Route.Range(s.Range); !ok {
		return wire.Resumed{}, refused(http.StatusNotFound, wire.CodeNotStopped, "there is no such range: antipodectl fork list shows the streams")
	}
	stamp, err := l.Stamp()
	if err != nil {
		return wire.Resumed{}, err
	}
	cmd := &ranges.Resume{Stream: geo.Stream{Account: s.Account, Epoch: geo.Epoch(s.Epoch), Range: s.Range, Lane: s.Lane}}
	if err := stamp.Submit(ctx, s.Range, cmd); err != nil {
		return wire.Resumed{}, err
	}
	switch {
	case cmd.Was == 0:
		return wire.Resumed{}, refused(http.StatusNotFound, wire.CodeNotStopped, "it is not stopped there")
	case !ranges.Resumes(cmd.Was):
		return wire.Resumed{}, refused(http.StatusConflict, wire.CodeStopKept, fmt.Sprintf(
			"it is %s, and the two copies differ: only a stop for a record that could not be decoded can be ended", cmd.Was))
	}
	return wire.Resumed{Stream: s.String(), Location: l.o.Name, Reason: cmd.Was.String()}, nil
}
