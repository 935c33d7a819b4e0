package operator

import (
	"context"
	"errors"

	wire "antipode/client/admin"
	"antipode/geo"
)

// Forks implements api/admin.Cluster.
func (b *Backend) Forks(ctx context.Context) (wire.Forks, error) {
	var out wire.Forks
	var errs []error
	for i, a := range each(b, func(l Location) answer[wire.Forks] { return answerOf(l.Forks(ctx)) }) {
		if a.err != nil {
			errs = append(errs, a.err)
			out.Silent = append(out.Silent, "location "+string(b.o.Locations[i].Name()))
			continue
		}
		out.Forks = append(out.Forks, a.value.Forks...)
		out.Silent = append(out.Silent, a.value.Silent...)
	}
	if len(errs) == len(b.o.Locations) {
		return wire.Forks{}, errors.Join(errs...)
	}
	return out, nil
}

// Forks implements Location. Every node of a location answers for all its ranges.
func (l *Local) Forks(ctx context.Context) (wire.Forks, error) { return l.Location.Forks(ctx) }

// Forks implements Location.
func (r *Remote) Forks(ctx context.Context) (wire.Forks, error) {
	return read(ctx, r, func(ctx context.Context, c *wire.Client) (wire.Forks, error) { return c.Forks(ctx) })
}

// ResumeStream implements api/admin.Cluster.
func (b *Backend) ResumeStream(ctx context.Context, l geo.Location, s wire.StreamName) (out wire.Resumed, err error) {
	err = b.at(l, func(l Location) (err error) {
		out, err = l.ResumeStream(ctx, s)
		return err
	})
	return out, err
}

// ResumeStream implements Location.
func (l *Local) ResumeStream(ctx context.Context, s wire.StreamName) (wire.Resumed, error) {
	return l.Location.ResumeStream(ctx, s)
}

// ResumeStream implements Location.
func (r *Remote) ResumeStream(ctx context.Context, s wire.StreamName) (wire.Resumed, error) {
	return operate(ctx, r, func(ctx context.Context, c *wire.Client) (wire.Resumed, error) {
		return c.Resume(ctx, r.Location, s)
	})
}
