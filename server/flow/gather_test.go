package flow

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/replication/link"
	"antipode/replication/receive"
	"antipode/stamp/kv"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// A call that did not get through, or was refused before its range was asked, is trouble of the link; the
// answer of a range that has no leader is not.
func TestTroubleOfCalls(t *testing.T) {
	for _, c := range []struct {
		err  error
		link bool
	}{
		{nil, false},
		{link.ErrCut, true},
		{node.ErrUnreachable, true},
		{context.DeadlineExceeded, true},
		{fmt.Errorf("%w: the caller's certificate is not accepted", kv.ErrUnknown), true},
		{ranges.ErrNotLeader, false},
		{errors.New("anything else that the other location answers"), false},
	} {
		var out wire.Flow
		Add(&out, &wire.ReceiverFlow{}, receive.RangeView{Calls: receive.Trouble{Err: c.err, Since: time.Second}})
		require.Equal(t, c.link, out.Calls != nil, "%v", c.err)
	}
}
