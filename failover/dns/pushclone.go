package dns

import (
	"context"
	"errors"
	"strings"

	msg "github.com/miekg/dns"

	"antipode/geo"
)

// The names of an account's clone follow the account in a second update. So records of others at the clone's names do
// not keep the account's names from following a failover. The clone's names have no epoch record. Their prerequisite
// is the account's record as it is pushed, so that a pusher that knows an older epoch changes nothing.

// cloneName returns the name of the clone of an account.
func (z *Zone) cloneName(a geo.Account, s geo.Service) string {
	return z.aliasName(a+geo.CloneSuffix, s, false)
}

// cloneUpdate returns the update that has the names of the clone follow an entry whose account is pushed. had: they were
// written before. Names that were not must not be in use.
func (z *Zone) cloneUpdate(e Entry, had bool) *msg.Msg {
	m := z.newUpdate()
	m.Used([]msg.RR{z.txt(z.keyName(e.Account), e.Text(false))})
	l, exists := e.Clone()
	for _, s := range geo.Services {
		alias := z.cname(z.cloneName(e.Account, s), s, l)
		if had {
			m.RemoveRRset([]msg.RR{alias})
		} else {
			m.NameNotUsed([]msg.RR{alias})
		}
		if exists {
			m.Insert([]msg.RR{alias})
		}
	}
	return m
}

// clone pushes the names of the clone of an account whose record is at the server as e has it. It returns the outcome, empty
// where nothing was to be changed.
func (p *Pusher) clone(ctx context.Context, e Entry) (said string, err error) {
	z, want := p.o.Zone, ""
	if l, exists := e.Clone(); exists {
		want = z.placeName(geo.Blob, l)
	}
	have, err := p.readClone(ctx, e.Account)
	if err != nil || have == want {
		return "", err
	}
	if have != "" && !strings.HasSuffix(have, "."+labelStore+"."+z.origin) {
		return outcomeForeign, nil
	}
	_, err = p.peer.exchange(ctx, z.cloneUpdate(e, have != ""))
	switch {
	case errors.Is(err, errRaced):
		return "", nil // The account was changed meanwhile. Who has done that pushes its clone, or the next comparison does.
	case errors.Is(err, errForeign):
		// Or another one has written the same names meanwhile.
		if have, err = p.readClone(ctx, e.Account); err != nil || have == want {
			return "", err
		}
		return outcomeForeign, nil
	}
	return outcomeDone, err
}

// readClone returns where the clone of an account leads to at the server, by the name of one service: all change together.
// It is empty if there is no such name.
func (p *Pusher) readClone(ctx context.Context, a geo.Account) (string, error) {
	list, err := p.peer.ask(ctx, p.o.Zone.cloneName(a, geo.Blob), msg.TypeCNAME)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return msg.CanonicalName(list[0].(*msg.CNAME).Target), nil
}
