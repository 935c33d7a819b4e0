package sim

import (
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

// R16, invariant 3 for a location that forgot: the disks of one of its nodes or of all are set back to a copy, at the primary or the
// secondary, with calls or the bus cut or not, before or after or in the middle of writes. Whatever the Last Sync Time is that
// the secondary shows then, it holds each acknowledged write of before that which the primary holds. Every world is another one.
func TestR16SetBack(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, slow under the race detector")
	}
	first, n := uint64(1), uint64(max(*runs/20, 1))
	if *seed != 0 {
		first, n = *seed, 1
	}
	stopped, known := 0, 0
	for s := first; s < first+n; s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			w := &setBackWorld{scenario: scenario{t: t, seed: s}, rng: rand.New(rand.NewPCG(s, 7))}
			defer w.end()
			w.play()
			stopped, known = stopped+w.stopped, known+w.known
		})
	}
	if n >= 10 {
		require.Positive(t, stopped, "no set back was found")
		require.Positive(t, known, "no Last Sync Time was shown after a set back")
	}
}

type setBackWorld struct {
	scenario
	rng *rand.Rand
	n   int
	// known counts the Last Sync Times that were shown after the disks were set back, stopped is 1 if the secondary showed none
	// in the end.
	known, stopped int
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
	set := slices.Clone(l.members)
	if w.chance(0.3) {
		set = set[w.rng.IntN(len(set)):][:1] // Where two are, the third remembers them: the ranges wait for an operator (R4).
	}
	w.saveDisks(set)
	if w.chance(0.3) {
		w.cuts()
	}
	w.writes(6)
	w.runFor(time.Duration(w.rng.IntN(600)) * time.Millisecond)
	if w.chance(0.6) {
		w.cuts()
	}
	w.setBack(l)
	if l == w.home {
		w.forgets()
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

// honest requires that the secondary holds what the Last Sync Time covers that it shows, and reports whether it shows one.
func (w *setBackWorld) honest() (known bool) {
	require.NoError(w.t, w.err)
	var r stats.Replication
	var here map[string]int
	w.ask(w.far, geo.FirstRange(geo.Catalog), func(_ *member, catalog *ranges.Range) {
		if m := w.far.newest(geo.FirstRange(w.service)); m != nil {
			r, here = replication(w.account, w.service, m.n.Range(geo.FirstRange(w.service)), catalog), w.values(m)
		}
	})
	if !r.Known() {
		return false
	}
	w.known++
	for _, a := range w.acked {
		key, n := w.keyOf(a)
		require.True(w.t, a.at > r.LastSync || here[key] >= n, "Last Sync Time is past %s, and the secondary has %s=%d", a.word, key, here[key])
	}
	return true
}

// forgets removes from the acknowledged writes those that the primary has forgotten: no sync time can know of them.
func (w *setBackWorld) forgets() {
	var there map[string]int
	for there == nil {
		require.NoError(w.t, w.err)
		w.runFor(100 * time.Millisecond)
		w.ask(w.home, geo.FirstRange(w.service), func(m *member, _ *ranges.Range) { there = w.values(m) })
	}
	w.acked = slices.DeleteFunc(w.acked, func(a ackedWrite) bool {
		key, n := w.keyOf(a)
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
