package operator

import (
	"context"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

// ResolveFork implements api/admin.Forks.
func (b *Backend) ResolveFork(ctx context.Context, l geo.Location, q wire.ResolveFork) (wire.ForkResolved, error) {
	return at(ctx, b, &resolveFork, wire.At{Location: l}, q)
}

// Found implements api/admin.Forks.
func (b *Backend) Found(ctx context.Context, l geo.Location, q wire.FoundQuery) (wire.Found, error) {
	return at(ctx, b, &listFound, wire.At{Location: l}, q)
}

// FoundPayload implements api/admin.Forks.
func (b *Backend) FoundPayload(ctx context.Context, l geo.Location, q wire.FoundChunk) (wire.FoundPayload, error) {
	return at(ctx, b, &readFound, wire.At{Location: l}, q)
}

// DropFound implements api/admin.Forks.
func (b *Backend) DropFound(ctx context.Context, l geo.Location, q wire.DropFound) (wire.FoundDropped, error) {
	return at(ctx, b, &dropFound, wire.At{Location: l}, q)
}

// CopyAlone implements api/admin.Forks.
func (b *Backend) CopyAlone(ctx context.Context, l geo.Location, q wire.AloneQuery) (wire.CopyAlone, error) {
	return at(ctx, b, &copyAlone, wire.At{Location: l}, q)
}

// at has one location carry out an operation.
func at[Req, Resp any](ctx context.Context, b *Backend, o *operation[Req, Resp], at wire.At, in Req) (out Resp, err error) {
	l, err := b.find(at.Location)
	if err != nil {
		return out, storageerr.InvalidInput.Saying(err.Error())
	}
	return ask(ctx, l, o, at, in)
}
