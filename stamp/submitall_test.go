package stamp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/memtransport"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
)

// opens opens the gate of an account, unless that is closed to it.
type opens struct {
	account geo.Account
	had     string
}

func (c *opens) Evaluate(tx *ranges.Tx) error {
	c.had = fmt.Sprintf("%s had %d", c.account, tx.Gate(c.account).Epoch.Number)
	tx.SetGate(c.account, change.Gate{Epoch: geo.Epoch{Number: 7, Location: "north"}, Role: change.RolePrimary, Open: true})
	switch c.account {
	case "refused":
		return errors.New("it is refused")
	case "busy":
		return kv.ErrBusy
	}
	return nil
}

func (*opens) Kind() string           { return "test.opens" }
func (c *opens) Encode() []byte       { return []byte(c.account) }
func (c *opens) EncodeResult() []byte { return []byte(c.had) }
func (c *opens) DecodeResult(b []byte) error {
	c.had = string(b)
	return nil
}

// staying is a command that cannot be forwarded.
type staying struct{}

func (staying) Evaluate(*ranges.Tx) error { return nil }

// Commands that are submitted together have their results and their errors each, in the order in which they were given, at
// the node that leads and at one that does not; one that fails undoes nothing of another one. They have one group.
func TestSubmitAll(t *testing.T) {
	calls := memtransport.New()
	var all []*stamp.Stamp
	quiet := slog.New(slog.DiscardHandler)
	for id := range geo.NodeID(3) {
		s := stamp.New(node.Options{
			Location: "north", Peers: []geo.NodeID{1, 2, 3}, Dir: "data", Clock: clock.System{}, Transport: calls,
			Tick: 20 * time.Millisecond, ElectionTicks: 100, InSyncTimeout: time.Minute, Seed: uint64(id) + 1,
			State: state.Options{FS: vfs.NewMem(), LogSegmentBytes: 1 << 20, Logger: quiet}, Logger: quiet,
			Commands: ranges.Commands{"test.opens": func(b []byte) (ranges.Portable, error) { return &opens{account: geo.Account(b)}, nil }},
		})
		require.NoError(t, s.Start(id+1))
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		all = append(all, s)
	}
	r := geo.FirstRange(geo.Table)
	for n, s := range all {
		names := []geo.Account{"one", "refused", "two", "busy", geo.Account(fmt.Sprint("last", n))}
		var cmds []ranges.Command
		for _, name := range names {
			cmds = append(cmds, &opens{account: name})
		}
		var errs []error
		for errs = nil; len(errs) == 0 || errors.Is(errs[0], kv.ErrBusy) || errors.Is(errs[0], kv.ErrUnknown); {
			errs = s.SubmitAll(context.Background(), r, cmds) // On a busy machine a leader may be deposed.
		}
		require.Len(t, errs, len(names))
		require.NoError(t, errs[0])
		require.ErrorContains(t, errs[1], "it is refused")
		require.NoError(t, errs[2])
		require.ErrorIs(t, errs[3], kv.ErrBusy)
		require.NoError(t, errs[4])
		require.Equal(t, fmt.Sprintf("last%d had 0", n), cmds[4].(*opens).had)
		require.NoError(t, s.Read(context.Background(), r, func(state ranges.State) error {
			for i, name := range names {
				number := geo.EpochNumber(7)
				if errs[i] != nil {
					number = 0
				}
				require.Equal(t, number, state.Gate(name).Epoch.Number, name)
			}
			return nil
		}))
	}
	for id, s := range all { // One that has stepped down refuses at once what it cannot forward.
		lead := s.Leader(r)
		if lead == nil {
			continue
		}
		lead.Leave()
		require.Eventually(t, func() bool {
			to, known := s.LeaderNode(r)
			return known && to != geo.NodeID(id+1)
		}, time.Minute, time.Millisecond)
		began := time.Now()
		require.Equal(t, []error{kv.ErrBusy}, s.SubmitAll(context.Background(), r, []ranges.Command{staying{}}))
		require.Less(t, time.Since(began), 4*time.Second)
		break
	}
	many := make([]ranges.Command, stamp.SubmitAllMax+1)
	for _, err := range all[0].SubmitAll(context.Background(), r, many) {
		require.ErrorContains(t, err, "at most 500")
	}
}
