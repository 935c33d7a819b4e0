package location

import (
	"context"
	"slices"
	"strings"
	"time"

	"antipode/geo"
	"antipode/services/catalog"
)

// primaryWait bounds how long an answer waits for a location that may know better.
const primaryWait = 200 * time.Millisecond

// Account returns an account as its primary has it, if that is in the set and answers soon, else as another
// location has it. A change of an account is at its primary first.
func (s Set) Account(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	a, err := firstAnswer(ctx, s, func(ctx context.Context, l *Location) (*catalog.Account, error) {
		return l.Directory.Account(ctx, name)
	})
	if err != nil {
		return nil, err
	}
	if p := s.Find(a.Primary); p != nil && len(s) > 1 {
		ctx, cancel := context.WithTimeout(ctx, primaryWait)
		defer cancel()
		if there, err := p.Directory.Account(ctx, name); err == nil {
			return there, nil
		}
	}
	return a, nil
}

// Accounts lists the accounts by name: those that any location of the set has, each as Account returns it.
func (s Set) Accounts(ctx context.Context) ([]*catalog.Account, error) {
	out, err := firstAnswer(ctx, s, func(ctx context.Context, l *Location) ([]*catalog.Account, error) {
		return l.Directory.Accounts(ctx)
	})
	if err != nil || len(s) < 2 {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, primaryWait)
	defer cancel()
	lists := make(chan []*catalog.Account, len(s))
	for _, l := range s {
		go func() {
			list, _ := l.Directory.Accounts(ctx) // Nothing from a location that does not answer.
			lists <- slices.DeleteFunc(list, func(a *catalog.Account) bool { return a.Primary != l.o.Name })
		}()
	}
	for range s {
		out = append(<-lists, out...) // In front of what another location has.
	}
	slices.SortStableFunc(out, func(a, b *catalog.Account) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return slices.CompactFunc(out, func(a, b *catalog.Account) bool { return a.Name == b.Name }), nil
}

// Records returns the accounts as the catalog of this location has them, whatever another one has.
func (l *Location) Records(ctx context.Context) ([]*catalog.Account, error) {
	if _, err := l.Stamp(); err != nil {
		return nil, err
	}
	return l.Directory.Accounts(ctx)
}

// Record is Records for one account.
func (l *Location) Record(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	if _, err := l.Stamp(); err != nil {
		return nil, err
	}
	return l.Directory.Account(ctx, name)
}
