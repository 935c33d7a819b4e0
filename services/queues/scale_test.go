package queues

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
)

// sub is an observed subqueue whose head has the state of its entry, in the range of its number.
func sub(id SubqueueID, s State, n uint64, l load) observed {
	return observed{Entry{ID: id, Schema: 1, State: s}, counted{n: n, state: s}, l, geo.RangeID(id)}
}

// roomsFor are so many ranges that hold subqueues.
func roomsFor(n int) (out []room) {
	for i := range n {
		out = append(out, room{in: geo.RangeID(i + 1)})
	}
	return out
}

func in(id geo.RangeID, o observed) observed {
	o.in = id
	return o
}

func olderSchema(o observed) observed {
	o.Schema = 0
	return o
}

// A queue gets a subqueue if one is too much for a range, and loses one if all are quiet. Nothing changes between,
// nor soon after a change, nor while one is under way (protocol/queue.md 24; table).
func TestDecide(t *testing.T) {
	t.Parallel()
	all, draining := StateAll, StateAllExceptPut
	idle, hot, warm, refused := load{}, load{rate: 1000}, load{rate: 250}, load{rate: 1, throttled: 20}
	within := ScaleOptions{WithinRange: true}
	half := sub(2, draining, 5, idle)
	half.state = all
	for name, c := range map[string]struct {
		o      ScaleOptions
		in     []observed
		quiet  time.Duration
		since  time.Duration
		schema byte
		want   action
		id     SubqueueID
		ranges int // Of the queue; zero means more than it needs.
		rooms  []geo.RangeID
	}{
		"one that is idle":                     {in: []observed{sub(1, all, 0, idle)}, quiet: time.Hour, want: nothing},
		"one that is hot":                      {in: []observed{sub(1, all, 0, hot)}, want: add},
		"almost hot":                           {in: []observed{sub(1, all, 0, load{rate: 999, throttled: 19})}, want: nothing},
		"one that is refused":                  {in: []observed{sub(1, all, 0, refused)}, want: add},
		"one of two is hot":                    {in: []observed{sub(1, all, 0, idle), sub(2, all, 0, hot)}, want: add},
		"hot, just changed":                    {in: []observed{sub(1, all, 0, hot)}, since: 29 * time.Second, want: nothing},
		"hot, at the maximum":                  {o: ScaleOptions{Max: 1}, in: []observed{sub(1, all, 0, hot)}, want: nothing},
		"the maximum counts those that drain":  {o: ScaleOptions{Max: 2}, in: []observed{sub(1, all, 0, hot), sub(2, draining, 1, idle)}, want: nothing},
		"large, sizes do not matter":           {in: []observed{sub(1, all, 1e9, idle)}, want: nothing},
		"large":                                {o: ScaleOptions{UpSize: 1000}, in: []observed{sub(1, all, 1000, idle)}, want: add},
		"two that are quiet and small":         {in: []observed{sub(1, all, 99, idle), sub(2, all, 7, idle)}, quiet: 10 * time.Second, want: drain, id: 2},
		"of equal ones the newer by its id":    {in: []observed{sub(0, all, 0, idle), sub(2, all, 0, idle)}, quiet: 10 * time.Second, want: drain, id: 2},
		"small, not quiet for a window":        {in: []observed{sub(1, all, 1, idle), sub(2, all, 7, idle)}, quiet: 9 * time.Second, want: nothing},
		"one of two is large":                  {in: []observed{sub(1, all, 100, idle), sub(2, all, 7, idle)}, quiet: 299 * time.Second, want: nothing},
		"one of two is large, quiet for long":  {in: []observed{sub(1, all, 100, idle), sub(2, all, 7, idle)}, quiet: 5 * time.Minute, want: drain, id: 2},
		"two that are warm":                    {in: []observed{sub(1, all, 1, warm), sub(2, all, 7, warm)}, want: nothing},
		"quiet, just changed":                  {in: []observed{sub(1, all, 1, idle), sub(2, all, 7, idle)}, quiet: time.Hour, since: 29 * time.Second, want: nothing},
		"one drains":                           {in: []observed{sub(1, all, 0, idle), sub(2, draining, 1, idle)}, quiet: time.Hour, want: nothing},
		"one has drained":                      {in: []observed{sub(1, all, 0, idle), sub(2, draining, 0, idle)}, since: time.Second, want: remove, id: 2},
		"empty, and its head still takes puts": {in: []observed{sub(1, all, 0, hot), {half.Entry, counted{state: all}, idle, 2}}, want: nothing},
		"a change is under way":                {in: []observed{sub(1, all, 0, hot), half}, want: nothing},
		"what is deleted does not count":       {o: ScaleOptions{Max: 2}, in: []observed{sub(1, all, 0, hot), sub(2, StateToBeDeleted, 9, idle)}, want: add},
		"Q25: all are older":                   {in: []observed{olderSchema(sub(1, all, 0, idle))}, schema: 1, want: add},
		"Q25: one is older":                    {in: []observed{olderSchema(sub(1, all, 9, hot)), sub(2, all, 0, idle)}, schema: 1, want: drain, id: 1},
		"Q25: older ones drain":                {in: []observed{olderSchema(sub(1, draining, 9, idle)), sub(2, all, 0, idle)}, schema: 1, want: nothing},
		"Q25: an older program adds none":      {in: []observed{sub(1, all, 0, idle)}, schema: 0, want: nothing},

		"hot, one range":               {in: []observed{sub(1, all, 0, hot)}, ranges: 1, want: nothing},
		"hot, one range, within":       {o: within, in: []observed{sub(1, all, 0, hot)}, ranges: 1, want: add, rooms: []geo.RangeID{1}},
		"hot, in the second of three":  {in: []observed{sub(2, all, 0, hot)}, ranges: 3, want: add, rooms: []geo.RangeID{1, 3}},
		"the same, within":             {o: within, in: []observed{sub(2, all, 0, hot)}, ranges: 3, want: add, rooms: []geo.RangeID{1, 3}},
		"hot, one in each":             {in: []observed{sub(1, all, 0, hot), sub(2, all, 0, hot)}, ranges: 2, want: nothing},
		"one that drains is no reason": {in: []observed{sub(1, all, 0, hot), sub(2, draining, 1, idle)}, ranges: 2, want: add, rooms: []geo.RangeID{2}},
		"one that is deleted neither":  {in: []observed{sub(1, all, 0, hot), sub(2, StateToBeDeleted, 1, idle)}, ranges: 2, want: add, rooms: []geo.RangeID{2}},
		"two in one range, hot":        {in: []observed{sub(1, all, 9, hot), in(1, sub(2, all, 8, hot)), sub(3, all, 0, hot)}, want: drain, id: 2},
		"two in one range, idle":       {in: []observed{sub(1, all, 7, idle), in(1, sub(2, all, 8, idle))}, want: drain, id: 1},
		"two in one range, within":     {o: within, in: []observed{sub(1, all, 9, warm), in(1, sub(2, all, 8, warm))}, want: nothing},
		"two in one, just changed":     {in: []observed{sub(1, all, 9, hot), in(1, sub(2, all, 8, hot))}, since: time.Second, want: nothing},
		"one of two in one drains":     {in: []observed{sub(1, all, 9, hot), in(1, sub(2, draining, 8, hot))}, ranges: 1, want: nothing},
		"Q25: all are older, no room":  {in: []observed{olderSchema(sub(1, all, 0, idle))}, ranges: 1, schema: 1, want: add, rooms: []geo.RangeID{1}},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.o.withDefaults()
			require.NoError(t, o.Validate())
			q := &observation{subqueues: c.in, quiet: c.quiet, since: cmp.Or(c.since, time.Hour), schema: c.schema}
			q.rooms = roomsFor(cmp.Or(c.ranges, 9))
			got := o.decide(q)
			require.Equal(t, c.want, got.action, got.why)
			require.Equal(t, c.id, got.id)
			require.Equal(t, c.want == add, len(got.rooms) > 0)
			var rooms []geo.RangeID
			for _, r := range got.rooms {
				rooms = append(rooms, r.in)
			}
			if c.rooms != nil {
				require.Equal(t, c.rooms, rooms)
			}
			require.Equal(t, c.want == nothing, got.why == "", "each is explained")
		})
	}
}

// Hysteresis: under a load that stays, spread evenly, a queue comes to rest: it never gets a subqueue that it loses again,
// or the other way round, whatever the load, the ranges and the options that Validate takes. In the end none is in a range of
// another one, unless that is asked for; until then one that is may drain first.
func TestScalingComesToRest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := ScaleOptions{UpRate: float64(rapid.IntRange(1, 5000).Draw(t, "up")), Max: rapid.IntRange(1, 20).Draw(t, "max")}
		o.DownRate = o.UpRate * rapid.Float64Range(0.01, 1.0/3).Draw(t, "down")
		require.NoError(t, o.Validate())
		o = o.withDefaults()
		o.WithinRange = rapid.Bool().Draw(t, "within")
		total := o.UpRate * rapid.Float64Range(0, 25).Draw(t, "load")
		rooms := roomsFor(rapid.IntRange(1, 20).Draw(t, "ranges"))
		var at []geo.RangeID
		for range rapid.IntRange(1, 20).Draw(t, "subqueues") {
			at = append(at, rapid.SampledFrom(rooms).Draw(t, "range").in)
		}
		last := nothing
		for range 64 {
			l := load{rate: total / float64(len(at))}
			q := &observation{since: time.Hour, schema: 1, rooms: rooms}
			if o.quiet(l) {
				q.quiet = time.Hour
			}
			for i, r := range at {
				q.subqueues = append(q.subqueues, in(r, sub(SubqueueID(i+1), StateAll, 0, l)))
			}
			more := doubled(q.subqueues)
			got := o.decide(q)
			if got.action == nothing {
				require.True(t, o.WithinRange || len(more) == 0)
				return
			}
			if o.WithinRange || len(more) == 0 {
				require.Contains(t, []action{nothing, got.action}, last, "back again")
				last = got.action
			}
			if got.action == add {
				at = append(at, rapid.SampledFrom(got.rooms).Draw(t, "room").in)
			} else {
				at = slices.Delete(at, int(got.id)-1, int(got.id))
			}
		}
		t.Fatal("does not come to rest")
	})
}

// Options that make a queue scale up and down for ever are refused, every bad one of them.
func TestScaleOptions(t *testing.T) {
	t.Parallel()
	require.NoError(t, ScaleOptions{}.Validate())
	for name, o := range map[string]ScaleOptions{
		"a third": {DownRate: 334}, "sizes": {UpSize: 299}, "cooldown": {Cooldown: 9 * time.Second}, "negative": {Window: -1},
		"rate": {UpRate: -1}, "none": {Max: -1}, "many": {Max: 257}, "window": {Window: time.Minute},
	} {
		require.Error(t, o.Validate(), name)
	}
	err := ScaleOptions{Max: -1, DownRate: 999}.Validate()
	require.ErrorContains(t, err, "maximum")
	require.ErrorContains(t, err, "lower rate")
}

// Q12, Q14: whatever states a dictionary and the heads have, settling opens nothing that is closed in either, leaves what may be
// committed, and is done after it.
func TestSettle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := &Dictionary{Version: dictionaryFormat}
		var heads []counted
		for i := range rapid.IntRange(1, 5).Draw(t, "subqueues") {
			d.Subqueues = append(d.Subqueues, Entry{ID: SubqueueID(i), State: State(rapid.IntRange(1, 4).Draw(t, "state"))})
			heads = append(heads, counted{state: State(rapid.IntRange(0, 4).Draw(t, "head"))})
		}
		s := settle(d, heads)
		to, after := d, append([]counted{}, heads...)
		for _, id := range s.opens {
			require.Zero(t, after[id].state)
			after[id].state = StateAll
		}
		for _, e := range s.closes {
			require.Greater(t, e.State, after[e.ID].state)
			after[e.ID].state = e.State
		}
		if s.to != nil {
			require.NoError(t, d.mayBecome(s.to))
			to = s.to
		}
		for i, e := range to.Subqueues {
			require.GreaterOrEqual(t, e.State, d.Subqueues[i].State, "more closed")
			require.GreaterOrEqual(t, after[i].state, heads[i].state, "more closed")
		}
		again := settle(to, after)
		if len(s.opens) == 0 {
			require.False(t, again.any())
		}
		require.Empty(t, again.opens)
	})
}

// The subqueues whose commands are counted are bounded; rates are per second, refusals per window, however long it took.
func TestLoads(t *testing.T) {
	t.Parallel()
	var l loads
	for i := range 2 * loadsMax {
		l.add(Subqueue{ID: SubqueueID(i)}, false)
	}
	for range 39 {
		l.add(Subqueue{ID: 7}, true)
	}
	l.add(Subqueue{ID: 2 * loadsMax}, false)
	got := l.take(10*time.Second, 20*time.Second)
	require.Len(t, got, loadsMax)
	require.Equal(t, load{rate: 2, throttled: 19.5}, got[Subqueue{ID: 7}])
	require.Empty(t, l.take(time.Second, time.Second))
}
