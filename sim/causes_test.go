package sim

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

var stalls = flag.Int("stalls", 1, "how many seeds of each cause of a stall to play")

// Ten causes for which Last Sync Time stands still: why names the right stage, range and lane within 2 s
// after each can be seen, names nothing before and after it, and nothing for services that it spares.
// One seed of one cause: go test ./sim -run 'TestStalls/link_cut' -args -seed=7 -trace.
//
// Capability: Queues: Queues in the simulator.
// Capability: Two locations: Ten causes of a stall, each with a seeded victim.
func TestStalls(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, slow under the race detector")
	}
	require.Len(t, Stalls(), 10)
	if *seed != 0 {
		for _, c := range Stalls() {
			t.Run(string(c), func(t *testing.T) { report(t, RunStall(stallOptions(*seed), c)) })
		}
		return
	}
	n := *stalls
	for _, c := range Stalls() {
		t.Run(string(c), func(t *testing.T) {
			playEach(n, func(seed uint64) Result { return RunStall(stallOptions(seed), c) }, func(res Result) bool {
				report(t, res)
				return true
			})
		})
	}
}

// stallOptions are those of a seed: every second run has queues.
func stallOptions(n uint64) Options {
	o := Options{Seed: n, Queues: n%2 == 0}
	if *seed != 0 && *trace {
		o.Tee = func(line string) { fmt.Println(line) }
	}
	return o
}
