package dns

import (
	msg "github.com/miekg/dns"
)

// reply is the answer to a question.
type reply struct {
	code              int
	answer, authority []msg.RR
	additional        []msg.RR
}

// authoritative reports whether the reply is by the zone's data.
func (r reply) authoritative() bool {
	return r.code == msg.RcodeSuccess || r.code == msg.RcodeNameError
}

// answer answers a question out of a view (RFC 1034 4.3.2, RFC 2308). The name in an answer has the case of the
// question.
func (z *Zone) answer(v *View, q msg.Question) reply {
	n := z.parse(q.Name)
	switch {
	case n.kind == outside, q.Qclass != msg.ClassINET, !answered(q.Qtype):
		return reply{code: msg.RcodeRefused}
	case n.kind == absent:
		return z.none(v, msg.RcodeNameError)
	case n.kind == alias, n.kind == epoch:
		return z.ofAccount(v, q, n)
	}
	out := z.none(v, msg.RcodeSuccess)
	switch n.kind {
	case apex:
		return z.ofApex(v, q, out)
	case server:
		out.answer = z.addresses(q.Name, n.host.addresses, one(q.Qtype, msg.TypeA))
	case place:
		out.answer = z.addresses(q.Name, z.places[n.location], one(q.Qtype, msg.TypeA))
	}
	if len(out.answer) > 0 {
		out.authority = nil
	}
	return out
}

// answered reports whether questions of a type are answered: not those for whole zones or about a transaction.
func answered(t uint16) bool {
	switch t {
	case msg.TypeAXFR, msg.TypeIXFR, msg.TypeMAILA, msg.TypeMAILB, msg.TypeTKEY, msg.TypeTSIG, msg.TypeOPT, msg.TypeNone:
		return false
	}
	return true
}

// one returns the type to answer a question for any type with: one of a name's is enough (RFC 8482).
func one(asked, t uint16) uint16 {
	if asked == msg.TypeANY {
		return t
	}
	return asked
}

// none answers that there is no such name, or no record of the type.
func (z *Zone) none(v *View, code int) reply {
	return reply{code: code, authority: []msg.RR{z.soa(v.Serial())}}
}

// ofApex answers for the zone's own name. none is the answer without a record.
func (z *Zone) ofApex(v *View, q msg.Question, none reply) reply {
	var out reply
	switch one(q.Qtype, msg.TypeSOA) {
	case msg.TypeSOA:
		out.answer = []msg.RR{z.soa(v.Serial())}
	case msg.TypeNS:
		for _, h := range z.servers {
			out.answer = append(out.answer, &msg.NS{Hdr: z.header(z.origin, msg.TypeNS), Ns: h.name})
			if msg.IsSubDomain(z.origin, h.name) {
				out.additional = append(out.additional, z.addresses(h.name, h.addresses, msg.TypeA)...)
				out.additional = append(out.additional, z.addresses(h.name, h.addresses, msg.TypeAAAA)...)
			}
		}
	default:
		return none
	}
	for _, rr := range out.answer {
		rr.Header().Name = q.Name
	}
	return out
}

// ofAccount answers for a name of an account. While nothing is known of any, no name is denied: resolvers would
// keep that.
func (z *Zone) ofAccount(v *View, q msg.Question, n node) reply {
	e, found := v.Lookup(n.account)
	if !found && !v.Known() {
		return reply{code: msg.RcodeServerFailure}
	}
	l, exists := e.Location(n.secondary)
	if n.clone {
		l, exists = e.Clone()
	}
	if !found || !exists {
		return z.none(v, msg.RcodeNameError)
	}
	if n.kind == epoch {
		if one(q.Qtype, msg.TypeTXT) != msg.TypeTXT {
			return z.none(v, msg.RcodeSuccess)
		}
		return reply{answer: []msg.RR{z.txt(q.Name, e.Text(n.secondary))}}
	}
	if z.places[l] == nil {
		return reply{code: msg.RcodeServerFailure} // The options have no address of the location.
	}
	out := reply{answer: []msg.RR{z.cname(q.Name, n.service, l)}}
	if one(q.Qtype, msg.TypeCNAME) == msg.TypeCNAME {
		return out
	}
	addresses := z.addresses(z.placeName(n.service, l), z.places[l], q.Qtype)
	if out.answer = append(out.answer, addresses...); len(addresses) == 0 {
		out.authority = []msg.RR{z.soa(v.Serial())}
	}
	return out
}
