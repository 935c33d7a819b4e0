package dns

import (
	msg "github.com/miekg/dns"

	"antipode/geo"
)

// An update of an account is one message, which a server carries out whole or not at all (RFC 2136 3.7). Its
// prerequisite is the epoch record as it was read before, or that there is none: of two that push at a time, one
// is refused and reads again, and one that knows an older epoch finds the newer one and leaves it.

// keyName is the name of the record that an account's prerequisite is about: all records of an account change
// together.
func (z *Zone) keyName(a geo.Account) string { return epochName(z.aliasName(a, geo.Blob, false)) }

// owned are the records of one name of an account: its CNAME and its TXT.
type owned struct {
	alias, text msg.RR
}

// records returns the records of an account, of its primary names or of its secondary ones.
func (z *Zone) records(e Entry, secondary bool) (out []owned) {
	l, exists := e.Location(secondary)
	if !exists {
		return nil
	}
	for _, s := range geo.Services {
		name := z.aliasName(e.Account, s, secondary)
		out = append(out, owned{z.cname(name, s, l), z.txt(epochName(name), e.Text(secondary))})
	}
	return out
}

// newUpdate returns an update of the zone.
func (z *Zone) newUpdate() *msg.Msg {
	m := new(msg.Msg)
	m.SetUpdate(z.origin)
	return m
}

// update returns the update that has an account's records follow an entry. former is the text of the record of
// keyName as it was read, empty if there was none.
//
// A name that Antipode has not written yet must not be in use: what somebody else keeps there is not overwritten.
func (z *Zone) update(e Entry, former string) *msg.Msg {
	m := z.newUpdate()
	key := z.keyName(e.Account)
	had, _ := ParseText(former) // A text of another form is not updated: see Pusher.
	if former == "" {
		m.RRsetNotUsed([]msg.RR{z.txt(key, "")})
	} else {
		m.Used([]msg.RR{z.txt(key, former)})
	}
	for _, secondary := range []bool{false, true} {
		wanted := z.records(e, secondary)
		written := former != "" && (!secondary || had.Secondary != "")
		if written && wanted == nil {
			z.remove(m, e.Account)
		}
		for _, r := range wanted {
			if written {
				m.RemoveRRset([]msg.RR{r.alias, r.text})
			} else {
				m.NameNotUsed([]msg.RR{r.alias})
			}
			m.Insert([]msg.RR{r.alias, r.text})
		}
	}
	return m
}

// remove removes the records of an account's secondary names.
func (z *Zone) remove(m *msg.Msg, a geo.Account) {
	for _, s := range geo.Services {
		name := z.aliasName(a, s, true)
		m.RemoveRRset([]msg.RR{&msg.CNAME{Hdr: z.header(name, msg.TypeCNAME)}, z.txt(epochName(name), "")})
	}
}

// placeUpdate returns the update of the addresses of a location's service.
func (z *Zone) placeUpdate(s geo.Service, l geo.Location) *msg.Msg {
	m, name := z.newUpdate(), z.placeName(s, l)
	for _, t := range addressTypes() {
		m.RemoveRRset([]msg.RR{&msg.ANY{Hdr: z.header(name, t)}})
		m.Insert(z.addresses(name, z.places[l], t))
	}
	return m
}

func addressTypes() []uint16 { return []uint16{msg.TypeA, msg.TypeAAAA} }
