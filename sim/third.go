package sim

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/failover/unplanned"
	"antipode/failover/witness"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
)

// The witness, at a third place (R21), in some of the runs with promotions: the production types at both ends, with calls
// that are lost, late and doubled, and a process that dies between two steps of its file, and starts again from what was
// synced. Each location may be cut off from it alone. Its clock runs at another rate than those of the nodes. What it does
// is drawn apart from everything else.
//
// With it invariant 4 is strict: after the commit of a promotion that has claimed, the former primary acknowledges
// nothing more, see checkStray. And once all is at rest each primary may write: no claim stays that has no effect.

const (
	// witnessedShare is how many runs with promotions have a witness, unwitnessedShare how many of their promotions an operator
	// has go on without it.
	witnessedShare   = 0.35
	unwitnessedShare = 0.15
	// thirdCallMax bounds a call, thirdTrip one way of it.
	thirdCallMax = 600 * time.Millisecond
	thirdTrip    = 30 * time.Millisecond
	// thirdRetry is the pause of a node after a call that failed.
	thirdRetry = 100 * time.Millisecond
	// thirdKill is how likely the process dies at a step of its file, thirdPause the mean time between two of its faults.
	thirdKill  = 0.06
	thirdPause = 700 * time.Millisecond
	// driftMax is by how much its clock is fast or slow at most: see package witness.
	driftMax = 0.08
)

// The steps of the witness's file, and the answer, behind the path of the call.
const (
	thirdPrefix  = "witness-"
	thirdWriting = "-writing"
	thirdRenamed = "-renamed"
	thirdWritten = "-written"
)

// third is the witness.
type third struct {
	s   *Sim
	rng *rand.Rand
	fs  *vfs.MemFS
	// leases is how long a lease lives.
	leases time.Duration
	rate   float64
	// handler is its process, nil while it is down; life counts starts.
	handler http.Handler
	life    int
	// call is the call that it answers.
	call string
	// cut are the locations that do not reach it; stuck is until when it stands still.
	cut   map[geo.Location]bool
	stuck time.Duration
}

// planThird draws whether a run has a witness.
func (s *Sim) planThird(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x7769746e657373))
	if s.promotions != nil && (rng.Float64() < witnessedShare || s.witnessed) {
		s.third = newThird(s, rng)
	}
}

func newThird(s *Sim, rng *rand.Rand) *third {
	return &third{
		s: s, rng: rng, fs: vfs.NewCrashableMem(), cut: map[geo.Location]bool{},
		leases: [...]time.Duration{600 * time.Millisecond, time.Second, 2 * time.Second}[rng.IntN(3)],
		rate:   1 + driftMax*(2*rng.Float64()-1),
	}
}

// rated is a clock that is fast or slow.
type rated struct {
	*clock.Manual
	rate float64
}

// Mono implements clock.Clock.
func (c rated) Mono() time.Duration { return time.Duration(float64(c.Manual.Mono()) * c.rate) }

// open starts the process.
func (p *third) open() {
	p.life++
	w, err := witness.Open(witness.Options{
		FS: &thirdDisk{p.fs, p, p.life}, Dir: "witness", Locations: []geo.Location{north, south}, Life: p.leases,
		Clock: rated{p.s.clock, p.rate}, Name: fmt.Sprint("life ", p.life),
	})
	if err != nil {
		p.s.fail(fmt.Errorf("%w: the witness: %w", ErrStore, err))
		return
	}
	p.handler = witness.Handler(w)
	p.s.event("the witness opens")
}

// die ends the process as a crash does.
func (p *third) die() {
	if p.handler == nil {
		return
	}
	p.s.counts.WitnessKilled++
	p.s.event("the witness is killed")
	p.handler = nil
	p.life++
	p.fs = p.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(p.rng.Uint64(), 1))})
	life := p.life
	p.s.after(50*time.Millisecond+time.Duration(p.rng.Int64N(int64(800*time.Millisecond))), func() {
		if p.life == life {
			p.open()
		}
	})
}

// thirdDisk is its disk in one life.
type thirdDisk struct {
	vfs.FS
	p    *third
	life int
}

// Unwrap implements vfs.FS.
func (d *thirdDisk) Unwrap() vfs.FS { return d.FS }

// Rename implements vfs.FS: with it a file takes the place of the one before.
func (d *thirdDisk) Rename(from, to string) error {
	d.p.step(d.life, thirdWriting)
	err := d.FS.Rename(from, to)
	d.p.step(d.life, thirdRenamed)
	return err
}

// step is where the process may die. One that starts does not.
func (p *third) step(life int, step string) {
	if p.life != life || p.handler == nil {
		return
	}
	if p.s.onStep != nil {
		p.s.onStep(nil, thirdPrefix+p.call+step)
	}
	if p.s.faulty && p.rng.Float64() < thirdKill {
		p.die()
	}
}

// startThird lets faults of the witness occur from now on.
func (s *Sim) startThird() {
	p := s.third
	if p == nil {
		return
	}
	s.after(time.Duration(p.rng.Int64N(int64(2*thirdPause))), func() {
		if !s.faulty {
			return
		}
		lasts := 100*time.Millisecond + time.Duration(p.rng.Int64N(int64(1400*time.Millisecond)))
		switch p.rng.IntN(5) {
		case 0:
			p.die()
		case 1:
			p.stuck = max(p.stuck, s.now+lasts/2)
		case 2:
			p.cutOff(lasts, north, south)
		default:
			p.cutOff(lasts, [...]geo.Location{north, south}[p.rng.IntN(2)])
		}
		s.startThird()
	})
}

// cutOff cuts locations off from the witness for a while.
func (p *third) cutOff(lasts time.Duration, from ...geo.Location) {
	p.s.counts.WitnessCut++
	p.s.event("%v cannot reach the witness for %d ms", from, lasts.Milliseconds())
	for _, l := range from {
		p.cut[l] = true
	}
	p.s.after(lasts, func() {
		for _, l := range from {
			delete(p.cut, l)
		}
	})
}

// heal ends its faults.
func (p *third) heal() {
	if p == nil {
		return
	}
	clear(p.cut)
	p.stuck = 0
	if p.handler == nil {
		p.open()
	}
}

// errThird: the witness did not answer.
var errThird = errors.New("sim: the witness does not answer")

// witness is the client of a node's process.
func (m *member) witness() *witness.Client {
	s := m.l.s
	return &witness.Client{HTTP: &http.Client{Transport: thirdCaller{m}}, URL: "https://third", Clock: s.clock}
}

// thirdCaller carries the calls of a node.
type thirdCaller struct{ m *member }

// RoundTrip implements http.RoundTripper. It is called in a task.
func (c thirdCaller) RoundTrip(r *http.Request) (*http.Response, error) {
	s := c.m.l.s
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var out *answer
	err = s.task.await(thirdCallMax, func(done func(error)) {
		s.third.carry(c.m, r.URL.Path, body, func(a *answer, err error) {
			out = a
			done(err)
		})
	})
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: out.status, Header: out.header, Body: io.NopCloser(&out.body), Request: r}, nil
}

// carry brings a call to the witness, and its answer back; late, or a second time.
func (p *third) carry(from *member, path string, body []byte, done func(*answer, error)) {
	p.deliver(from, path, body, p.trip(), done)
	if p.s.faulty && p.rng.Float64() < callDoubled {
		p.s.counts.CallDoubled++
		p.deliver(from, path, body, p.trip()+time.Duration(p.rng.Int64N(int64(callLateMax))), func(*answer, error) {})
	}
}

func (p *third) deliver(from *member, path string, body []byte, after time.Duration, done func(*answer, error)) {
	p.s.after(after, func() {
		switch {
		case p.loses(from.l), p.handler == nil:
			done(nil, errThird)
			return
		case p.stuck > p.s.now:
			p.deliver(from, path, body, p.stuck-p.s.now, done)
			return
		}
		a := p.answer(from, path, body)
		if a == nil {
			done(nil, errThird)
			return
		}
		p.s.after(p.trip(), func() {
			if p.loses(from.l) {
				done(nil, errThird)
				return
			}
			done(a, nil)
		})
	})
}

// loses reports whether a call, or its answer, is lost.
func (p *third) loses(l *location) bool {
	if p.s.faulty && p.rng.Float64() < callLost {
		p.s.counts.CallLost++
		return true
	}
	return p.cut[l.name]
}

// trip is how long a question or an answer takes.
func (p *third) trip() time.Duration {
	return time.Millisecond + time.Duration(p.rng.Int64N(int64(thirdTrip)))
}

// answer has the process answer a call; nil if it dies.
func (p *third) answer(from *member, path string, body []byte) *answer {
	life, out := p.life, &answer{header: http.Header{}, status: http.StatusOK}
	p.call = path[len("/v1/"):]
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "https://third"+path, bytes.NewReader(body))
	if err != nil {
		p.s.fail(err)
		return nil
	}
	id := identity.Identity{Stamp: "sim", Location: from.l.name, Node: from.id}
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{URIs: []*url.URL{id.URL()}}}}
	p.handler.ServeHTTP(out, r)
	if p.call != "renew" {
		p.s.event("the witness: %s by %s-%d: %s %d", p.call, from.l.name, from.id, body, out.status)
		p.step(life, thirdWritten)
	}
	if p.life != life {
		return nil
	}
	return out
}

// answer is an answer under way. It implements http.ResponseWriter.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// thirdClaims is the witness as the directory of a node calls it: see location.Witness.
type thirdClaims struct{ *witness.Client }

// Claim implements directory.Claims.
func (c thirdClaims) Claim(ctx context.Context, epochs map[geo.Account]geo.EpochNumber, here geo.Location) (time.Duration, error) {
	until, err := c.Client.Claim(ctx, epochs, here)
	if errors.Is(err, witness.ErrPassed) {
		err = fmt.Errorf("%w: %w", unplanned.ErrClaimed, err)
	}
	return until, err
}
