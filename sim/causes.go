package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"antipode/client/admin"
	"antipode/geo"
)

// ErrWhy: why named nothing, or something else, where a service was held back for a known cause, or a cause
// where all was well.
var ErrWhy = errors.New("sim: why does not name what holds a service back")

// Stall is a cause for which Last Sync Time stands still. RunStall plays it.
type Stall string

// Stalls lists all causes.
func Stalls() (list []Stall) {
	for _, c := range stallTable {
		list = append(list, c.name)
	}
	return list
}

// stallTable has how each of them is caused.
var stallTable = [...]struct { //nolint:gochecknoglobals // A table.
	name  Stall
	begin func(*Sim, *location) stalled
}{
	{"link cut", (*Sim).stallByLink},
	{"stream full", (*Sim).stallByFullStream},
	{"stream deleted", (*Sim).stallByDeletedStream},
	{"applier killed", (*Sim).stallByKilledApplier},
	{"secondary disk full", (*Sim).stallByFullDisk},
	{"one replica slow", (*Sim).stallBySlowReplica},
	{"poison record", (*Sim).stallByPoison},
	{"clock stepped", (*Sim).stallByClock},
	{"huge blob", (*Sim).stallByHugeBlob},
	{"wrong credentials", (*Sim).stallByCredentials},
}

// stalled is a cause under way.
type stalled struct {
	// what is the cause in words.
	what string
	// held are the services that it holds back. Those that are neither held nor open must stay well.
	held, open func(*account, geo.Service) bool
	// named reports whether a cause is the right one for a service that is held back.
	named func(*account, geo.Service, admin.Cause) bool
	// end ends it, beside what Sim.heal ends.
	end func()
}

// Lengths of a run with a stall, in virtual time.
const (
	quietPhase = time.Second
	// stallPause lies between two questions.
	stallPause = 50 * time.Millisecond
	// seenMax is within which time a stall must be seen, nameMax is how long after that it must be named at
	// the latest, and stallPhase is for how long after that it goes on.
	seenMax    = 12 * time.Second
	nameMax    = 2 * time.Second
	stallPhase = 2 * time.Second
)

// RunStall plays a cause under a seed: a quiet time, in which nothing may be named; the cause, which must be
// named from 2 s after it can be seen; and its end, after which all must be well and equal again.
func RunStall(o Options, name Stall) Result {
	s := newSim(o)
	s.skewMax = skewMax / 3 // A lag of one second is named.
	if o.Queues {
		s.planQueues(o.Seed)
	}
	for _, c := range stallTable {
		if c.name == name {
			s.patient = name == "one replica slow"
			s.story = func() { s.playStall(c.begin) }
		}
	}
	return s.result(o.Seed)
}

func (s *Sim) playStall(begin func(*Sim, *location) stalled) {
	s.startWorkload()
	s.startQueues()
	s.startChecks()
	s.runFor(quietPhase)
	s.watchFor(quietPhase, func() { s.expectWell(nil) })
	s.verifyAll(false) // While clients write.
	if s.err != nil {
		return
	}
	// What follows is drawn apart, so that each draw has its meaning under every change of the workload.
	s.victims = rand.New(rand.NewPCG(s.rng.Uint64(), 7))
	c := begin(s, s.locations[s.victims.IntN(len(s.locations))])
	s.event("stall: %s", c.what)
	s.watchStall(&c)
	if c.end != nil {
		c.end()
	}
	s.workEnd = s.now
	s.heal()
	s.emptyQueues()
	s.drain()
	if !s.runUntil(drainMax, func() bool { return s.unwellAny(nil) == "" }) && s.err == nil {
		s.fail(fmt.Errorf("%w: after the end of it: %s", ErrWhy, s.unwellAny(nil)))
	}
	s.checkEnd()
}

// watchFor lets time pass and looks every now and then.
func (s *Sim) watchFor(d time.Duration, look func()) {
	for end := s.now + d; s.now < end && s.err == nil; {
		s.runFor(stallPause)
		look()
	}
}

// unwellAny returns which service is not well, of those that are not left out; "" for none.
func (s *Sim) unwellAny(leaveOut func(*account, geo.Service) bool) string {
	for _, a := range s.accounts {
		for _, svc := range s.used {
			if leaveOut != nil && leaveOut(a, svc) {
				continue
			}
			if why := s.unwell(a, svc); why != "" {
				return why
			}
		}
	}
	return ""
}

func (s *Sim) expectWell(leaveOut func(*account, geo.Service) bool) {
	if why := s.unwellAny(leaveOut); why != "" {
		s.fail(fmt.Errorf("%w: nothing holds it back: %s", ErrWhy, why))
	}
}

// heldService is a service that must be held back.
type heldService struct {
	a   *account
	svc geo.Service
	// seen is when it was not well for the first time, zero before; named is how often it was named since.
	seen  time.Duration
	named int
}

// watchStall looks at all services while a cause lasts.
func (s *Sim) watchStall(c *stalled) {
	var all []*heldService
	for _, a := range s.accounts {
		for _, svc := range s.used {
			if c.held(a, svc) {
				all = append(all, &heldService{a: a, svc: svc})
			}
		}
	}
	spared := func(a *account, svc geo.Service) bool { return c.held(a, svc) || c.open != nil && c.open(a, svc) }
	begun, last := s.now, time.Duration(0)
	if len(all) == 0 {
		last = s.now
	}
	for s.err == nil && (last == 0 || s.now < last+nameMax+stallPhase) {
		s.runFor(stallPause)
		s.expectWell(spared)
		unseen := ""
		for _, h := range all {
			if h.look(s, c); h.seen == 0 {
				unseen = fmt.Sprintf("%s %s is well for %s: %s", h.a.name, h.svc, seenMax, c.what)
			}
		}
		if unseen == "" && last == 0 {
			last = s.now
		}
		if unseen != "" && s.now > begun+seenMax {
			s.fail(fmt.Errorf("%w: %s", ErrWhy, unseen))
		}
	}
	for _, h := range all {
		if h.named == 0 && s.err == nil {
			s.fail(fmt.Errorf("%w: %s %s was never named: %s", ErrWhy, h.a.name, h.svc, c.what))
		}
	}
}

// look asks why a service that must be held back is.
func (h *heldService) look(s *Sim, c *stalled) {
	w := s.whyOf(h.a, h.svc)
	if w.OK {
		return
	}
	if h.seen == 0 {
		h.seen = s.now
		s.event("%s %s is held back", h.a.name, h.svc)
	}
	switch right := len(w.Causes) > 0 && c.named(h.a, h.svc, w.Causes[0]); {
	case right && h.named == 0:
		h.named++
		s.event("%s %s: named: %s, %s, %s", h.a.name, h.svc, w.Causes[0].Stage, w.Causes[0].Location, w.Causes[0].Detail)
	case right:
		h.named++
	case s.now > h.seen+nameMax:
		s.fail(fmt.Errorf("%w: %s: %s %s, held back for %s: %s", ErrWhy, c.what, h.a.name, h.svc, s.now-h.seen, describeWhy(w)))
	}
}

// describeWhy is an answer on one line.
func describeWhy(w admin.ServiceWhy) string {
	out := fmt.Sprintf("%s %s", w.Status, w.Reason)
	if w.LagSeconds != nil {
		out += fmt.Sprintf(" lag %.1fs", *w.LagSeconds)
	}
	for _, c := range w.Causes {
		out += fmt.Sprintf("; %s at %s r%d %s %s: %s (%s)", c.Stage, c.Location, c.Range, c.Stream, c.For, c.Detail, c.Error)
	}
	return out
}
