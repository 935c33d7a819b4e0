package location

import (
	"context"
	"errors"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// Set is the locations that this process runs, whole or in part.
type Set []*Location

// Find returns the location of that name, or nil if this process does not run it.
func (s Set) Find(name geo.Location) *Location {
	for _, l := range s {
		if l.o.Name == name {
			return l
		}
	}
	return nil
}

// Account returns an account as any location of the set knows it.
func (s Set) Account(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	return firstAnswer(ctx, s, func(ctx context.Context, l *Location) (*catalog.Account, error) {
		return l.Directory.Account(ctx, name)
	})
}

// Accounts lists the accounts as any location of the set knows them.
func (s Set) Accounts(ctx context.Context) ([]*catalog.Account, error) {
	return firstAnswer(ctx, s, func(ctx context.Context, l *Location) ([]*catalog.Account, error) {
		return l.Directory.Accounts(ctx)
	})
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
