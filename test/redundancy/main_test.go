package redundancy

import (
	"flag"
	"os"
	"testing"
	"time"

	"antipode/test/devproc"
)

const poll = 50 * time.Millisecond

// How much: `make redundancy` sets it.
var (
	objects    = flag.Int("objects", 1000, "how many blobs of -object-bytes the account has whose copy is made under kills")
	objectSize = flag.Int("object-bytes", 10_737, "the bytes of each: 100,000 of them are 1 GiB")
	kills      = flag.Int("kills", 3, "how often the leader of either side is killed meanwhile")
	rate       = flag.Uint64("rate", 200_000, "bytes per second that the copy takes at most, until the last of them; a tenth of it from the middle on")
	apart      = flag.Uint64("apart", 50, "a kill follows the one before after one part of so many of all rows")
	writers    = flag.Int("writers", 8, "clients that write meanwhile, each some 10 times a second")
	calmWait   = flag.Duration("wait", 4*time.Minute, "how long what follows a change or a kill may take: a slow machine is not a broken promise")
)

func TestMain(m *testing.M) { os.Exit(devproc.Main(m)) }
