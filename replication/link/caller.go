package link

import (
	"context"

	"antipode/geo"
)

// Caller calls methods of the paired location, at whichever of its nodes can answer, up
// to 4 MiB each way. It does not touch body once Call returned. After an error the call
// may have taken effect.
type Caller interface {
	Call(ctx context.Context, method string, body []byte) ([]byte, error)
}

// Handlers registers the functions that answer calls of the paired location, up to 4 MiB each
// way. An error is sent in place of the answer; an error of Elsewhere sends the caller to another
// process.
type Handlers interface {
	Handle(method string, f func(ctx context.Context, body []byte) ([]byte, error))
}

// Elsewhere returns the error that sends a caller to the process in which a range is led; nil if
// that is this process or the leader is unknown. The field is nil if there is no other process.
type Elsewhere func(r geo.RangeID) error

// Caller passes each call of c through the link.
func (l *Link) Caller(c Caller) Caller { return linkedCaller{c, l} }

type linkedCaller struct {
	c Caller
	l *Link
}

// Call implements Caller.
func (c linkedCaller) Call(ctx context.Context, method string, body []byte) ([]byte, error) {
	return Ask(ctx, c.l, func(ctx context.Context) ([]byte, error) { return c.c.Call(ctx, method, body) })
}

// Ask is Link.Do for a call with an answer, which is the zero value with an error.
func Ask[T any](ctx context.Context, l *Link, f func(ctx context.Context) (T, error)) (T, error) {
	var out T
	err := l.Do(ctx, func(ctx context.Context) (err error) {
		out, err = f(ctx)
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return out, nil
}
