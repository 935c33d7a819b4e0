package operator

import (
	"context"
	"log/slog"
	"slices"

	apiadmin "antipode/api/admin"
	wire "antipode/client/admin"
)

// calls are the calls of operators: each is one entry, beside the operation that a location carries out for it.
func calls() []call {
	return slices.Concat(statusCalls(), accountCalls(), nameCalls(), verifyCalls(), cloneCalls(), lagCalls(), nodeCalls(), locationCalls(), streamCalls())
}

// locationCall returns what a location does for the call of a name, nil for nothing.
func locationCall(name string) carried {
	for _, c := range calls() {
		if c.carried != nil && c.carried.route().Name == name {
			return c.carried
		}
	}
	return nil
}

// Do carries out a call in this process, as the port of the whole process does, but for what that makes of questions and answers.
// Errors are those of the locations.
func Do[Req, Resp any](ctx context.Context, b *Backend, k wire.Call[Req, Resp], at wire.At, in Req) (out Resp, err error) {
	all := calls()
	i := slices.IndexFunc(all, func(c call) bool { return c.name == k.Name })
	p := all[i].port.(port[Req, Resp])
	q, err := p.understand(ctx, b, &apiadmin.Question{At: at, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return out, err
	}
	return p.do(ctx, b, q, in)
}

// Operations implements api/admin.Process.
func (b *Backend) Operations() []apiadmin.Operation {
	var out []apiadmin.Operation
	for _, c := range calls() {
		out = append(out, c.serve(b))
	}
	return out
}
