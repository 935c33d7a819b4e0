package directory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// paced is an account of the north whose bootstrap copies 60 KiB of rows and 40 KiB of payload a step, under a clock that
// stands.
type paced struct {
	*both
	t     *testing.T
	fake  *images
	clock *clock.Manual
}

func newPaced(t *testing.T) *paced {
	p := &paced{both: newBoth(t), t: t, fake: &images{}, clock: clock.NewManual(time.Unix(1e9, 0))}
	p.fake.next = func(geo.Service, int) ranges.ImageStep {
		return ranges.ImageStep{Took: change.ImageSize{Rows: 1, Bytes: 60 << 10, Payload: 40 << 10}}
	}
	p.north.NeverWait()
	p.north.SetImages(p.fake)
	p.north.SetPace(p.clock, 0)
	_, err := p.north.CreateAs(t.Context(), directory.Wanted{Name: "acct", Redundancy: catalog.LRS})
	require.NoError(t, err)
	return p
}

// steps resumes the operations of a location and returns how many steps that made, and the pause after it.
func (p *paced) steps(d *directory.Directory) (int, time.Duration) {
	p.t.Helper()
	p.fake.steps = 0
	again, err := d.Resume(p.t.Context())
	require.NoError(p.t, err)
	return p.fake.steps, again
}

// runs lets a time pass in small steps and returns how many bytes were copied.
func (p *paced) runs(d *directory.Directory, span time.Duration) (bytes int) {
	p.t.Helper()
	for end := p.clock.Mono() + span; p.clock.Mono() < end; p.clock.Advance(10 * time.Millisecond) {
		n, _ := p.steps(d)
		bytes += n * 100 << 10
	}
	return bytes
}

// refused requires that an error is of a row, whatever it says.
func refused(t *testing.T, err error, want storageerr.Row, why ...any) {
	t.Helper()
	row, ours := storageerr.Of(err)
	require.True(t, ours, why...)
	require.Equal(t, want.Code, row.Code, why...)
}

func rate(v uint64) *uint64 { return &v }

// R17: a copy keeps to its rate over any time, records and payload together, to within a step and a quarter of a second.
// The rate may be changed while it runs, also to no bound, and holds at once, however low the one before was.
func TestR17CopyKeepsToItsRate(t *testing.T) {
	t.Parallel()
	p := newPaced(t)
	_, behind, err := p.north.Update(t.Context(), "acct", catalog.GRS, rate(1<<20))
	require.NoError(t, err)
	require.ErrorContains(t, behind, "(bootstrap)")
	require.EqualValues(t, 1<<20/10, p.fake.bytesMax)
	near := func(want, got int) { t.Helper(); require.InDelta(t, want, got, 360<<10) }
	near(10<<20, p.runs(p.north, 10*time.Second))
	p.clock.Advance(time.Hour)
	near(1<<20, p.runs(p.north, time.Second)) // The hour in which nothing was copied gives no credit.

	_, err = p.north.SetRate(t.Context(), "acct", 100)
	require.NoError(t, err)
	require.LessOrEqual(t, p.runs(p.north, 10*time.Second), 100<<10, "one step at most")
	n, again := p.steps(p.north)
	require.Equal(t, []any{0, time.Second}, []any{n, again.Truncate(time.Millisecond)}, "it looks again each second")
	p.clock.Advance(time.Hour)
	n, _ = p.steps(p.north)
	require.Equal(t, 1, n)
	require.EqualValues(t, 4<<10, p.fake.bytesMax)

	_, err = p.north.SetRate(t.Context(), "acct", 4<<20)
	require.NoError(t, err)
	near(20<<20, p.runs(p.north, 5*time.Second))
	_, err = p.north.SetRate(t.Context(), "acct", 0)
	require.NoError(t, err)
	n, again = p.steps(p.north)
	require.Equal(t, []any{256, 10 * time.Millisecond}, []any{n, again}, "a whole turn")
	require.Zero(t, p.fake.bytesMax)
}

// R17: the rate is in the account's record: another process that goes on with the copy keeps to it, and so does a copy that
// begins again. A rate without a copy is refused, and changes nothing.
func TestR17RateOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	p := newPaced(t)
	_, err := p.north.SetRate(t.Context(), "acct", 1)
	require.ErrorContains(t, err, "no copy of account acct is made: a rate has no use")
	_, _, err = p.north.Update(t.Context(), "acct", catalog.LRS, rate(1))
	refused(t, err, storageerr.InvalidInput)
	_, err = p.south.SetRate(t.Context(), "acct", 1)
	require.ErrorContains(t, err, "the primary of account acct is north")

	_, _, err = p.north.Update(t.Context(), "acct", catalog.GRS, rate(1<<20))
	require.NoError(t, err)
	another := directory.NewDirectory(p.stamps["north"], "south")
	another.SetPeer(p.south)
	another.SetImages(p.fake)
	another.SetPace(p.clock, 0)
	require.InDelta(t, 5<<20, p.runs(another, 5*time.Second), 360<<10)

	operation := func() catalog.Operation {
		a, err := p.north.Account(t.Context(), "acct")
		require.NoError(t, err)
		return *a.Operation
	}
	for _, c := range []struct {
		rate *uint64
		want uint64
	}{{nil, 1 << 20}, {rate(2 << 20), 2 << 20}, {rate(0), 0}} {
		_, _, err = p.north.Rebuild(t.Context(), "acct", c.rate)
		require.NoError(t, err)
		require.Equal(t, c.want, operation().Rate)
	}
	_, _, err = p.north.Update(t.Context(), "acct", catalog.GRS, rate(7))
	require.NoError(t, err)
	require.EqualValues(t, 7, operation().Rate, "the same redundancy again, with a rate")
	n, _ := p.steps(p.north)
	require.Zero(t, n, "it has copied more than its rate lets through")
	p.fake.steps = 0
	_, _, err = p.north.Rebuild(t.Context(), "acct", rate(7))
	require.NoError(t, err)
	require.Equal(t, 1, p.fake.steps, "what the former copy had beyond its rate does not hold up the next one")
	_, _, err = p.north.Update(t.Context(), "acct", catalog.RAGRS, rate(8))
	refused(t, err, storageerr.OperationInProgress)
	require.EqualValues(t, 7, operation().Rate)
	_, _, err = p.north.Update(t.Context(), "acct", catalog.LRS, rate(8))
	refused(t, err, storageerr.InvalidInput)

	whole := change.Image{Done: make([]geo.Seq, geo.LaneCount)}
	p.fake.next = func(geo.Service, int) ranges.ImageStep { return ranges.ImageStep{Image: whole, Applied: true} }
	p.clock.Advance(100 * time.Hour)
	p.steps(p.north)
	p.clock.Advance(time.Hour)
	p.steps(p.north)
	_, _, err = p.north.Update(t.Context(), "acct", catalog.RAGRS, rate(8))
	refused(t, err, storageerr.InvalidInput, "it makes no copy")
	a, err := p.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Nil(t, a.Operation)
	require.Equal(t, catalog.GRS, a.Redundancy)
}

// R17: a copy that is begun without a rate has that of the process, also where the account has had one of its own before.
// One under way keeps what it has, and no bound can be asked for.
func TestR17RateOfTheProcess(t *testing.T) {
	t.Parallel()
	p := newPaced(t)
	p.north.SetPace(p.clock, 1<<20)
	begin := func(r *uint64) uint64 {
		t.Helper()
		a, _, err := p.north.Update(t.Context(), "acct", catalog.GRS, r)
		require.NoError(t, err)
		return a.Operation.Rate
	}
	require.Zero(t, begin(rate(0)), "no bound")
	require.Zero(t, begin(nil), "it is under way")
	require.EqualValues(t, 5, begin(rate(5)))
	_, _, err := p.north.Update(t.Context(), "acct", catalog.LRS, nil)
	require.NoError(t, err)
	requireResumed(t, p.north)
	require.EqualValues(t, 1<<20, begin(nil))
	require.InDelta(t, 5<<20, p.runs(p.north, 5*time.Second), 360<<10)
	p.north.SetPace(p.clock, 7)
	_, _, err = p.north.Rebuild(t.Context(), "acct", nil)
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, begin(nil), "it goes on")
}

// R17: a step whose outcome is unknown may have been committed. It counts as the most that a step lets through, so that
// a leader which answers none of them does not copy without a bound. One that is known to have failed does not count.
func TestR17UnknownStepIsPaced(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{kv.ErrUnknown: 10, kv.ErrBusy: 100} {
		p := newPaced(t)
		_, _, _ = p.north.Update(t.Context(), "acct", catalog.GRS, rate(1<<20))
		p.clock.Advance(time.Hour)
		p.fake.stepErr, p.fake.steps = err, 0
		for range 100 {
			_, _ = p.north.Resume(t.Context())
			p.clock.Advance(10 * time.Millisecond)
		}
		require.InDelta(t, want, p.fake.steps, 4, "%v: in a second", err)
	}
}
