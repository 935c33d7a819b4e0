package dns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"antipode/geo"
	"antipode/internal/clock"
)

// Source lists what the stamp of a location knows of accounts. A call ends with its context.
type Source interface {
	Location() geo.Location
	// Names returns a page of the accounts that changed since a version, in the sequence of their names:
	// those behind a name. Of an empty or unknown version it lists all accounts.
	Names(ctx context.Context, since string, after geo.Account) (Page, error)
}

// Page is a part of a list.
type Page struct {
	// Version is what the list is whole up to: what changes later than the first page is asked for with that
	// page's version.
	Version string
	Entries []Entry
	// Next is the name after which the next page begins; empty at the end.
	Next geo.Account
}

// Options of a Poller that are zero.
const (
	pollEvery = 500 * time.Millisecond
	pollMax   = 5 * time.Second
)

// silentFor is how long a source is silent before that is logged: longer than it takes to elect a leader.
const silentFor = 10 * time.Second

// PollerOptions configures a Poller.
type PollerOptions struct {
	Sources []Source
	View    *View
	Clock   clock.Clock
	// Every is the pause between two questions to a stamp. Zero means 500 ms. It adds to the TTL.
	Every time.Duration
	// Timeout bounds the list of one stamp, all its pages. Zero means 5 s, and ten times that for the first one.
	Timeout time.Duration
	// Wait lets time pass; nil means clock.Wait.
	Wait func(context.Context, time.Duration) error
	// Observer counts failures to write the file of the view. It may be nil if the view has none.
	Observer Observer
	Logger   *slog.Logger
}

// Poller keeps a View up to date. One stamp that is away, or is slow, does not hold up the other.
type Poller struct {
	o     PollerOptions
	polls []*poll
	// unsaved is set while the disk does not take the file.
	unsaved atomic.Bool
	// unasked is how many sources were not asked yet; asked is closed when none is left.
	unasked atomic.Int32
	asked   chan struct{}
}

// poll is one source.
type poll struct {
	from  Source
	since string

	mu sync.Mutex
	// answered is when the last whole list came, zero before the first.
	answered time.Time // guarded by mu
	// failing is since when it does not answer, zero while it does; said is set once that was logged.
	failing time.Time // guarded by mu
	said    bool      // guarded by mu
}

// NewPoller returns a poller.
func NewPoller(o PollerOptions) *Poller {
	if o.Every == 0 {
		o.Every = pollEvery
	}
	if o.Timeout == 0 {
		o.Timeout = pollMax
	}
	if o.Wait == nil {
		o.Wait = clock.Wait
	}
	p := &Poller{o: o, asked: make(chan struct{})}
	for _, s := range o.Sources {
		p.polls = append(p.polls, &poll{from: s})
	}
	if p.unasked.Store(int32(len(p.polls))); len(p.polls) == 0 {
		close(p.asked)
	}
	return p
}

// Asked returns a channel that is closed once Run has asked each source, whether it answered or not.
func (p *Poller) Asked() <-chan struct{} { return p.asked }

// Run asks all sources until ctx ends.
func (p *Poller) Run(ctx context.Context) error {
	var g errgroup.Group
	for _, s := range p.polls {
		g.Go(func() error {
			for first := true; ctx.Err() == nil; first = false {
				p.step(ctx, s)
				if first && p.unasked.Add(-1) == 0 {
					close(p.asked)
				}
				_ = p.o.Wait(ctx, p.o.Every) // It fails when ctx ends.
			}
			return nil
		})
	}
	return g.Wait()
}

// step asks a source once and merges what it lists.
func (p *Poller) step(ctx context.Context, s *poll) {
	list, version, err := p.list(ctx, s)
	if err == nil {
		p.merge(s.from.Location(), list)
		s.since = version
	}
	if ctx.Err() != nil {
		return
	}
	p.report(s, err)
}

// report logs a source that does not answer for silentFor, and that it answers again.
func (p *Poller) report(s *poll, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := p.o.Clock.Now()
	if err == nil {
		if s.said {
			p.o.Logger.Info("the location says where accounts are, again", "location", s.from.Location())
		}
		s.answered, s.failing, s.said = now, time.Time{}, false
		return
	}
	if s.failing.IsZero() {
		s.failing = now
	}
	if now.Sub(s.failing) >= silentFor && !s.said {
		s.said = true
		p.o.Logger.Warn("a location does not say where accounts are: what is known of them stays", "location", s.from.Location(), "error", err)
	}
}

// merge takes a list. A record that the View does not take, or a failure of the disk, is no failure
// of the source.
func (p *Poller) merge(from geo.Location, list []Entry) {
	err := p.o.View.Merge(from, list)
	if errors.Is(err, ErrEntry) || errors.Is(err, ErrFull) {
		p.o.Logger.Error("accounts are left out", "location", from, "error", err)
	}
	unsaved := errors.Is(err, ErrUnsaved)
	if unsaved {
		p.o.Observer.Failed()
	}
	if was := p.unsaved.Swap(unsaved); unsaved && !was {
		p.o.Logger.Error("what is answered is newer than the file of names: a restart may go back", "error", err)
	}
}

// list reads all pages of a source.
func (p *Poller) list(ctx context.Context, s *poll) (list []Entry, version string, err error) {
	limit := p.o.Timeout
	if s.since == "" {
		limit *= 10
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for after := geo.Account(""); ; {
		page, err := s.from.Names(ctx, s.since, after)
		if err != nil {
			return nil, "", err
		}
		if after == "" {
			version = page.Version
		}
		list = append(list, page.Entries...)
		switch {
		case page.Next == "":
			return list, version, nil
		case page.Next <= after:
			return nil, "", fmt.Errorf("dns: the page after %q is followed by %q", after, page.Next)
		case len(list) > 2*entriesMax:
			return nil, "", ErrFull
		}
		after = page.Next
	}
}

// Age is how long ago a location has listed its accounts.
type Age struct {
	Location geo.Location
	Age      time.Duration
}

// Ages returns those of the locations that have answered.
func (p *Poller) Ages() (out []Age) {
	now := p.o.Clock.Now()
	for _, s := range p.polls {
		s.mu.Lock()
		if !s.answered.IsZero() {
			out = append(out, Age{s.from.Location(), max(0, now.Sub(s.answered))})
		}
		s.mu.Unlock()
	}
	return out
}
