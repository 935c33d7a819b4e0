package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// The promises of a world whose disks are set back.
var (
	errSyncLies  = errors.New("sim: Last Sync Time is past an acknowledged write that the secondary lacks")
	errForgotten = errors.New("sim: an acknowledged write is lost, and a disk that was not set back had it")
)

// R4, R16, invariants 1 and 3 for a location that forgot: the disks of any of its nodes are set back to a copy, at the primary or the
// secondary, with calls or the bus cut or not, before or after or in the middle of writes. Whatever the Last Sync Time is that
// the secondary shows then, it holds each acknowledged write of before that the primary holds; and as long as one disk of
// the primary was not set back, none is lost. Every world is another one.
//
// Capability: Two locations: Disks of a location that were set back cannot make Last Sync Time wrong (R12, R16).
// Capability: Two locations: Whole sites that are wrong (R4, R6, R16, R17, R19, R20), as processes.
func TestR16SetBack(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, slow under the race detector")
	}
	first, n := uint64(1), uint64(max(*runs/10, 1))
	if *seed != 0 {
		first, n = *seed, 1
	}
	stopped, known, recovered := 0, 0, 0
	for s := first; s < first+n; s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			w := newSetBackWorld(t, s)
			defer w.end()
			w.play()
			require.NoError(t, w.err)
			stopped, known, recovered = stopped+w.stopped, known+w.known, recovered+w.recovered
		})
	}
	if n >= 10 {
		require.Positive(t, stopped, "no set back was found")
		require.Positive(t, known, "no Last Sync Time was shown after a set back")
		require.Positive(t, recovered, "no range waited for an operator")
	}
}

type setBackWorld struct {
	scenario
	rng *rand.Rand
	n   int
	// set are the nodes whose disks are set back.
	set []*member
	// known counts the Last Sync Times that were shown after the disks were set back, stopped is 1 if the secondary showed none
	// in the end. recovered counts the ranges that an operator recovered.
	known, stopped, recovered int
}

func newSetBackWorld(t *testing.T, seed uint64) *setBackWorld {
	return &setBackWorld{scenario: scenario{t: t, seed: seed}, rng: rand.New(rand.NewPCG(seed, 7))}
}

func (w *setBackWorld) chance(p float64) bool { return w.rng.Float64() < p }

// writes writes up to n times, each a greater number than before, and lets time pass between them. The keys are few, so that
// streams have records that are forgotten and others under their numbers.
func (w *setBackWorld) writes(n int) {
	for range w.rng.IntN(n + 1) {
		w.n++
		w.writeKey(string(rune('a'+w.rng.IntN(3))), fmt.Sprint(w.n))
		if w.chance(0.5) {
			w.runFor(time.Duration(w.rng.IntN(300)) * time.Millisecond)
		}
	}
}

func (w *setBackWorld) cuts() {
	w.setLink(w.chance(0.5), w.chance(0.3))
}

func (w *setBackWorld) play() {
	w.open(&datadriven.TestData{})
	w.writes(4)
	w.runFor(time.Duration(w.rng.IntN(600)) * time.Millisecond)
	l := w.locations[w.rng.IntN(2)]
	w.set = slices.Clone(l.members)
	w.rng.Shuffle(len(w.set), func(i, j int) { w.set[i], w.set[j] = w.set[j], w.set[i] })
	if w.chance(0.5) {
		w.set = w.set[:1+w.rng.IntN(len(w.set)-1)]
	}
	w.saveDisks(w.set)
	if w.chance(0.3) {
		w.cuts()
	}
	w.writes(6)
	w.runFor(time.Duration(w.rng.IntN(600)) * time.Millisecond)
	if w.chance(0.6) {
		w.cuts()
	}
	w.setBack(l)
	if len(w.set) == len(l.members)-1 {
		w.operate(l)
	}
	if l == w.home {
		w.remembers()
	}
	for range 12 {
		w.writes(2)
		w.runFor(time.Duration(w.rng.IntN(500)) * time.Millisecond)
		w.honest()
		if w.chance(0.15) {
			w.cuts()
		}
	}
	w.heal()
	w.runFor(3 * time.Second)
	if !w.honest() {
		w.stopped = 1
	}
}

// operate is an operator who looks at the ranges after a while, and recovers each that has no leader from the node that was not
// set back.
func (w *setBackWorld) operate(l *location) {
	w.runFor(2 * time.Second)
	left := l.members[slices.IndexFunc(l.members, func(m *member) bool { return !slices.Contains(w.set, m) })]
	for _, id := range w.shipped {
		if l.newest(id) != nil {
			continue
		}
		r := &recovery{l: l, id: id, survivor: left, old: map[*member]bool{}}
		l.recovery = r
		err := errStill
		if !w.runUntil(answerMax, func() bool { err = r.reform(); return err == nil }) && w.err == nil {
			w.fail(fmt.Errorf("%s r%d has no leader and is not recovered: %w", l.name, id, err))
		}
		w.recovered++
	}
}

// honest has the run fail if the secondary lacks what the Last Sync Time covers that it shows, and reports whether it shows one.
func (w *setBackWorld) honest() (known bool) {
	if w.err != nil {
		return false
	}
	var r stats.Replication
	var here map[string]int
	w.ask(w.far, geo.FirstRange(geo.Catalog), func(_ *member, catalog *ranges.Range) {
		if m := w.far.newest(geo.FirstRange(w.service)); m != nil {
			r, here = replication(w.account, w.service, m.n.Range(geo.FirstRange(w.service)), catalog, noClock), w.values(m)
		}
	})
	if !r.Known() {
		return false
	}
	w.known++
	for _, a := range w.acked {
		if key, n := w.keyOf(a); a.at <= r.LastSync && here[key] < n {
			w.fail(fmt.Errorf("%w: %s, and it has %s=%d", errSyncLies, a.word, key, here[key]))
		}
	}
	return true
}

// remembers has the run fail if the primary has forgotten an acknowledged write that one of its disks has. Where all were set
// back it removes what is forgotten: no sync time can know of it.
func (w *setBackWorld) remembers() {
	var there map[string]int
	for began := w.now; there == nil && w.err == nil; {
		if w.now > began+10*time.Second {
			w.fail(fmt.Errorf("the primary answers no read within 10 s: %d of its disks were set back", len(w.set)))
		}
		w.runFor(100 * time.Millisecond)
		w.ask(w.home, geo.FirstRange(w.service), func(m *member, _ *ranges.Range) { there = w.values(m) })
	}
	w.acked = slices.DeleteFunc(w.acked, func(a ackedWrite) bool {
		key, n := w.keyOf(a)
		if n > there[key] && len(w.set) < len(w.home.members) && w.err == nil {
			w.fail(fmt.Errorf("%w: %s, and the primary has %s=%d", errForgotten, a.word, key, there[key]))
		}
		return n > there[key]
	})
}

func (w *setBackWorld) keyOf(a ackedWrite) (key string, n int) {
	key, value, _ := strings.Cut(a.word, "=")
	n, err := strconv.Atoi(value)
	require.NoError(w.t, err)
	return key, n
}

// values are the numbers that a node holds, by key.
func (w *setBackWorld) values(m *member) map[string]int {
	out := map[string]int{}
	for _, key := range w.written {
		if v, err := w.valueOf(m, key); v != "" {
			require.NoError(w.t, err)
			_, out[key] = w.keyOf(ackedWrite{word: key + "=" + v})
		}
	}
	return out
}
