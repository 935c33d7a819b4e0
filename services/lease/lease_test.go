package lease

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/services/storageerr"
)

var (
	idA, _ = ParseID("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa")
	idB, _ = ParseID("bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb")
	idC, _ = ParseID("cccccccc-cccc-cccc-cccc-cccccccccccc")
)

// start is when the lease A of the tests was taken, and now when something is done to it.
var (
	start = geo.TimestampOf(time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC))
	now   = after(start, 20)
)

// inState is a lease A that is in a state now.
func inState(t *testing.T, s State) (l Lease) {
	t.Helper()
	do := func(r Request) {
		var err error
		l, err = l.Do(r, start)
		require.NoError(t, err)
	}
	second := uint32(1)
	switch s {
	case Available:
	case Leased:
		do(Request{Action: Acquire, ID: idA, Seconds: 60})
	case Expired:
		do(Request{Action: Acquire, ID: idA, Seconds: 15})
	case Breaking:
		do(Request{Action: Acquire, ID: idA, Seconds: 60})
		do(Request{Action: Break})
	case Broken:
		do(Request{Action: Acquire, ID: idA, Seconds: 60})
		do(Request{Action: Break, Period: &second})
	}
	require.Equal(t, s, l.State(now))
	return l
}

// Each cell of the table of protocol/blob.md 17.3: the new state and the ID, or the code of the error, under which nothing
// changes. The columns are Available, Leased, Breaking, Broken, Expired.
func TestActions(t *testing.T) {
	zero, five, long := uint32(0), uint32(5), uint32(60)
	const (
		mismatch = "LeaseIdMismatchWithLeaseOperation"
		none     = "LeaseNotPresentWithLeaseOperation"
		present  = "LeaseAlreadyPresent"
		acquired = "LeaseIsBreakingAndCannotBeAcquired"
		changed  = "LeaseIsBreakingAndCannotBeChanged"
		renewed  = "LeaseIsBrokenAndCannotBeRenewed"
	)
	columns := [...]State{Available, Leased, Breaking, Broken, Expired}
	for name, c := range map[string]struct {
		r    Request
		want [5]string
	}{
		"acquire A":       {Request{Action: Acquire, ID: idA, Seconds: long}, [5]string{"leased A", "leased A", acquired, "leased A", "leased A"}},
		"acquire B":       {Request{Action: Acquire, ID: idB, Seconds: long}, [5]string{"leased B", present, present, "leased B", "leased B"}},
		"acquire B, ever": {Request{Action: Acquire, ID: idB}, [5]string{"leased B", present, present, "leased B", "leased B"}},
		"renew A":         {Request{Action: Renew, ID: idA}, [5]string{mismatch, "leased A", renewed, renewed, "leased A"}},
		"renew B":         {Request{Action: Renew, ID: idB}, [5]string{mismatch, mismatch, mismatch, mismatch, mismatch}},
		"change A to B":   {Request{Action: Change, ID: idA, Proposed: idB}, [5]string{none, "leased B", changed, none, none}},
		"change B to A":   {Request{Action: Change, ID: idB, Proposed: idA}, [5]string{none, "leased A", changed, none, none}},
		"change B to C":   {Request{Action: Change, ID: idB, Proposed: idC}, [5]string{none, mismatch, mismatch, none, none}},
		"release A":       {Request{Action: Release, ID: idA}, [5]string{mismatch, "available", "available", "available", "available"}},
		"release B":       {Request{Action: Release, ID: idB}, [5]string{mismatch, mismatch, mismatch, mismatch, mismatch}},
		"break at once":   {Request{Action: Break, Period: &zero}, [5]string{none, "broken A", "broken A", "broken A", "broken A"}},
		"break in 5 s":    {Request{Action: Break, Period: &five}, [5]string{none, "breaking A 5", "breaking A 5", "broken A", "broken A"}},
		"break in 60 s":   {Request{Action: Break, Period: &long}, [5]string{none, "breaking A 40", "breaking A 40", "broken A", "broken A"}},
		"break":           {Request{Action: Break}, [5]string{none, "breaking A 40", "breaking A 40", "broken A", "broken A"}},
	} {
		for i, s := range columns {
			l := inState(t, s)
			got, err := l.Do(c.r, now)
			require.Equal(t, c.want[i], shown(got, err), "%s: %s", s, name)
			if err != nil {
				require.Equal(t, l, got, "%s: %s", s, name)
			}
		}
	}
}

// shown is a lease or an error as the tables of the tests have them.
func shown(l Lease, err error) string {
	if row, is := err.(storageerr.Row); is { //nolint:errorlint // It is a row itself.
		return row.Code
	}
	out := l.State(now).String()
	if l.Kind != KindNone {
		out += " " + strings.ToUpper(l.ID.String()[:1])
	}
	if left := l.Left(now); left > 0 {
		out += " " + strconv.Itoa(left)
	}
	return out
}

// What time does (the last row of 17.3): a lease without end has none, and the clock starts again with Renew and Acquire, and
// not with Change.
func TestTime(t *testing.T) {
	later := func(s uint32) geo.Timestamp { return after(start, s) }
	do := func(l Lease, r Request, at geo.Timestamp) Lease {
		l, err := l.Do(r, at)
		require.NoError(t, err)
		return l
	}
	ever := do(Lease{}, Request{Action: Acquire, ID: idA}, start)
	require.Equal(t, Leased, ever.State(later(1<<30)))
	require.Equal(t, Broken, do(ever, Request{Action: Break}, start).State(start), "without a period it has no rest")
	ten := uint32(10)
	breaking := do(ever, Request{Action: Break, Period: &ten}, start)
	require.Equal(t, 10, breaking.Left(start))
	require.Equal(t, 10, breaking.Left(start+1), "rounded up")
	require.Equal(t, Breaking, breaking.State(later(10)-1))
	require.Equal(t, Broken, breaking.State(later(10)))
	require.Zero(t, breaking.Left(later(10)))

	fixed := do(Lease{}, Request{Action: Acquire, ID: idA, Seconds: 15}, start)
	require.Equal(t, Leased, fixed.State(later(15)-1))
	require.Equal(t, Expired, fixed.State(later(15)))
	require.Equal(t, Leased, do(fixed, Request{Action: Renew, ID: idA}, later(10)).State(later(24)))
	require.Equal(t, Leased, do(fixed, Request{Action: Acquire, ID: idA, Seconds: 60}, later(10)).State(later(69)))
	require.Equal(t, Expired, do(fixed, Request{Action: Change, ID: idA, Proposed: idB}, later(10)).State(later(15)))
	require.Equal(t, Broken, do(fixed, Request{Action: Break}, later(10)).State(later(15)))
	require.Equal(t, Available, do(fixed, Request{Action: Release, ID: idA}, later(16)).State(later(16)))
}

// Each cell of the table of protocol/blob.md 17.4, and what a write leaves.
func TestUse(t *testing.T) {
	errs := OfBlob()
	const (
		none     = "LeaseNotPresentWithBlobOperation"
		mismatch = "LeaseIdMismatchWithBlobOperation"
		missing  = "LeaseIdMissing"
		lost     = "LeaseLost"
	)
	columns := [...]State{Available, Leased, Breaking, Broken, Expired}
	for name, c := range map[string]struct {
		id     *ID
		needed bool
		want   [5]string
	}{
		"write with A": {&idA, true, [5]string{none, "leased", "breaking", none, lost}},
		"write with B": {&idB, true, [5]string{none, mismatch, mismatch, none, none}},
		"write, no id": {nil, true, [5]string{"available", missing, missing, "available", "available"}},
		"read with A":  {&idA, false, [5]string{none, "leased", "breaking", none, lost}},
		"read with B":  {&idB, false, [5]string{none, mismatch, mismatch, none, none}},
		"read, no id":  {nil, false, [5]string{"available", "leased", "breaking", "available", "available"}},
	} {
		for i, s := range columns {
			l := inState(t, s)
			got := l.Written(now).State(now).String()
			if err := l.Check(c.id, c.needed, now, errs); err != nil {
				got = shown(Lease{}, err)
			}
			require.Equal(t, c.want[i], got, "%s: %s", s, name)
		}
	}
}

// No two holders: whatever was done before, while a lease is locked nobody takes it with another ID, and until then each ID
// that passes is that of the last success.
func TestOneHolder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Lease
		at := start
		ids := rapid.SampledFrom([]ID{idA, idB, idC, {}})
		errs := OfBlob()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			at += geo.Timestamp(rapid.Uint64Range(0, 30*geo.TicksPerSecond).Draw(t, "ticks"))
			r := Request{
				Action: rapid.SampledFrom([]Action{Acquire, Renew, Change, Release, Break}).Draw(t, "action"),
				ID:     ids.Draw(t, "id"), Proposed: ids.Draw(t, "proposed"),
				Seconds: rapid.SampledFrom([]uint32{0, 15, 60}).Draw(t, "duration"),
			}
			if rapid.Bool().Draw(t, "period") {
				r.Period = new(rapid.Uint32Range(0, 60).Draw(t, "seconds"))
			}
			next, err := l.Do(r, at)
			locked := l.State(at).Locked()
			switch {
			case err != nil && next != l:
				t.Fatalf("an error changed %v to %v", l, next)
			case err == nil && locked && r.Action != Break && r.ID != l.ID && (r.Action != Change || r.Proposed != l.ID):
				t.Fatalf("%v was changed by %v", l, r)
			case err == nil && l.State(at) == Breaking && r.Action == Break && next.Until > l.Until:
				t.Fatalf("a second break made %v longer: %v", l, next)
			}
			l = next
			for _, id := range []ID{idA, idB, idC, {}} {
				if err := l.Check(&id, true, at, errs); err == nil && (id != l.ID || !l.State(at).Locked()) {
					t.Fatalf("%v passes at %v", id, l)
				}
			}
		}
	})
}

// The forms of a GUID, and what is none.
func TestParseID(t *testing.T) {
	const text = "01234567-89ab-cdef-0123-456789abcdef"
	for _, form := range []string{
		text, strings.ToUpper(text), strings.ReplaceAll(text, "-", ""), "{" + text + "}", "(" + text + ")", "[" + text + "]",
	} {
		id, ok := ParseID(form)
		require.True(t, ok, form)
		require.Equal(t, text, id.String())
	}
	for _, form := range []string{
		"", "k", "{" + text, "{" + text + ")", "{" + strings.ReplaceAll(text, "-", "") + "}", text + "0", text[1:], "g" + text[1:],
		strings.ReplaceAll(text, "-", "")[1:], strings.ReplaceAll(text, "-", "+"),
	} {
		_, ok := ParseID(form)
		require.False(t, ok, form)
	}
}
