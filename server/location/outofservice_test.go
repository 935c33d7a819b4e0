package location

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/stamp/feature"
)

// What is said of a node that is out of service is one line that ends with what to do; or with that
// nobody has to do anything.
func TestDescribeDown(t *testing.T) {
	t.Parallel()
	disk := errors.Join(fmt.Errorf("flush: %w", syscall.EIO), errors.New("close: later"))
	const start = "node start north-2"
	require.Equal(t, "flush: input/output error; close: later: it is opened again by itself, on a full disk once that has room", describeDown(disk, false, start))
	require.Equal(t, "flush: input/output error; close: later: mend that, then: antipodectl node start north-2", describeDown(disk, true, start))
	floor := feature.NewGate(1).Check(2)
	for _, stays := range []bool{false, true} {
		require.Equal(t, "the upgrade of this cluster was finalized at feature level 2, this program knows level 1 at most: "+
			"a later version wrote it: start the version that did, nothing was changed here", describeDown(floor, stays, start))
	}
}
