package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"antipode/client/admin"
	"antipode/geo"
	"antipode/replication/bus"
	"antipode/services/blobs"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// The causes of stalls. l is the location in which the services stand that are held back: the secondary of
// their accounts.

// everything holds all services back.
func everything(*account, geo.Service) bool { return true }

// into are the services of accounts whose secondary is a location.
func into(l *location) func(*account, geo.Service) bool {
	return func(a *account, _ geo.Service) bool { return a.home.far == l }
}

// ofRange are those of them that a source range decides about.
func ofRange(l *location, id geo.RangeID) func(*account, geo.Service) bool {
	return func(a *account, svc geo.Service) bool {
		return a.home.far == l && (id == geo.FirstRange(svc) || id == geo.FirstRange(geo.Catalog))
	}
}

// stallByLink cuts the whole link, or the stream alone.
func (s *Sim) stallByLink(*location) stalled {
	calls := s.victims.IntN(2) == 0
	s.setLink(calls, true)
	return stalled{
		what: fmt.Sprintf("the link is cut, calls %t", calls), held: everything,
		named: func(_ *account, _ geo.Service, c admin.Cause) bool {
			return c.Stage == admin.StageLink && c.Error != ""
		},
	}
}

// stallByFullStream lets the bus refuse everything, as one does that is full.
func (s *Sim) stallByFullStream(l *location) stalled {
	l.bus.RefuseIf(func(bus.Message) bool { return true })
	return stalled{
		what: fmt.Sprintf("the stream into %s is full", l.name), held: into(l),
		named: func(a *account, _ geo.Service, c admin.Cause) bool {
			return c.Stage == admin.StageNotPublished && c.Location == a.home.name && strings.Contains(c.Detail, "full")
		},
		end: func() { l.bus.RefuseIf(nil) },
	}
}

// stallByDeletedStream deletes the stream with all that it holds; while it cannot be made again, the bus
// does not answer. One that is made again at once holds nothing back.
func (s *Sim) stallByDeletedStream(l *location) stalled {
	l.bus.Wipe()
	if s.victims.IntN(3) == 0 {
		return stalled{what: fmt.Sprintf("the stream into %s is made again", l.name), held: func(*account, geo.Service) bool { return false }}
	}
	l.bus.Cut(true, true)
	return stalled{
		what: fmt.Sprintf("the stream into %s is deleted", l.name), held: into(l),
		named: func(_ *account, _ geo.Service, c admin.Cause) bool {
			return c.Stage == admin.StageLink && c.Location == l.name && strings.Contains(c.Detail, "bus")
		},
		end: func() { l.bus.Cut(false, false) },
	}
}

// stallByKilledApplier kills the receiver, or the nodes that apply what it takes.
func (s *Sim) stallByKilledApplier(l *location) stalled {
	if s.victims.IntN(3) == 0 {
		l.deafen(true)
		return stalled{
			what: fmt.Sprintf("nothing receives in %s", l.name), held: into(l),
			named: func(_ *account, _ geo.Service, c admin.Cause) bool {
				return c.Stage == admin.StageFailing && c.Location == l.name && strings.Contains(c.Detail, "receives")
			},
			end: func() { l.deafen(false) },
		}
	}
	id := s.shipped[s.victims.IntN(len(s.shipped))]
	on := l.holders(id)
	for _, i := range s.victims.Perm(len(on))[:len(on)/2+1] {
		on[i].abandon()
	}
	without := func(id geo.RangeID) bool {
		up := 0
		for _, m := range l.holders(id) {
			if m.n != nil {
				up++
			}
		}
		return up <= len(l.placement.Of(id))/2
	}
	stands := func(svc geo.Service) bool {
		return without(geo.FirstRange(svc)) || without(geo.FirstRange(geo.Catalog))
	}
	return stalled{
		what: fmt.Sprintf("r%d in %s has no quorum", id, l.name),
		held: func(_ *account, svc geo.Service) bool { return stands(svc) },
		named: func(a *account, svc geo.Service, c admin.Cause) bool {
			stage := admin.StageFailing
			if a.home == l {
				stage = admin.StageNotPublished
			}
			return c.Stage == stage && c.Location == l.name && without(c.Range) && strings.Contains(c.Detail, "no leader")
		},
		// Others lead for a moment, and payload has too few nodes.
		open: everything,
	}
}

// stallByFullDisk fills the disks of a location, or all but one, that of the node that leads a range among them.
func (s *Sim) stallByFullDisk(l *location) stalled {
	id := s.shipped[s.victims.IntN(len(s.shipped))]
	full := l.members
	if led := l.newest(id); led != nil && s.victims.IntN(2) == 0 {
		full = slices.DeleteFunc(slices.Clone(l.members), func(m *member) bool { return m == l.members[(slices.Index(l.members, led)+1)%len(l.members)] })
	}
	for _, m := range full {
		m.full = true
	}
	return stalled{
		what: fmt.Sprintf("%d disks in %s are full, that of the leader of r%d among them", len(full), l.name, id),
		held: ofRange(l, id), open: everything,
		named: func(_ *account, svc geo.Service, c admin.Cause) bool {
			return c.Stage == admin.StageFailing && c.Location == l.name && strings.Contains(c.Detail, "disk")
		},
	}
}

// stallBySlowReplica makes a follower slow that the leader still waits for.
func (s *Sim) stallBySlowReplica(l *location) stalled {
	id := s.shipped[s.victims.IntN(len(s.shipped))]
	on := l.holders(id)
	m := on[s.victims.IntN(len(on))]
	if m.leads(id) {
		m = on[(slices.Index(on, m)+1)%len(on)]
	}
	led := map[geo.RangeID]bool{} // Until it learns of another leader, commits fail there.
	for _, other := range s.shipped {
		led[other] = m.leads(other)
	}
	m.slow = 1500*time.Millisecond + time.Duration(s.victims.Int64N(int64(1500*time.Millisecond)))
	return stalled{
		what: fmt.Sprintf("node %d of %s is slow, by %s", m.id, l.name, m.slow),
		held: ofRange(l, id), open: everything,
		named: func(_ *account, _ geo.Service, c admin.Cause) bool {
			return c.Stage == admin.StageFailing && c.Location == l.name && slices.Contains(l.placement.Of(c.Range), m.id) &&
				(led[c.Range] || strings.Contains(c.Detail, admin.NodeName(l.name, m.id)))
		},
	}
}

// stallByPoison damages a record of one stream wherever it is read.
func (s *Sim) stallByPoison(l *location) stalled {
	st := s.drawStream(l)
	s.poison(st)
	svc := geo.Service(st.Range)
	return stalled{
		what: fmt.Sprintf("%s has a record that cannot be decoded", st),
		held: func(a *account, of geo.Service) bool {
			return a.name == st.Account && (of == svc || svc == geo.Catalog)
		},
		named: func(_ *account, _ geo.Service, c admin.Cause) bool {
			return c.Stage == admin.StageStopped && c.Location == l.name && c.Range == st.Range && c.Lane != nil && *c.Lane == st.Lane &&
				strings.Contains(c.Detail, change.StopPoison.String())
		},
		end: func() { s.curePoison(l, st) },
	}
}

// drawStream draws a stream that a location receives and that clients write to.
func (s *Sim) drawStream(l *location) geo.Stream {
	var all []geo.Stream
	for _, a := range s.accounts {
		for _, svc := range s.used {
			if a.home.far == l {
				all = append(all, l.far.history[geo.FirstRange(svc)].streams(a.name)...)
			}
		}
	}
	return all[s.victims.IntN(len(all))]
}

// poisoned is a stream whose records from a number on cannot be decoded.
type poisoned struct {
	stream geo.Stream
	from   geo.Seq
}

// poison makes that every record of a stream that is not built yet cannot be decoded.
func (s *Sim) poison(st geo.Stream) {
	to := s.account(st.Account).home
	s.poisoned = &poisoned{st, to.history[st.Range].m.heads[st].Seq + 1}
	to.far.bus.LoseIf(func(m bus.Message) bool {
		f, err := change.ParseFrame(m.Data)
		if err != nil {
			return false
		}
		for _, b := range f.Records {
			if rec, err := change.ParseRecord(b); err == nil && s.poisoned.has(rec.Stream(), rec.Seq) {
				return true // It has to be pulled, where it is damaged.
			}
		}
		return false
	})
}

// has reports whether a record cannot be decoded.
func (p *poisoned) has(st geo.Stream, n geo.Seq) bool {
	return p != nil && p.stream == st && n >= p.from
}

// damage flips a byte of each such record.
func (p *poisoned) damage(st geo.Stream, from geo.Seq, records [][]byte) [][]byte {
	out := slices.Clone(records)
	for i := range out {
		if p.has(st, from+geo.Seq(i)) {
			out[i] = slices.Clone(out[i])
			out[i][len(out[i])/2] ^= 1
		}
	}
	return out
}

// curePoison ends it, and lets the stream go on at both ends, as antipodectl range resume does.
func (s *Sim) curePoison(l *location, st geo.Stream) {
	s.poisoned = nil
	l.bus.LoseIf(nil)
	for _, at := range []*location{l, l.far} {
		cmd := &ranges.Resume{Stream: st}
		if err := at.Submit(context.Background(), st.Range, cmd); err != nil || at == l && cmd.Was != change.StopPoison {
			s.fail(fmt.Errorf("%w: %s goes on at %s: was %q, %w", ErrDrain, st, at.name, cmd.Was, err))
		}
	}
}

// stallByClock sets all clocks of a location, or those of two of three nodes of one, each to another time.
func (s *Sim) stallByClock(l *location) stalled {
	// A leap is believed after as long as it is, which is longer than what is watched.
	off := 6*time.Second + time.Duration(s.victims.Int64N(int64(4*time.Second)))
	set := func(members []*member, off time.Duration) {
		for _, m := range members {
			m.clock.off += off
		}
	}
	s.wrongClocks = true
	switch s.victims.IntN(3) {
	case 0: // The primary is ahead, or the secondary behind: times wait.
		if s.victims.IntN(2) == 0 {
			set(l.far.members, off)
		} else {
			set(l.members, -off)
		}
		return stalled{
			what: fmt.Sprintf("the clocks of %s are %s behind those of %s", l.name, off, l.far.name), held: into(l), open: everything,
			named: func(_ *account, _ geo.Service, c admin.Cause) bool {
				return disbelieved(c, l) || c.Stage == admin.StageWaiting && c.For == "clock" && c.Location == l.name
			},
		}
	case 1: // The other way round: times look old, and a leap is not believed.
		if s.victims.IntN(2) == 0 {
			set(l.members, off)
		} else {
			set(l.far.members, -off)
		}
		return stalled{
			what: fmt.Sprintf("the clocks of %s are %s ahead of those of %s", l.name, off, l.far.name), held: into(l), open: everything,
			named: func(_ *account, _ geo.Service, c admin.Cause) bool {
				return disbelieved(c, l) || c.Stage == admin.StageClock && c.Location == l.name && strings.Contains(c.Detail, "ahead")
			},
		}
	}
	return s.stallByQuorumOfClocks(l, off)
}

// stallByQuorumOfClocks leaves a range without a quorum of clocks that agree, at either end.
func (s *Sim) stallByQuorumOfClocks(l *location, off time.Duration) stalled {
	at := []*location{l, l.far}[s.victims.IntN(2)]
	id := s.shipped[s.victims.IntN(len(s.shipped))]
	on := at.holders(id)
	skip := s.victims.IntN(len(on))
	for i, m := range on {
		if len(on) > ranges.Replicas || i != skip {
			m.clock.off += time.Duration(i+1) * off
		}
	}
	return stalled{
		what: fmt.Sprintf("no clock of the nodes of r%d in %s agrees with another one", id, at.name), held: ofRange(l, id), open: everything,
		named: func(_ *account, _ geo.Service, c admin.Cause) bool {
			return disbelieved(c, l) && c.Location == at.name
		},
	}
}

// disbelieved reports whether a cause is that a leader commits nothing, since it does not believe its clock: of what is received
// at a location, or of what is sent to it.
func disbelieved(c admin.Cause, to *location) bool {
	at := c.Stage == admin.StageFailing && c.Location == to.name || c.Stage == admin.StageNotPublished && c.Location == to.far.name
	return at && strings.Contains(c.Detail, "the clock is not believed")
}

// stallByHugeBlob writes a blob whose payload takes for ever to cross the link.
func (s *Sim) stallByHugeBlob(l *location) stalled {
	var all []*account
	for _, a := range s.accounts {
		if a.home.far == l {
			all = append(all, a)
		}
	}
	a := all[s.victims.IntN(len(all))]
	p := s.drawPayload()
	for len(p.refs) == 0 {
		p = s.drawPayload()
	}
	for _, ref := range p.refs {
		s.huge[ref.ID] = true
	}
	n := nameOf(a.containers[geo.Blob][0].partition("huge"))
	w := &blobs.PutBlob{Command: blobs.Command{Name: n}}
	w.Blob.Length, w.Blob.Chunks = uint64(len(p.bytes)), p.refs
	s.upload(s.newOp(a, w), p, func() {})
	return stalled{
		what: fmt.Sprintf("the payload of %s/%s does not cross the link", a.name, n.Blob),
		held: func(b *account, svc geo.Service) bool { return b == a && svc == geo.Blob },
		named: func(_ *account, _ geo.Service, c admin.Cause) bool {
			held := c.Stage == admin.StageNotPublished && c.Location == l.far.name
			waits := c.Stage == admin.StageWaiting && c.For == "payload" && c.Location == l.name
			return (held || waits) && strings.Contains(c.Detail, "payload") && c.Lane != nil && *c.Lane == n.Partition().Lane()
		},
		end: func() { clear(s.huge) },
	}
}

// errCredentials is how the other location refuses a call.
var errCredentials = fmt.Errorf("%w: sim: the certificate of the caller is not accepted", kv.ErrUnknown)

// stallByCredentials lets the other location refuse every call, and its bus everything that is published.
func (s *Sim) stallByCredentials(*location) stalled {
	s.callsRefused = errCredentials
	return stalled{
		what: "the other location refuses all credentials", held: everything,
		named: func(_ *account, _ geo.Service, c admin.Cause) bool {
			return c.Stage == admin.StageLink && strings.Contains(c.Error, "certificate")
		},
		end: func() { s.callsRefused = nil },
	}
}
