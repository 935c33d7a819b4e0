package dns

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	msg "github.com/miekg/dns"

	"antipode/geo"
	"antipode/internal/clock"
)

// Pauses of a Pusher.
const (
	// backoffFirst is the pause after the first failure; each further one doubles it, up to backoffMax.
	backoffFirst = time.Second
	backoffMax   = time.Minute
	// checkEvery is how often all records are compared: somebody may have changed them at the server, or restored
	// an older zone.
	checkEvery = 10 * time.Minute
	// takeMost bounds the accounts that are taken at a time.
	takeMost = 256
	// racesMax is how often an account is read again after an update that came too late.
	racesMax = 8
)

// The outcomes of an update.
const (
	outcomeDone        = "done"
	outcomeStale       = "stale"
	outcomeForeign     = "foreign"
	outcomeUnreachable = "unreachable"
	outcomeKey         = "key"
	outcomeRefused     = "refused"
)

// Outcomes are the outcomes of an update: done; stale: the server has a higher epoch; foreign: it has records
// that were not written by Antipode; unreachable, key and refused: it is tried again.
func Outcomes() []string {
	return []string{outcomeDone, outcomeStale, outcomeForeign, outcomeUnreachable, outcomeKey, outcomeRefused}
}

// PusherOptions configures a Pusher.
type PusherOptions struct {
	// Server is host:port of the server that takes updates, over TCP.
	Server string
	Key    Key
	Zone   *Zone
	View   *View
	Clock  clock.Clock
	// Wait lets time pass; nil means clock.Wait.
	Wait     func(context.Context, time.Duration) error
	Observer Observer
	Logger   *slog.Logger
}

// Pusher keeps the records of a view at another server. A server that was away gets each account's newest
// record when it is back, and not those in between.
type Pusher struct {
	o     PusherOptions
	peer  *peer
	watch *Watch
	// placed is set once the addresses of the locations are at the server.
	placed bool
	// failing is the outcome that was logged last, empty after a success.
	failing string
}

// NewPusher returns a pusher.
func NewPusher(o PusherOptions) *Pusher {
	if o.Wait == nil {
		o.Wait = clock.Wait
	}
	return &Pusher{o: o, peer: newPeer(o.Server, o.Key, o.Clock), watch: o.View.Watch()}
}

// Server returns the address of the server, and Waiting the number of accounts whose records may be older there.
func (p *Pusher) Server() string { return p.o.Server }

// Waiting: see Server.
func (p *Pusher) Waiting() int { return p.watch.len() }

// Run pushes until ctx ends.
func (p *Pusher) Run(ctx context.Context) error {
	defer p.peer.close()
	pause := backoffFirst
	for ctx.Err() == nil {
		err := p.step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if p.report(err); err != nil {
			_ = p.o.Wait(ctx, pause) // It fails when ctx ends.
			pause = min(2*pause, backoffMax)
			continue
		}
		pause = backoffFirst
		p.peer.close() // The server would close it while nothing changes.
		p.rest(ctx)
	}
	return nil
}

// rest waits for a change, or until it is time to compare all records.
func (p *Pusher) rest(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if p.o.Wait(ctx, checkEvery) == nil {
			p.all()
		}
	}()
	select {
	case <-p.watch.changed:
	case <-ended:
	}
	cancel()
	<-ended
}

// all has all records compared.
func (p *Pusher) all() {
	p.placed = false
	p.o.View.again(p.watch)
}

// step pushes all that waits. After a failure everything is compared again: the server may have been away, and
// may have lost what it had.
func (p *Pusher) step(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			p.all()
		}
	}()
	if !p.placed {
		if err := p.places(ctx); err != nil {
			return err
		}
		p.placed = true
	}
	for {
		names := p.watch.take(takeMost)
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if err := p.account(ctx, name); err != nil {
				return err
			}
		}
	}
}

// places pushes the addresses of the locations that differ.
func (p *Pusher) places(ctx context.Context) error {
	z := p.o.Zone
	for l, list := range z.places {
		for _, s := range geo.Services {
			name, same := z.placeName(s, l), true
			for _, t := range addressTypes() {
				have, err := p.peer.ask(ctx, name, t)
				if err != nil {
					return err
				}
				same = same && slices.Equal(values(have), values(z.addresses(name, list, t)))
			}
			if same {
				continue
			}
			if _, err := p.peer.exchange(ctx, z.placeUpdate(s, l)); err != nil {
				return err
			}
		}
	}
	return nil
}

// values returns what records say, in one sequence.
func values(list []msg.RR) (out []string) {
	for _, rr := range list {
		switch rr := rr.(type) {
		case *msg.A:
			out = append(out, rr.A.String())
		case *msg.AAAA:
			out = append(out, rr.AAAA.String())
		}
	}
	slices.Sort(out)
	return out
}

// account pushes the records of an account as they are now, if those at the server are older.
func (p *Pusher) account(ctx context.Context, name geo.Account) error {
	for race := 0; ; race++ {
		e, found := p.o.View.lookup(name)
		if !found {
			return nil
		}
		former, err := p.read(ctx, name)
		if err != nil {
			return err
		}
		said, action := p.decide(e, former)
		if action {
			_, err = p.peer.exchange(ctx, p.o.Zone.update(e.Entry, former))
		}
		if errors.Is(err, errForeign) {
			// Or the record was written meanwhile, with names that it did not have before.
			var now string
			if now, err = p.read(ctx, name); err == nil && now != former {
				err = errRaced
			}
			said = outcomeForeign
		}
		if err == nil && (said == "" || said == outcomeDone) { // Else the account is not as e has it.
			var clone string
			clone, err = p.clone(ctx, e.Entry)
			said = cmp.Or(clone, said)
		}
		if errors.Is(err, errRaced) && race < racesMax {
			continue
		}
		if err != nil {
			return err
		}
		if said == outcomeForeign {
			p.o.Logger.Warn("the server has records of an account's names that Antipode did not write: they stay", "server", p.o.Server, "account", name)
		}
		if said != "" {
			p.o.Observer.Pushed(p.o.Server, said)
		}
		return nil
	}
}

// read returns the text of an account's record at the server, empty if there is none.
func (p *Pusher) read(ctx context.Context, name geo.Account) (string, error) {
	list, err := p.peer.ask(ctx, p.o.Zone.keyName(name), msg.TypeTXT)
	if err != nil || len(list) == 0 {
		return "", err
	}
	txt, ok := list[0].(*msg.TXT)
	if !ok || len(list) > 1 {
		return notOurs, nil
	}
	return cmp.Or(strings.Join(txt.Txt, ""), notOurs), nil
}

// notOurs is no text of an epoch.
const notOurs = "?"

// decide compares an entry with the text at the server. It returns the outcome, empty where both are the same,
// and whether an update is needed for it.
func (p *Pusher) decide(e held, former string) (said string, update bool) {
	if former == e.Text(false) {
		return "", false
	}
	if former == "" {
		return outcomeDone, true
	}
	have, err := ParseText(former)
	if err != nil {
		return outcomeForeign, false
	}
	// Within an epoch redundancy changes at the epoch's location first.
	if c := e.Epoch.Compare(have.Epoch); c < 0 || c == 0 && !e.own {
		return outcomeStale, false
	}
	return outcomeDone, true
}

// report counts a failure, and logs it when it begins, changes and ends.
func (p *Pusher) report(err error) {
	now := ""
	switch {
	case err == nil:
	case errors.Is(err, errKey):
		now = outcomeKey
	case errors.Is(err, errUnreachable):
		now = outcomeUnreachable
	default:
		now = outcomeRefused
	}
	if now != "" {
		p.o.Observer.Pushed(p.o.Server, now)
	}
	switch now {
	case p.failing:
	case "":
		p.o.Logger.Info("the server has all records, again", "server", p.o.Server)
	default:
		p.o.Logger.Error("records are not pushed, and tried again", "server", p.o.Server, "reason", now, "error", err)
	}
	p.failing = now
}
