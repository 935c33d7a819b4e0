package location

import (
	"context"
	"errors"

	"antipode/geo"
	"antipode/services/storageerr"
)

// Set is the locations that this process runs, whole or in part.
type Set []*Location

// Look is Location.Look of each.
func (s Set) Look(ctx context.Context) {
	for _, l := range s {
		l.Look(ctx)
	}
}

// Find returns the location of that name, or nil if this process does not run it.
func (s Set) Find(name geo.Location) *Location {
	for _, l := range s {
		if l.o.Name == name {
			return l
		}
	}
	return nil
}

// firstAnswer asks all locations that run at once, because a location without a quorum takes
// long to fail. It returns AccountNotFound only if every location of the set says so.
func firstAnswer[T any](ctx context.Context, s Set, ask func(context.Context, *Location) (T, error)) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, len(s))
	asked := 0
	var err error
	for _, l := range s {
		if _, stopped := l.Stamp(); stopped != nil {
			err = stopped
			continue
		}
		asked++
		go func() {
			v, err := ask(ctx, l)
			answers <- answer{v, err}
		}()
	}
	var none T
	for range asked {
		a := <-answers
		if a.err == nil {
			return a.value, nil
		}
		if err == nil || !errors.Is(a.err, storageerr.AccountNotFound) {
			err = a.err
		}
	}
	return none, err
}
