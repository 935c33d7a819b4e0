package location

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/failover/confirm"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/bus"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// fakePublisher answers each frame at once, with err.
type fakePublisher struct {
	bus.Publisher
	err  error
	sent int
}

// Publish implements bus.Publisher.
func (p *fakePublisher) Publish(_ string, _ []byte, done func(error)) error {
	p.sent++
	done(p.err)
	return nil
}

// R22: after a failure nothing is sent until the other location has answered which accounts it has in a higher epoch, and
// then nothing of these. A full bus is no failure. One frame every 5 s is sent all the same.
//
// Capability: Failover: What the other location cannot take does not cross the link (R22).
func TestR22AsksBeforeItSends(t *testing.T) {
	t.Parallel()
	clk := clock.NewManual(time.Unix(1e9, 0))
	clk.Advance(time.Minute)
	l := New(Options{Name: "north", Other: "south", Clock: clk, Local: []geo.NodeID{1}})
	c := &l.confirming
	c.begin()
	fake := &fakePublisher{}
	p := askingPublisher{fake, c}
	send := func() error { return p.Publish("geo.north.blob.3", nil, func(error) {}) }
	look := func() {
		clk.Advance(time.Second)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.machine.Step(clk.Mono(), confirm.Look{})
	}
	for _, err := range []error{nil, bus.ErrFull, bus.ErrTooLarge} {
		fake.err = err
		require.NoError(t, send())
		require.NoError(t, send())
	}
	fake.err = bus.ErrUnavailable
	require.NoError(t, send())
	fake.err, fake.sent = nil, 0
	require.ErrorIs(t, send(), bus.ErrUnavailable)
	require.Zero(t, fake.sent)
	clk.Advance(probeEvery)
	require.NoError(t, send())
	require.ErrorIs(t, send(), bus.ErrUnavailable)
	require.Equal(t, 1, fake.sent)

	look()
	c.step(t.Context(), nil, confirm.Exchanged{Above: confirm.Epochs{"moved": {Number: 2, Location: "south"}}})
	require.NoError(t, send())
	for a, withheld := range map[geo.Account]bool{"moved": true, "mine": false} {
		for number, is := range map[geo.EpochNumber]bool{1: withheld, 3: false} {
			st := geo.Stream{Account: a, Epoch: geo.Epoch{Number: number, Location: "north"}, Range: geo.FirstRange(geo.Blob)}
			require.Equal(t, is, l.withholding.withheld(nil, st), "%s in epoch %d", a, number)
		}
	}
}

// R22: what was withheld for a higher epoch goes on once the other location, asked again, has that no more: it was made
// again. One that it was not asked for stays withheld, and all do where it does not answer.
//
// Capability: Failover: What the other location cannot take does not cross the link (R22).
func TestR22UnpassedIsSent(t *testing.T) {
	t.Parallel()
	l := New(Options{Name: "north", Other: "south", Clock: clock.NewManual(time.Unix(1e9, 0)), Local: []geo.NodeID{1}})
	s := stamptest.New(t, "north", geo.Catalog)
	l.stamp.Store(s)
	for _, name := range []geo.Account{"back", "moved"} {
		stamptest.Submit(t, s, s.Route().Catalog(), oneAccount{a: catalog.Account{
			Name: name, Redundancy: catalog.GRS, Primary: "north", Secondary: "south", Epoch: 1, Active: true,
		}})
	}
	c := &l.confirming
	c.begin()
	higher, own := geo.Epoch{Number: 2, Location: "south"}, geo.Epoch{Number: 1, Location: "north"}
	c.step(t.Context(), nil, confirm.Exchanged{Above: confirm.Epochs{"back": higher, "moved": higher, "followed": higher}})
	var far error
	l.far.Epochs = func(_ context.Context, of confirm.Epochs) (confirm.Epochs, error) {
		require.Equal(t, confirm.Epochs{"back": own, "moved": own}, of)
		return confirm.Epochs{"moved": higher}, far
	}
	far = bus.ErrUnavailable
	_, err := c.exchange(t.Context())
	require.ErrorIs(t, err, far)
	require.True(t, l.withholding.withheld(nil, geo.Stream{Account: "back", Epoch: own, Range: geo.FirstRange(geo.Blob)}))
	far = nil
	above, err := c.exchange(t.Context())
	require.NoError(t, err)
	require.Equal(t, confirm.Epochs{"moved": higher}, above)
	for a, is := range map[geo.Account]bool{"back": false, "moved": true, "followed": true} {
		st := geo.Stream{Account: a, Epoch: own, Range: geo.FirstRange(geo.Blob)}
		require.Equal(t, is, l.withholding.withheld(nil, st), a)
	}
}

// oneAccount is a command that sets the record of an account, and its promotion if it has one.
type oneAccount struct {
	a         catalog.Account
	promotion *catalog.Promotion
}

// Evaluate implements ranges.Command.
func (c oneAccount) Evaluate(tx *ranges.Tx) error {
	v, err := c.a.Encode()
	if err != nil {
		return err
	}
	promotion, err := catalog.PromotionOp(c.promotion)
	if err != nil {
		return err
	}
	p := catalog.AccountPartition(c.a.Name)
	return tx.Local(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Value: v}, promotion}})
}

// oneRow is a catalog replica that has applied one record of an account.
type oneRow struct {
	a     *catalog.Account
	reads int
}

// Get implements kv.Getter.
func (r *oneRow) Get([]byte) ([]byte, bool, error) {
	r.reads++
	if r.a == nil {
		return nil, false, nil
	}
	b, err := r.a.Encode()
	return b, true, err
}

// R22: what is withheld is looked up again, soon, and what is not is remembered, each for its epoch alone: nothing stays
// withheld after its account was followed, and each record of an account at rest costs no read.
//
// Capability: Failover: What the other location cannot take does not cross the link (R22).
func TestR22WithheldIsLookedUpAgain(t *testing.T) {
	t.Parallel()
	clk := clock.NewManual(time.Unix(1e9, 0))
	l := New(Options{Name: "north", Other: "south", Clock: clk, Local: []geo.NodeID{1}})
	l.confirming.begin()
	row := &oneRow{a: &catalog.Account{
		Name: "acct", Redundancy: catalog.GRS, Primary: "north", Secondary: "south", Epoch: 2, Active: true, Operation: &catalog.Operation{Kind: catalog.OperationTaken},
	}}
	withheld := func(number geo.EpochNumber) bool {
		return l.withholding.withheld(row, geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: number, Location: "north"}, Range: geo.FirstRange(geo.Blob)})
	}
	require.True(t, withheld(2))
	require.True(t, withheld(2))
	require.Equal(t, 1, row.reads, "within withheldFor")
	row.a.Operation = nil
	clk.Advance(withheldFor)
	require.False(t, withheld(2))
	require.False(t, withheld(2))
	require.Equal(t, 2, row.reads)
	row.a.Epoch, row.a.Operation = 4, &catalog.Operation{Kind: catalog.OperationTaken}
	require.False(t, withheld(2))
	require.Equal(t, 2, row.reads)
	require.True(t, withheld(4), "another epoch")
	row.a = nil
	clk.Advance(withheldFor)
	require.False(t, withheld(4), "the account is gone: its gates refuse what comes")
}

// R22: a former primary is awaited from the promotion until it has kept what it alone has.
func TestR22LostIsAwaited(t *testing.T) {
	t.Parallel()
	a := &catalog.Account{Name: "acct", Primary: "south", Secondary: "north", LastFailover: 7}
	require.Nil(t, lostAwaited(a, "south"))
	a.Operation = &catalog.Operation{Kind: catalog.OperationTaken}
	require.Nil(t, lostAwaited(a, "south"), "a planned move loses nothing")
	a.Operation.Unplanned = true
	require.Nil(t, lostAwaited(a, "north"))
	got := lostAwaited(a, "south")
	require.EqualValues(t, "north", got.Location)
	require.Equal(t, geo.Timestamp(7).Time(), got.Since.Time)
	a.Operation.Rewinding = true
	require.Nil(t, lostAwaited(a, "south"))
}

// R21: the accounts that are refused are listed by the rule of the fence: of two epochs that were begun at once, above the last
// one that both locations know of, that of the other location counts, whatever their numbers are.
func TestR21RefusedEpochsAreThoseOfTheFence(t *testing.T) {
	t.Parallel()
	l := New(Options{Name: "north", Other: "south", Clock: clock.NewManual(time.Unix(1e9, 0)), Local: []geo.NodeID{1}})
	of := func(name geo.Account, agreed geo.EpochNumber) *catalog.Account {
		return &catalog.Account{Name: name, Primary: "north", Epoch: 4, Operation: &catalog.Operation{Kind: catalog.OperationLeave, Agreed: agreed}}
	}
	above := confirm.Epochs{"begun": {Number: 2, Location: "south"}, "knows": {Number: 2, Location: "south"}, "gone": {Number: 9, Location: "south"}}
	require.Len(t, l.confirming.refused(above), 3, "the catalog was not read yet")
	l.confirming.setOwn([]*catalog.Account{of("begun", 1), of("knows", 3), {Name: "gone", Primary: "south", Epoch: 9}})
	out := l.confirming.refused(above)
	require.Len(t, out, 1)
	require.Equal(t, geo.Account("begun"), out[0].Account)
}
