package clocks

import (
	"flag"
	"os"
	"testing"
	"time"

	"antipode/test/devproc"
)

// How much: `make clocks` sets it.
var (
	step     = flag.Duration("step", 2*time.Second, "how long a clock stays wrong, and how long it is right again")
	samplers = flag.Int("samplers", 6, "how many sample Last Sync Time, each every 10 ms at the most")
	rateMin  = flag.Float64("rate", 0, "how many samples with a read there must be in a second; 0 bounds nothing, 100 is the aim")
)

func TestMain(m *testing.M) { os.Exit(devproc.Main(m, "steppedclock")) }
