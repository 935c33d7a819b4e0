package operator

import (
	"context"

	wire "antipode/client/admin"
	"antipode/geo"
)

// ResolveFork implements api/admin.Forks.
func (b *Backend) ResolveFork(ctx context.Context, l geo.Location, q wire.ResolveFork) (wire.ForkResolved, error) {
	return ask(b, l, func(l Location) (wire.ForkResolved, error) { return l.ResolveFork(ctx, q) })
}

// Found implements api/admin.Forks.
func (b *Backend) Found(ctx context.Context, l geo.Location, q wire.FoundQuery) (wire.Found, error) {
	return ask(b, l, func(l Location) (wire.Found, error) { return l.Found(ctx, q) })
}

// FoundPayload implements api/admin.Forks.
func (b *Backend) FoundPayload(ctx context.Context, l geo.Location, q wire.FoundChunk) (wire.FoundPayload, error) {
	return ask(b, l, func(l Location) (wire.FoundPayload, error) { return l.FoundPayload(ctx, q) })
}

// DropFound implements api/admin.Forks.
func (b *Backend) DropFound(ctx context.Context, l geo.Location, q wire.DropFound) (wire.FoundDropped, error) {
	return ask(b, l, func(l Location) (wire.FoundDropped, error) { return l.DropFound(ctx, q) })
}

// CopyAlone implements api/admin.Forks.
func (b *Backend) CopyAlone(ctx context.Context, l geo.Location, q wire.AloneQuery) (wire.CopyAlone, error) {
	return ask(b, l, func(l Location) (wire.CopyAlone, error) { return l.CopyAlone(ctx, q) })
}

// ask asks one location.
func ask[T any](b *Backend, at geo.Location, f func(Location) (T, error)) (out T, err error) {
	err = b.at(at, func(l Location) (err error) {
		out, err = f(l)
		return err
	})
	return out, err
}

// ResolveFork implements Location.
func (l *Local) ResolveFork(ctx context.Context, q wire.ResolveFork) (wire.ForkResolved, error) {
	return l.Location.ResolveFork(ctx, q)
}

// Found implements Location.
func (l *Local) Found(ctx context.Context, q wire.FoundQuery) (wire.Found, error) {
	return l.Location.Found(ctx, q)
}

// FoundPayload implements Location.
func (l *Local) FoundPayload(ctx context.Context, q wire.FoundChunk) (wire.FoundPayload, error) {
	return l.Location.FoundPayload(ctx, q)
}

// DropFound implements Location.
func (l *Local) DropFound(ctx context.Context, q wire.DropFound) (wire.FoundDropped, error) {
	return l.Location.DropFound(ctx, q)
}

// CopyAlone implements Location.
func (l *Local) CopyAlone(ctx context.Context, q wire.AloneQuery) (wire.CopyAlone, error) {
	return l.Location.CopyAlone(ctx, q.Account)
}

// CopyAlone implements Location.
func (r *Remote) CopyAlone(ctx context.Context, q wire.AloneQuery) (wire.CopyAlone, error) {
	return operate(ctx, r, func(ctx context.Context, c *wire.Client) (wire.CopyAlone, error) {
		return c.CopyAlone(ctx, r.Location, q)
	})
}

// ResolveFork implements Location.
func (r *Remote) ResolveFork(ctx context.Context, q wire.ResolveFork) (wire.ForkResolved, error) {
	return operate(ctx, r, func(ctx context.Context, c *wire.Client) (wire.ForkResolved, error) {
		return c.Resolve(ctx, r.Location, q)
	})
}

// Found implements Location.
func (r *Remote) Found(ctx context.Context, q wire.FoundQuery) (wire.Found, error) {
	return operate(ctx, r, func(ctx context.Context, c *wire.Client) (wire.Found, error) { return c.Found(ctx, r.Location, q) })
}

// FoundPayload implements Location.
func (r *Remote) FoundPayload(ctx context.Context, q wire.FoundChunk) (wire.FoundPayload, error) {
	return operate(ctx, r, func(ctx context.Context, c *wire.Client) (wire.FoundPayload, error) {
		return c.FoundPayload(ctx, r.Location, q)
	})
}

// DropFound implements Location.
func (r *Remote) DropFound(ctx context.Context, q wire.DropFound) (wire.FoundDropped, error) {
	return operate(ctx, r, func(ctx context.Context, c *wire.Client) (wire.FoundDropped, error) {
		return c.DropFound(ctx, r.Location, q)
	})
}
