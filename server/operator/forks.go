package operator

import (
	"context"
	"errors"

	wire "antipode/client/admin"
)

// Forks lists those of all locations that answer.
func (b *Backend) Forks(ctx context.Context) (wire.Forks, error) {
	var out wire.Forks
	var errs []error
	for i, a := range each(b, func(l Location) answer[wire.Forks] { return answerOf(ask(ctx, l, &listForks, wire.At{}, wire.None{})) }) {
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
