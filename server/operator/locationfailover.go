package operator

import (
	"context"
	"fmt"
	"net/http"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
)

// unawareWait bounds how long the failover of a location waits for the accounts of both locations: one that is dead does not
// answer.
const unawareWait = 2 * time.Second

// unawareLocation is why a location cannot become the primary of all accounts of the other one now: it still takes itself for the
// primary of some, in an epoch that is over, so that its failover would pass them by without a word. Empty if it is not so, or
// that is not known, and for a failover that is under way.
func (b *Backend) unawareLocation(ctx context.Context, l geo.Location) string {
	there, err := b.find(l)
	if err != nil || len(b.o.Locations) < 2 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, unawareWait)
	defer cancel()
	if now, err := ask(ctx, there, &showLocationFailover, wire.At{}, wire.None{}); err != nil || now.UnderWay() {
		return ""
	}
	own := map[geo.Account]wire.Account{}
	answers := each(b, func(l Location) []wire.Account {
		list, _ := accountsOf(ctx, l) // Nothing from one that does not answer.
		return list
	})
	for i, list := range answers {
		for _, a := range list {
			if b.o.Locations[i].Name() == l {
				own[a.Name] = a
			}
		}
	}
	n, first := 0, wire.Account{}
	for _, list := range answers {
		for _, a := range list {
			if behind(l, own[a.Name], a) {
				if n++; n == 1 {
					first = a
				}
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s has not learned yet of failovers to %s (accounts: %d, such as %s in epoch %s), and would pass those accounts by: "+
		"it can become their primary once it reaches %s, and their copies are whole; antipodectl why %s; "+
		"other accounts move one by one: antipodectl failover unplanned ACCOUNT",
		l, first.Primary, n, first.Name, first.Epoch, first.Primary, first.Name)
}

// failLocationOver changes the failover of a location, unless it would pass accounts by.
func (b *Backend) failLocationOver(ctx context.Context, l geo.Location, f wire.Failover) (wire.LocationFailover, error) {
	if f.Type == wire.FailoverUnplanned {
		if why := b.unawareLocation(ctx, l); why != "" {
			return wire.LocationFailover{}, &wire.Error{Status: http.StatusConflict, Code: wire.CodeUnaware, Message: why}
		}
	}
	return at(ctx, b, &failLocationOver, wire.At{Location: l}, f)
}
