package operator

import (
	"context"
	"errors"

	wire "antipode/client/admin"
	"antipode/server/location"
)

// What the process of a node does where the whole location is to start or to stop: one that is already as asked for is left
// alone. A start may go on after it has returned: see location.Server.Begin.

func startProcess(
	ctx context.Context, m *Members, _ *operation[wire.None, wire.Changed], at wire.At, _ wire.None,
) (wire.Changed, error) {
	done := wire.Changed{Name: string(at.Location), State: wire.Running}
	if m.o.Server.Running() {
		return done, nil
	}
	err := m.o.Server.Begin(ctx)
	if errors.Is(err, location.ErrRuns) {
		return done, nil // It was started meanwhile.
	}
	return done, err
}

func stopProcess(
	_ context.Context, m *Members, _ *operation[wire.None, wire.Changed], at wire.At, _ wire.None,
) (wire.Changed, error) {
	done := wire.Changed{Name: string(at.Location), State: wire.Stopped}
	if !m.o.Server.Running() {
		return done, nil
	}
	return done, m.o.Server.Stop()
}
