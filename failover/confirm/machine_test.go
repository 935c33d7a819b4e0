package confirm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/failover/confirm"
	"antipode/geo"
	"antipode/replication/link"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// owner steps a machine as a process does, and keeps what it is to do.
type owner struct {
	t     *testing.T
	m     *confirm.Machine
	fence *ranges.Fence
	now   time.Duration
	asks  int // exchanges begun
	nodes int // questions to other nodes begun
	said  []confirm.Changed
	above confirm.Epochs
}

func newOwner(t *testing.T) *owner {
	return &owner{t: t, m: confirm.New(confirm.Options{}), fence: &ranges.Fence{}, now: time.Hour}
}

func (o *owner) step(e confirm.Event) {
	for _, e := range o.m.Step(o.now, e) {
		switch e := e.(type) {
		case confirm.Exchange:
			o.asks++
		case confirm.AskNodes:
			o.nodes++
		case confirm.Changed:
			o.said = append(o.said, e)
		case confirm.Higher:
			o.above = e.Above
		}
	}
	o.fence.Set(o.m.Held())
}

// run lets time pass while the process runs.
func (o *owner) run(d time.Duration, alone bool) {
	for end := o.now + d; o.now < end; o.now += confirm.LookEvery {
		o.step(confirm.Look{Alone: alone})
	}
}

// stand lets time pass while the process stands still.
func (o *owner) stand(d time.Duration) { o.now += d }

func (o *owner) writes() bool {
	return o.fence.Confirms("acct", change.Gate{Epoch: epoch(1, "north")}, o.now)
}

func epoch(n geo.EpochNumber, l geo.Location) geo.Epoch { return geo.Epoch{Number: n, Location: l} }

var errAway = errors.New("nobody answers")

// R21: a node that has started takes no writes until the other location has answered, however long that takes.
// From then on it takes them, whether the other location answers or not.
func TestR21StartsUnconfirmed(t *testing.T) {
	o := newOwner(t)
	require.False(t, o.writes(), "before the first step")
	for i := range 20 {
		o.run(time.Second, false)
		require.Equal(t, i+1, o.asks, "one exchange at a time")
		o.step(confirm.Exchanged{Err: errAway})
		require.False(t, o.writes())
	}
	require.ErrorIs(t, o.m.State().Failed, errAway)
	o.run(time.Second, false)
	o.step(confirm.Exchanged{})
	require.True(t, o.writes())
	require.Equal(t, []confirm.Changed{{Source: confirm.ByExchange}}, o.said)
	asked := o.asks
	for range 600 {
		o.run(time.Second, false)
		if o.asks > asked {
			asked = o.asks
			o.step(confirm.Exchanged{Err: errAway})
		}
		require.True(t, o.writes(), "it held the confirmation since")
	}
	require.Greater(t, asked, 15, "it asks again now and then")
}

// R21: a process that stands still for longer than Hold has lost the confirmation before it takes its next step, and
// says so; what it asked before the pause does not bring it back. A shorter pause changes nothing.
func TestR21PauseEndsIt(t *testing.T) {
	o := newOwner(t)
	o.run(time.Second, false)
	o.step(confirm.Exchanged{})
	o.stand(4900 * time.Millisecond)
	require.True(t, o.writes())
	o.run(time.Minute, false)
	o.step(confirm.Exchanged{})
	o.run(31*time.Second, false) // An exchange is under way.
	require.True(t, o.writes())
	o.stand(6 * time.Second)
	require.False(t, o.writes(), "no step was taken since")
	o.step(confirm.Exchanged{})
	require.False(t, o.writes(), "the exchange began before the pause")
	require.Len(t, o.said, 2)
	require.Equal(t, confirm.None, o.said[1].Source)
	require.Greater(t, o.said[1].Stood, 5*time.Second)
	asks := o.asks
	o.run(confirm.LookEvery, false)
	require.Equal(t, asks+1, o.asks, "it asks at once")
	o.step(confirm.Exchanged{})
	require.True(t, o.writes())
}

// R21: a node of the same stamp that holds the confirmation passes it on, and with it what it knows of higher epochs. An
// answer that comes after a pause counts for nothing.
func TestR21LiveNodePassesItOn(t *testing.T) {
	o := newOwner(t)
	o.run(time.Second, false)
	require.Equal(t, 1, o.nodes)
	o.step(confirm.NodesAsked{})
	require.False(t, o.writes())
	o.run(time.Second, false)
	o.stand(6 * time.Second)
	o.step(confirm.NodesAsked{Holds: true})
	require.False(t, o.writes(), "that node held it before this one stood still")
	o.run(time.Second, false)
	o.step(confirm.NodesAsked{Holds: true, Above: confirm.Epochs{"moved": epoch(2, "south")}})
	require.True(t, o.writes())
	require.False(t, o.fence.Confirms("moved", change.Gate{Epoch: epoch(1, "north")}, o.now))
	require.Equal(t, confirm.ByNode, o.m.State().Source)
}

// R21: accounts that the other location has in a higher epoch stay refused, and are passed on; all others are confirmed.
// An operator's override does not let them through, and a later epoch of this location does.
func TestR21HigherEpochStaysRefused(t *testing.T) {
	o := newOwner(t)
	o.run(time.Second, false)
	o.step(confirm.Exchanged{Above: confirm.Epochs{"moved": epoch(2, "south")}})
	require.Equal(t, confirm.Epochs{"moved": epoch(2, "south")}, o.above)
	require.True(t, o.writes())
	require.False(t, o.fence.Confirms("moved", change.Gate{Epoch: epoch(1, "north")}, o.now))
	o.stand(time.Minute)
	o.run(time.Second, false)
	o.step(confirm.Overridden{})
	require.True(t, o.writes())
	require.False(t, o.fence.Confirms("moved", change.Gate{Epoch: epoch(1, "north")}, o.now))
	require.True(t, o.fence.Confirms("moved", change.Gate{Epoch: epoch(3, "north")}, o.now), "it came back")
}

// R21: the standing policy lets a location that starts go on alone, but only once the other one has failed to answer,
// and only while it is set. An answer that comes later counts as any other.
func TestR21Policy(t *testing.T) {
	o := newOwner(t)
	o.run(time.Second, true)
	require.False(t, o.writes(), "it has not been asked in vain")
	o.step(confirm.Exchanged{Err: errAway})
	require.True(t, o.writes())
	require.Equal(t, confirm.ByPolicy, o.m.State().Source)
	o.run(time.Second, true)
	o.step(confirm.Exchanged{Above: confirm.Epochs{"acct": epoch(2, "south")}})
	require.False(t, o.writes())
	require.Equal(t, confirm.ByExchange, o.m.State().Source)

	o = newOwner(t)
	o.run(time.Second, false)
	o.step(confirm.Exchanged{Err: errAway})
	require.False(t, o.writes())
	o.step(confirm.Overridden{})
	require.True(t, o.writes(), "an operator says so")
	require.Equal(t, confirm.ByOverride, o.m.State().Source)
}

// R21: 2,500 accounts are asked about in pages, and no answer is taken that names what was not asked for.
func TestR21ExchangeIsPaged(t *testing.T) {
	own := confirm.Epochs{}
	for i := range 2500 {
		own[geo.Account(fmt.Sprintf("acct%04d", i))] = epoch(3, "north")
	}
	var pages []int
	asked := confirm.Epochs{}
	above, err := confirm.Run(t.Context(), own, func(_ context.Context, of confirm.Epochs) (confirm.Epochs, error) {
		pages = append(pages, len(of))
		out := confirm.Epochs{}
		for name, e := range of {
			asked[name] = e
			if name == "acct1700" {
				out[name] = epoch(4, "south")
			}
		}
		return out, nil
	})
	require.NoError(t, err)
	require.Equal(t, []int{1000, 1000, 500}, pages)
	require.Equal(t, own, asked)
	require.Equal(t, confirm.Epochs{"acct1700": epoch(4, "south")}, above)

	for _, wrong := range []confirm.Epochs{{"acct0001": epoch(3, "north")}, {"acct0001": epoch(2, "south")}, {"other": epoch(9, "south")}} {
		_, err := confirm.Run(t.Context(), own, func(context.Context, confirm.Epochs) (confirm.Epochs, error) { return wrong, nil })
		require.ErrorContains(t, err, "was not asked for")
	}
	calls := 0
	_, err = confirm.Run(t.Context(), nil, func(context.Context, confirm.Epochs) (confirm.Epochs, error) { calls++; return nil, errAway })
	require.ErrorIs(t, err, errAway, "without accounts it asks, too")
	require.Equal(t, 1, calls)
}

// wire is a link.Caller and link.Handlers at once.
type wire map[string]func(ctx context.Context, body []byte) ([]byte, error)

func (w wire) Handle(method string, f func(ctx context.Context, body []byte) ([]byte, error)) {
	w[method] = f
}

func (w wire) Call(ctx context.Context, method string, body []byte) ([]byte, error) {
	return w[method](ctx, body)
}

// R21: question and answer arrive as they were sent; a cut link, too many accounts and malformed bytes are errors.
func TestR21ExchangeOverTheWire(t *testing.T) {
	w, l := wire{}, link.New()
	defer l.Close()
	want := confirm.Epochs{"a": epoch(1, "north"), "b": epoch(7, "north")}
	confirm.Serve(w, l, func(_ context.Context, of confirm.Epochs) (confirm.Epochs, error) {
		require.Equal(t, want, of)
		return confirm.Epochs{"b": epoch(8, "south")}, nil
	})
	above, err := confirm.Run(t.Context(), want, confirm.Remote(w))
	require.NoError(t, err)
	require.Equal(t, confirm.Epochs{"b": epoch(8, "south")}, above)

	l.Cut()
	_, err = confirm.Remote(w)(t.Context(), want)
	require.ErrorIs(t, err, link.ErrCut)
	l.Heal()
	var many []map[string]any
	for range confirm.PageMax + 1 {
		many = append(many, map[string]any{"name": "a", "number": 1, "location": "north"})
	}
	body, err := json.Marshal(map[string]any{"accounts": many})
	require.NoError(t, err)
	for _, bad := range [][]byte{body, []byte("{"), []byte(`{"accounts":3}`)} {
		_, err = w["confirm.Epochs"](t.Context(), bad)
		require.Error(t, err)
	}
	w["confirm.Epochs"] = func(context.Context, []byte) ([]byte, error) { return []byte("x"), nil }
	_, err = confirm.Remote(w)(t.Context(), want)
	require.ErrorContains(t, err, "malformed answer")
}
