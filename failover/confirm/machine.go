package confirm

import (
	"cmp"
	"maps"
	"time"

	"antipode/failover/witness"
	"antipode/stamp/ranges"
)

// Source is what confirmed the epochs of a node.
type Source string

// The sources.
const (
	// None: they are not confirmed.
	None Source = ""
	// ByExchange: the other location answered.
	ByExchange Source = "exchange"
	// ByNode: another node of the stamp held the confirmation.
	ByNode Source = "node"
	// ByOverride: an operator took the responsibility.
	ByOverride Source = "override"
	// ByWitness: the location has a lease of the witness.
	ByWitness Source = "witness"
	// ByPolicy: the other location did not answer, and the policy is to go on without it.
	ByPolicy Source = "policy"
)

// partedMax is how long an exchange may fail after something got to the other location: its connections may take some
// seconds to come back.
const partedMax = 10 * time.Second

// LookEvery is how often the owner steps the machine with a Look.
const LookEvery = 200 * time.Millisecond

// Options configures a Machine. The zero value is valid.
type Options struct {
	// Hold is how long the confirmation outlives a Look: a pause of the process that is longer ends it. Zero means
	// 5 s. Below some times LookEvery a busy machine loses it.
	Hold time.Duration
	// Witness: there is a witness. Then nothing but its lease, or an operator, confirms the epochs.
	Witness bool
	// Every is the time between two exchanges while the confirmation is held. Zero means 30 s.
	Every time.Duration
	// Retry is the time between two attempts while it is not. Zero means 500 ms.
	Retry time.Duration
}

// Event is what happened.
type Event interface{ event() }

// The events.
type (
	// Look is the time that passes. Alone is the standing policy: go on without the other location where it does not answer.
	Look struct{ Alone bool }
	// Exchanged is the end of an Exchange: the accounts with a higher epoch there, or why there was no answer.
	Exchanged struct {
		Above Epochs
		Err   error
	}
	// NodesAsked is the end of AskNodes: whether another node of the stamp holds the confirmation.
	NodesAsked struct {
		Holds bool
		Above Epochs
	}
	// Overridden is an operator's word that the epochs are confirmed.
	Overridden struct{}
	// Renewed is the end of a Renew: the lease, or why there is none.
	Renewed struct {
		Grant witness.Grant
		Err   error
	}
	// Parted is that what was sent to the other location did not get there.
	Parted struct{}
	// Reached is that something got there while State.Parted is set.
	Reached struct{}
)

func (Look) event()       {}
func (Exchanged) event()  {}
func (NodesAsked) event() {}
func (Overridden) event() {}
func (Renewed) event()    {}
func (Parted) event()     {}
func (Reached) event()    {}

// Effect is what the owner is to do.
type Effect interface{ effect() }

// The effects.
type (
	// Exchange asks the other location. An Exchanged must follow.
	Exchange struct{}
	// AskNodes asks the other nodes of the stamp. A NodesAsked must follow.
	AskNodes struct{}
	// Changed reports that the epochs are confirmed by Source, or, if that is None, no longer by Was. Stood is how long no step was
	// taken then.
	Changed struct {
		Source, Was Source
		Stood       time.Duration
	}
	// Renew asks the witness for a lease. A Renewed must follow.
	Renew struct {
		// After is the newest claim that is known.
		After uint64
	}
	// Higher are accounts of which this location has to take over that they moved.
	Higher struct{ Above Epochs }
)

func (Exchange) effect() {}
func (AskNodes) effect() {}
func (Changed) effect()  {}
func (Higher) effect()   {}
func (Renew) effect()    {}

// State is what a Machine shows.
type State struct {
	Source Source
	// Above are the accounts that stay refused.
	Above Epochs
	// Since is the monotonic time at which that began, 0 before the first step.
	Since time.Duration
	// Failed is why the last exchange failed, nil if it did not.
	Failed error
	// Unwitnessed is why the witness gave no lease last, nil if it did.
	Unwitnessed error
	// Parted: the other location was out of reach, and no exchange that began later has ended yet. What it would refuse
	// is not known meanwhile. PartedSince is the monotonic time at which that began last.
	Parted      bool
	PartedSince time.Duration
}

// Machine holds whether the epochs are confirmed. Its owner guards it.
type Machine struct {
	o     Options
	state State
	until time.Duration
	alone bool
	// stepped is the time of the last step.
	stepped time.Duration
	// exchange and nodes are the calls under way: when they began; due is when the next ones begin.
	exchange, nodes call
	due             time.Duration

	// renewal is the call to the witness under way, renewDue when the next one begins. lease is until when the last
	// lease is held. claims are those that the witness has, up to version of incarnation.
	renewal         call
	renewDue, lease time.Duration
	claims          Epochs
	version         uint64
	incarnation     string
	exchanged       Epochs

	// parted is when the last Parted came, and reached when the first Reached after it did.
	parted, reached time.Duration
}

// call is a call under way.
type call struct {
	open  bool
	began time.Duration
}

// New returns a machine that holds nothing.
func New(o Options) *Machine {
	o.Hold = cmp.Or(o.Hold, 5*time.Second)
	o.Every = cmp.Or(o.Every, 30*time.Second)
	o.Retry = cmp.Or(o.Retry, 500*time.Millisecond)
	return &Machine{o: o, state: State{Above: Epochs{}}, claims: Epochs{}, exchanged: Epochs{}}
}

// State returns what the machine shows.
func (m *Machine) State() State { return m.state }

// Held returns what a fence takes now.
func (m *Machine) Held() ranges.Confirmed {
	return ranges.Confirmed{Until: m.until, Above: m.state.Above}
}

// Step takes an event at the monotonic time now, which counts suspension (R5).
func (m *Machine) Step(now time.Duration, e Event) (out []Effect) {
	if m.state.Source != None && now >= m.until {
		out = append(out, Changed{Was: m.state.Source, Stood: now - m.stepped})
		m.state.Source, m.state.Since, m.due = None, now, now
	}
	if m.state.Since == 0 {
		m.state.Since = now
	}
	switch e := e.(type) {
	case Look:
		m.alone = e.Alone
		out = append(out, m.begin(now)...)
	case Exchanged:
		out = append(out, m.endExchange(now, e)...)
	case Renewed:
		out = append(out, m.renewed(now, e)...)
	case NodesAsked:
		began := m.nodes.began
		m.nodes.open = false
		if e.Holds && m.state.Source == None && m.fresh(now, began) && !m.o.Witness {
			m.know(m.exchanged, e.Above)
			out = append(out, m.hold(now, ByNode))
		}
	case Overridden:
		// A lease that the witness does not renew is about to end: the operator's word is of what comes then.
		if m.state.Source == None || m.state.Source == ByWitness && m.state.Unwitnessed != nil {
			out = append(out, m.hold(now, ByOverride))
		}
	case Parted:
		if m.parted = now; !m.state.Parted {
			m.state.Parted, m.state.PartedSince, m.due = true, now, now
		}
	case Reached:
		if m.reached <= m.parted {
			m.reached = now
		}
	}
	switch m.state.Source {
	case None:
	case ByWitness:
		m.until = m.lease
	default:
		m.until = now + m.o.Hold
	}
	m.stepped = now
	return out
}

// fresh reports whether an answer is taken: the process did not stand still since it asked for so long that it would
// have lost the confirmation meanwhile.
func (m *Machine) fresh(now, began time.Duration) bool { return now-began < m.o.Hold }

// begin begins the calls that are due.
func (m *Machine) begin(now time.Duration) (out []Effect) {
	if m.o.Witness && !m.renewal.open && now >= m.renewDue {
		m.renewal = call{true, now}
		out = append(out, Renew{m.version})
	}
	if now < m.due {
		return out
	}
	if !m.exchange.open {
		m.exchange = call{true, now}
		out = append(out, Exchange{})
	}
	if m.state.Source == None && !m.nodes.open && !m.o.Witness {
		m.nodes = call{true, now}
		out = append(out, AskNodes{})
	}
	m.due = now + m.o.Retry
	if m.state.Source != None && !m.state.Parted {
		m.due = now + m.o.Every
	}
	return out
}

func (m *Machine) endExchange(now time.Duration, e Exchanged) (out []Effect) {
	began := m.exchange.began
	m.exchange.open = false
	if e.Err == nil && !m.fresh(now, began) {
		return nil
	}
	m.state.Failed = e.Err
	// Exchanges that fail for long after something got there show that it is not the link: nothing is held back for that.
	if since := m.parted; m.state.Parted && began > since && (e.Err == nil || m.reached > since && began > m.reached+partedMax) {
		if m.state.Parted = false; m.state.Source != None {
			m.due = began + m.o.Every
		}
	}
	if e.Err != nil {
		if m.alone && m.state.Source == None && !m.o.Witness {
			out = append(out, m.hold(now, ByPolicy))
		}
		return out
	}
	m.exchanged = Epochs{}
	m.know(m.exchanged, e.Above)
	if m.state.Source != ByExchange && !m.o.Witness {
		out = append(out, m.hold(now, ByExchange))
	}
	if len(e.Above) > 0 {
		out = append(out, Higher{maps.Clone(m.exchanged)})
	}
	return out
}

// know adds higher epochs to what one of the sources knows, and has the accounts of all sources refused.
func (m *Machine) know(of, more Epochs) {
	for a, e := range more {
		if of[a].Compare(e) < 0 {
			of[a] = e
		}
	}
	all := maps.Clone(m.exchanged)
	for a, e := range m.claims {
		if all[a].Compare(e) < 0 {
			all[a] = e
		}
	}
	m.state.Above = all
}

func (m *Machine) hold(now time.Duration, by Source) Effect {
	m.state.Source, m.state.Since = by, now
	return Changed{Source: by}
}
