package skew

import (
	"fmt"
	"slices"
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
)

// The nodes of a stamp may be wrong together: a host is resumed, a time server is wrong, a machine starts with local time
// in its hardware clock. They agree with each other then, and what they stamp in the future is a lower bound of all later
// times, at both locations (R6). So a node gives times by its wall clock only while it believes it:
//
//	new        just started. It asks its peers and the other location, and believes its clock after startWait, unless it
//	           leapt since its first reading
//	believed   while it advances with the monotonic clock
//	proven     believed for provenAfter, or as soon as the clock of a node agrees whose clock is proven
//	leapt      ahead of what was believed by more than geo.ClockOffMax. A proven clock that agrees ends it; if the
//	           other location leapt by as much, leapTogether does; and as much running time as it leapt by: so
//	           nothing waits for longer than it has waited already
//
// A clock that fell behind gives times, which do no harm, but proves nothing. Nor does one that did not agree with those of
// its stamp yet, or is apart from them: nodes whose clocks are right would take it that they leapt. A node whose clock
// agrees with one that leapt, and is not proven, has leapt too: it was started after the leap. A location of which all nodes
// were started after it, and that reaches no other, cannot know. A stamp that has no other location believes its clocks:
// nothing waits for its times.

const (
	// startWait is how long a node that was just started waits for a clock to compare its own with.
	startWait = time.Second
	// provenAfter is how long a clock is believed before it proves others.
	provenAfter = 30 * time.Second
	// leapTogether is how long a leap of both locations is not believed. These three are of running time.
	leapTogether = 10 * time.Second
	// errMax bounds how wrong what was learned of another clock may be, in either direction.
	errMax = geo.ClockOffMax / 2
)

// belief is whether a node believes its wall clock.
type belief struct {
	// base is what the wall clock showed at the monotonic time 0 when it was last believed, zero for one that is new.
	base time.Time
	// first is what it showed at that time by the first reading.
	first time.Time
	// leapt is how far it is ahead of that, by more than geo.ClockOffMax; 0 while it is believed.
	leapt  time.Duration
	proven bool
	// agreed is what the clocks of the stamp last showed: a quorum agreed, and no quorum of those that are proven is apart.
	agreed bool
	// since is when it was started, believed or leapt, in running time. began: it is known.
	since time.Duration
	began bool
	// asking: a question to the other location is under way, or was asked at askedAt of the monotonic time.
	asking  bool
	askedAt time.Duration
}

func (b *belief) believes() bool { return !b.base.IsZero() && b.leapt == 0 }

// Own is a wall clock as its node answers for it.
type Own struct {
	// Wall is in microseconds since the Unix epoch.
	Wall int64
	// Unsure: it proves nothing. Leapt is by how much it leapt, 0 if it did not.
	Unsure bool
	Leapt  time.Duration
}

// Own reads the wall clock here.
func (t *Table) Own() Own {
	now := Read(t.clock)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(now)
	return t.own(now)
}

// own answers for a reading.
func (t *Table) own(r Reading) Own {
	b := &t.belief
	return Own{Wall: r.Wall.UnixMicro(), Unsure: !b.proven || b.leapt != 0 || !b.agreed, Leapt: b.leapt}
}

// weigh compares the newest reading with what was believed.
func (t *Table) weigh() {
	b, ran := &t.belief, t.running.Time()
	if !b.began {
		b.began, b.since, b.first = true, ran, t.base
	}
	leapt := ahead(t.base, b.base)
	switch {
	case !t.paired || plantedbugs.Planted(plantedbugs.LeapUnchecked):
		t.believe(true)
	case b.base.IsZero():
		if sinceFirst := ahead(t.base, b.first); sinceFirst > geo.ClockOffMax+t.baseErr {
			t.distrust(sinceFirst)
		} else if ran-b.since >= startWait {
			t.believe(false)
		}
	case leapt.Abs() <= geo.ClockOffMax+t.baseErr:
		t.believe(b.proven || b.leapt == 0 && ran-b.since >= provenAfter)
	default:
		if (leapt - b.leapt).Abs() > stepMin+t.baseErr {
			b.since = ran
		}
		if b.leapt = leapt; ran-b.since >= leapt.Abs() {
			t.believe(true)
		}
	}
}

// believe believes the newest reading.
func (t *Table) believe(proven bool) {
	b := &t.belief
	if !b.believes() {
		b.since = t.running.Time()
	}
	b.base, b.leapt, b.proven = t.base, 0, proven
}

// distrust takes it that the clock here was right if it had been behind by leapt.
func (t *Table) distrust(leapt time.Duration) {
	t.belief.base, t.belief.leapt, t.belief.proven, t.belief.since = t.base.Add(-leapt), leapt, false, t.running.Time()
}

// weighAgainst takes what was learned of another clock, and what its node answers for it. far: of the other location.
func (t *Table) weighAgainst(s sample, o Own, far bool) {
	b := &t.belief
	if !t.paired || b.proven && b.leapt == 0 || s.err > errMax || t.base.IsZero() {
		return
	}
	agrees := distance(t.base, s.base) <= geo.ClockOffMax+t.baseErr+s.err
	switch {
	case !o.Unsure && agrees:
		t.believe(true)
	case !o.Unsure && (b.base.IsZero() || far && b.leapt == 0): // It was started with it.
		t.distrust(ahead(t.base, s.base))
	case o.Leapt > 0 && agrees && b.leapt == 0 && distance(t.base, s.base) <= o.Leapt/2: // It was started after the leap.
		t.distrust(min(o.Leapt, offMax))
	case o.Leapt == 0 && agrees && far && b.base.IsZero(): // Both locations start.
		t.believe(false)
	case o.Leapt > 0 && agrees && far && t.running.Time()-b.since >= leapTogether:
		t.believe(true)
	}
}

// AskFar returns the monotonic time at which a node of the other location is to be asked for its clock, which is now; false
// for none: one is asked every second while the clock here is not proven. TakeFar follows.
func (t *Table) AskFar() (sent time.Duration, ask bool) {
	now := Read(t.clock)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(now)
	b := &t.belief
	if !t.paired || b.proven && b.leapt == 0 || b.asking || !b.base.IsZero() && now.Mono-b.askedAt < askEvery {
		return 0, false
	}
	b.asking, b.askedAt = true, now.Mono
	return now.Mono, true
}

// TakeFar takes the answer of a node of the other location that was asked at sent, or that none answered. It may be called
// from any goroutine.
func (t *Table) TakeFar(sent time.Duration, o Own, err error) {
	now := Read(t.clock)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.belief.asking = false
	t.note(now)
	if width := now.Mono - sent; err == nil && width >= 0 {
		t.weighAgainst(sample{base: time.UnixMicro(o.Wall).Add(-(sent + width/2)), err: width/2 + time.Microsecond}, o, true)
	}
}

// Why says why the clock here gives no times, by what is known of it and of those of the peers. A leap is named only
// if no other clock of the stamp is apart from it: else the others did not leap, and this one alone has to be set
// right.
func (t *Table) Why() string {
	t.mu.Lock()
	leapt, alone := t.belief.leapt, false
	for _, p := range t.peers {
		s, known := t.best(p)
		alone = alone || known && !s.leapt && distance(t.base, s.base) > geo.ClockOffMax+t.baseErr+s.err
	}
	t.mu.Unlock()
	if leapt <= 0 || alone {
		offsets := t.Offsets()
		apart := func(o Offset) bool { return o.Ahead.Abs() > geo.ClockOffMax }
		if leapt <= 0 && len(offsets) > 0 && !slices.ContainsFunc(offsets, apart) {
			return "its clock is not proven yet by those of a quorum"
		}
		return Describe(offsets)
	}
	return fmt.Sprintf("its clock leapt ahead by %s, or those of the other location are slow by that: set right what is wrong", leapt.Round(10*time.Millisecond))
}
