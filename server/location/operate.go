package location

import (
	"context"
	"encoding/base64"

	wire "antipode/client/admin"
	"antipode/replication/link"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// DescribeLink describes what an operator made of the link.
func DescribeLink(l *link.Link) wire.Link {
	switch cut, delay := l.State(); {
	case cut:
		return wire.Link{State: wire.LinkCut}
	case delay > 0:
		return wire.Link{State: wire.LinkDelayed, DelaySeconds: delay.Seconds()}
	}
	return wire.Link{State: wire.LinkUp}
}

// SetLink cuts, delays or heals the link.
func SetLink(l *link.Link, to wire.Link) {
	switch to.State {
	case wire.LinkCut:
		l.Cut()
	case wire.LinkDelayed:
		l.Delay(to.Delay())
	default:
		l.Heal()
	}
}

// Keys are the keys of an account.
func Keys(a *catalog.Account) wire.Keys {
	encode := base64.StdEncoding.EncodeToString
	return wire.Keys{Name: a.Name, Key1: encode(a.Key1), Key2: encode(a.Key2)}
}

// CreateAccount makes an account whose primary is this location: see
// directory.Directory.Create and Ensure. The process must be the one with the catalog's leader.
func (l *Location) CreateAccount(ctx context.Context, n wire.NewAccount) (*catalog.Account, error) {
	key1, err := base64.StdEncoding.DecodeString(n.Key1)
	if err != nil {
		return nil, storageerr.InvalidInput.Saying("key1 is not base64")
	}
	key2, err := base64.StdEncoding.DecodeString(n.Key2)
	if err != nil {
		return nil, storageerr.InvalidInput.Saying("key2 is not base64")
	}
	if n.Ensure {
		return l.Directory.Ensure(ctx, n.Name, key1, key2, nil)
	}
	return l.Directory.Create(ctx, n.Name, key1, key2)
}
