package scrub

import (
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/extent"
)

// collector is a Scrubber over a real chunk store, whose one row names what the test says.
type collector struct {
	*disk
	t     *testing.T
	store *extent.Store
	clock *clock.Manual
	s     *Scrubber
	names []extent.Ref
}

func newCollector(t *testing.T) *collector {
	store, err := extent.Open(vfs.NewMem(), "extents", extent.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	c := &collector{disk: newDisk(), t: t, store: store, clock: clock.NewManual(time.Unix(0, 0))}
	c.s, err = New(Options{
		Node: c.disk, Chunks: store, Rows: c.disk, Clock: c.clock, Ranges: oneRange(c.disk), CopyBytesPerSecond: 1 << 20, Logger: slog.New(slog.DiscardHandler),
		RowChunks: func(geo.RangeID, []byte, []byte) ([]extent.Ref, error) { return c.names, nil },
	})
	require.NoError(t, err)
	return c
}

// put puts a chunk and names it.
func (c *collector) put(i byte) extent.Ref {
	data := []byte{i}
	ref := extent.NewRef(extent.ChunkID{i}, data)
	require.NoError(c.t, c.store.Put(ref, data))
	require.NoError(c.t, c.store.Sync(c.t.Context()))
	return ref
}

// after lets time pass and returns the chunks that are here then.
func (c *collector) after(span time.Duration) []extent.Ref {
	for end := c.clock.Mono() + span; ; {
		rest := c.s.Step(c.t.Context())
		if c.clock.Mono()+rest > end {
			c.clock.Advance(end - c.clock.Mono())
			return c.store.Refs()
		}
		c.clock.Advance(rest)
	}
}

// What is overwritten goes within minutes, and sooner while the disk fills. An upload that is not named yet stays for
// Grace, and while nothing is overwritten, no rounds are begun but the full ones.
func TestOverwrittenChunksGoWithinMinutes(t *testing.T) {
	for _, d := range []struct {
		name   string
		fills  bool
		within time.Duration
	}{{"with room", false, 2 * time.Minute}, {"on a filling disk", true, 20 * time.Second}} {
		t.Run(d.name, func(t *testing.T) {
			c := newCollector(t)
			over, live, upload := c.put(1), c.put(2), c.put(3)
			c.names = []extent.Ref{over, live}
			c.unnamings++
			require.Len(t, c.after(2*time.Hour), 3)
			begun := c.settles
			require.NotZero(t, begun)
			require.Len(t, c.after(12*time.Hour), 3)
			require.Equal(t, begun, c.settles, "a round began though nothing was written")

			c.fills = d.fills
			c.names = []extent.Ref{live}
			c.unnamings++
			require.Equal(t, []extent.Ref{live, upload}, c.after(d.within))
			require.Len(t, c.after(9*time.Hour), 2, "an upload is given a day")
			require.Equal(t, []extent.Ref{live}, c.after(3*24*time.Hour))
		})
	}
}

// A chunk that was overwritten while a pin or a read kept it goes soon after that, though nothing else was written.
func TestReleasedChunksGoWithinMinutes(t *testing.T) {
	for name, keep := range map[string]func(c *collector, ref extent.Ref) (release func()){
		"pin":  func(c *collector, _ extent.Ref) func() { return c.store.Pin() },
		"read": func(c *collector, ref extent.Ref) func() { return c.store.Hold([]extent.Ref{ref}) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCollector(t)
			c.names = []extent.Ref{c.put(1)}
			c.after(5 * time.Minute)
			release := keep(c, c.names[0])
			c.names = nil
			c.unnamings++
			require.Len(t, c.after(10*time.Hour), 1)
			release()
			require.Empty(t, c.after(2*time.Minute))
		})
	}
}

// A round whose names turn out not to be complete is followed by others soon, not a day later.
func TestRoundThatFailedIsRepeated(t *testing.T) {
	c := newCollector(t)
	c.names = []extent.Ref{c.put(1)}
	c.after(5 * time.Minute)
	c.names = nil
	c.unnamings++
	c.after(collectSoon/collectPolls + time.Second)
	c.complete = false
	require.Len(t, c.after(10*time.Hour), 1)
	c.complete = true
	require.Empty(t, c.after(3*time.Minute))
}

// The same for one that fails on its way: two whole ones follow.
func TestRoundThatBrokeOffIsRepeated(t *testing.T) {
	c := newCollector(t)
	c.names = []extent.Ref{c.put(1)}
	c.after(5 * time.Minute)
	c.names = nil
	c.unnamings++
	for end, begun := c.clock.Mono()+5*time.Minute, c.settles; c.settles < begun+2 && c.clock.Mono() < end; {
		c.clock.Advance(c.s.Step(t.Context()))
	}
	require.True(t, c.s.collect.active)
	c.version++
	require.Len(t, c.after(time.Second), 1)
	require.Empty(t, c.after(3*time.Minute))
}

// The pause between rounds grows with what each reads.
func TestRoundsArePaced(t *testing.T) {
	c := newCollector(t)
	require.Equal(t, 24*time.Hour, c.s.rounds.full, "the first full round after a start")
	require.False(t, c.s.roundBegins())
	c.clock.Advance(time.Hour)
	c.s.roundEnds()
	require.Equal(t, collectPause*time.Hour, c.s.rounds.next-c.clock.Mono())
	c.fills = true
	c.s.roundEnds()
	require.Less(t, c.s.rounds.next, c.clock.Mono())

	c.fills = false
	for grace, least := range map[time.Duration]time.Duration{24 * time.Hour: collectSoon, 80 * time.Second: 10 * time.Second} {
		c.s.o.Grace = grace
		c.s.roundBegins()
		c.s.roundEnds()
		require.Equal(t, least, c.s.rounds.next-c.clock.Mono())
	}
}
