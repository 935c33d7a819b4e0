package dns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
)

// stamp is a Source of a catalog in memory: versions are numbers, and a page has two names.
type stamp struct {
	location geo.Location
	rows     map[geo.Account]Entry
	changed  map[geo.Account]int
	version  int
	away     error
	asked    []string
	// between is called after each page; nil for nothing.
	between func()
}

func newStamp(l geo.Location) *stamp {
	return &stamp{location: l, rows: map[geo.Account]Entry{}, changed: map[geo.Account]int{}}
}

func (s *stamp) put(list ...Entry) {
	for _, e := range list {
		s.version++
		s.rows[e.Account], s.changed[e.Account] = e, s.version
	}
}

func (s *stamp) Location() geo.Location { return s.location }

func (s *stamp) Names(_ context.Context, since string, after geo.Account) (Page, error) {
	s.asked = append(s.asked, fmt.Sprintf("%s>%s", since, after))
	if s.away != nil {
		return Page{}, s.away
	}
	above := 0
	_, _ = fmt.Sscanf(since, "v%d", &above)
	var names []geo.Account
	for name, changed := range s.changed {
		if changed > above && name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	p := Page{Version: fmt.Sprintf("v%d", s.version)}
	for i, name := range names {
		if i == 2 {
			p.Next = names[1]
			break
		}
		p.Entries = append(p.Entries, s.rows[name])
	}
	if s.between != nil {
		s.between()
	}
	return p, nil
}

func newPoller(v *View, c clock.Clock, log *slog.Logger, sources ...Source) *Poller {
	return NewPoller(PollerOptions{Sources: sources, View: v, Clock: c, Observer: counts{}, Logger: log})
}

// All pages are read, then only what changes: the version is that of the first page, so that what changes while pages are
// read comes with the next list.
func TestPollsChangesOnly(t *testing.T) {
	v, s := openView(t, vfs.NewMem()), newStamp(north)
	for _, name := range []geo.Account{"aaa", "bbb", "ccc", "ddd", "eee"} {
		s.put(in(name, 1, north, catalog.GRS))
	}
	p := newPoller(v, clock.NewManual(time.Unix(1e9, 0)), quiet, s)
	step := func() []string {
		s.asked = nil
		p.step(t.Context(), p.polls[0])
		return s.asked
	}
	require.Equal(t, []string{">", ">bbb", ">ddd"}, step())
	require.Equal(t, 5, v.Len())
	require.Equal(t, []string{"v5>"}, step())
	s.put(in("ccc", 2, south, catalog.GRS))
	require.Equal(t, []string{"v5>"}, step())
	e, _ := v.Lookup("ccc")
	require.Equal(t, south, e.Epoch.Location)
	require.Equal(t, []string{"v6>"}, step())

	// A name of the first page changes after that was read.
	for _, name := range []geo.Account{"aaa", "bbb", "ccc"} {
		s.put(in(name, 3, north, catalog.GRS))
	}
	s.between = func() {
		s.between = nil
		s.put(in("aaa", 4, south, catalog.GRS))
	}
	require.Equal(t, []string{"v6>", "v6>bbb"}, step())
	require.Equal(t, []string{"v9>"}, step())
	e, _ = v.Lookup("aaa")
	require.Equal(t, geo.EpochNumber(4), e.Epoch.Number)
}

// A source whose pages do not end is given up, and nothing of it is taken.
func TestPollEnds(t *testing.T) {
	v := openView(t, vfs.NewMem())
	p := newPoller(v, clock.NewManual(time.Unix(1e9, 0)), quiet, around{})
	p.step(t.Context(), p.polls[0])
	require.False(t, v.Known())
	require.Empty(t, p.Ages())
}

type around struct{}

func (around) Location() geo.Location { return north }

func (around) Names(_ context.Context, _ string, after geo.Account) (Page, error) {
	return Page{Version: "v", Next: map[geo.Account]geo.Account{"": "bbb", "bbb": "aaa", "aaa": "bbb"}[after]}, nil
}

// With one stamp away the other's changes are taken, and with both away everything is answered as it was. A long
// absence of a stamp is logged once, and its return once; an election is not worth a line.
func TestStampsAreAway(t *testing.T) {
	var out bytes.Buffer
	v, a, b, c := openView(t, vfs.NewMem()), newStamp(north), newStamp(south), clock.NewManual(time.Unix(1e9, 0))
	a.put(in("pictures", 1, north, catalog.RAGRS))
	b.put(in("pictures", 1, north, catalog.RAGRS))
	p := newPoller(v, c, slog.New(slog.NewTextHandler(&out, nil)), a, b)
	both := func() {
		for _, s := range p.polls {
			p.step(t.Context(), s)
		}
	}
	both()
	require.Len(t, p.Ages(), 2)
	a.away = errors.New("no route")
	b.put(in("pictures", 2, south, catalog.RAGRS))
	both()
	e, _ := v.Lookup("pictures")
	require.Equal(t, south, e.Epoch.Location, "the stamp that answers knows the higher epoch")
	require.Empty(t, out.String())

	b.away = a.away
	for range 5 {
		c.Advance(silentFor)
		both()
	}
	require.Equal(t, 2, strings.Count(out.String(), "level=WARN"), out.String())
	e, _ = v.Lookup("pictures")
	require.Equal(t, south, e.Epoch.Location)
	require.Equal(t, []Age{{north, 5 * silentFor}, {south, 5 * silentFor}}, p.Ages())

	// The former primary returns first, with what it knew.
	a.away = nil
	both()
	e, _ = v.Lookup("pictures")
	require.Equal(t, south, e.Epoch.Location)
	require.Equal(t, 1, strings.Count(out.String(), "level=INFO"), out.String())
}

// Whatever sequence both stamps answer in, each with the catalog of a moment of its past or none, and whatever moves
// happen meanwhile, no name goes back; and once both have answered, each name leads to its present primary.
func TestPollNeverGoesBack(t *testing.T) {
	names := []geo.Account{"aaa", "bbb", "ccc", "ddd"}
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewMem()
		v, stamps := openView(t, fs), []*stamp{newStamp(north), newStamp(south)}
		p := newPoller(v, clock.NewManual(time.Unix(1e9, 0)), quiet, stamps[0], stamps[1])
		truth, answered := map[geo.Account]Entry{}, map[geo.Account]geo.Epoch{}
		late := map[geo.Account]bool{} // The other stamp does not have the entry yet.
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom(names).Draw(t, "name")
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0: // A move: the new primary's stamp has it first.
				to := rapid.IntRange(0, 1).Draw(t, "to")
				e := in(name, truth[name].Epoch.Number+1, stamps[to].location, catalog.RAGRS)
				truth[name], late[name] = e, true
				stamps[to].put(e)
			case 1:
				if late[name] {
					e := truth[name]
					for _, s := range stamps {
						if s.location != e.Epoch.Location {
							s.put(e)
						}
					}
					late[name] = false
				}
			case 2:
				s := stamps[rapid.IntRange(0, 1).Draw(t, "whose")]
				if s.away = nil; rapid.Bool().Draw(t, "away") {
					s.away = errors.New("away")
				}
			case 3: // Another process, with both stamps as they are.
				v = openView(t, fs)
				p = newPoller(v, clock.NewManual(time.Unix(1e9, 0)), quiet, stamps[0], stamps[1])
			default:
				p.step(context.Background(), p.polls[rapid.IntRange(0, 1).Draw(t, "asked")])
			}
			for _, name := range names {
				e, _ := v.Lookup(name)
				require.GreaterOrEqual(t, e.Epoch.Compare(answered[name]), 0, name)
				answered[name] = e.Epoch
			}
		}
		for i, s := range stamps {
			s.away = nil
			p.step(context.Background(), p.polls[i])
		}
		for name, e := range truth {
			got, _ := v.Lookup(name)
			require.Equal(t, e, got)
		}
	})
}

// Run asks every source by itself: one that hangs holds up no other, and the end of the context ends all.
func TestRunPolls(t *testing.T) {
	v := openView(t, vfs.NewMem())
	s := newStamp(south)
	s.put(in("pictures", 1, south, catalog.LRS))
	p := NewPoller(PollerOptions{
		Sources: []Source{hung{}, s}, View: v, Clock: clock.System{}, Observer: counts{}, Logger: quiet,
		Wait: func(ctx context.Context, _ time.Duration) error { <-ctx.Done(); return ctx.Err() },
	})
	w := v.Watch()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	<-w.changed
	require.Equal(t, []geo.Account{"pictures"}, w.take(1))
	cancel()
	require.NoError(t, <-ended)
}

// hung is a source that never answers.
type hung struct{}

func (hung) Location() geo.Location { return north }

func (hung) Names(ctx context.Context, _ string, _ geo.Account) (Page, error) {
	<-ctx.Done()
	return Page{}, ctx.Err()
}
