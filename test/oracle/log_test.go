package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// grown is a log with three records of 10 bytes that were acknowledged at times 10, 20 and 30, the third at its position, one
// that was refused and one whose answer was lost.
func grown(t *testing.T) *Log {
	t.Helper()
	l := &Log{}
	for i := range int64(3) {
		position := int64(AnyPosition)
		if i == 2 {
			position = 20
		}
		n := l.Begin(10, position)
		require.NoError(t, l.Acked(n, 10*i, int(i)+1, tag(n), geo.Timestamp(10*(i+1))))
	}
	l.Refused(l.Begin(10, 20))
	l.Lost(l.Begin(10, AnyPosition))
	return l
}

// records are those numbers, one after the other.
func records(numbers ...Version) (all []Record) {
	for i, n := range numbers {
		all = append(all, Record{Number: n, Offset: 10 * int64(i)})
	}
	return all
}

// A read of a log is good exactly if acknowledged appends and some outcome of the others explain it.
func TestLogReads(t *testing.T) {
	for name, tt := range map[string]struct {
		found []Record
		want  error
	}{
		"all that was acknowledged":       {records(1, 2, 3), nil},
		"and the one without an answer":   {records(1, 2, 3, 5), nil},
		"the last is lost":                {records(1, 2), ErrLost},
		"nothing":                         {nil, ErrLost},
		"in another order":                {records(2, 1, 3), ErrMoved},
		"one is left out":                 {records(1, 3), ErrMoved},
		"something in between":            {records(1, 2, 5, 3), ErrMoved},
		"one twice":                       {records(1, 2, 3, 3), ErrTwice},
		"the one without an answer twice": {records(1, 2, 3, 5, 5), ErrTwice},
		"what was refused":                {records(1, 2, 3, 4), ErrInvented},
		"what was never sent":             {records(1, 2, 3, 9), ErrInvented},
	} {
		t.Run(name, func(t *testing.T) {
			l := grown(t)
			err := l.AtPrimary(tt.found, l.Floor())
			if tt.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, tt.want)
			l = grown(t)
			require.ErrorIs(t, l.Resolve(tt.found), tt.want)
		})
	}
}

// What a read has shown stays: a later one is no shorter, and at the secondary nothing else comes in its place.
func TestLogGrows(t *testing.T) {
	l := grown(t)
	before := l.Floor()
	require.NoError(t, l.AtPrimary(records(1, 2, 3, 5), before))
	require.NoError(t, l.AtPrimary(records(1, 2, 3), before), "it began before the longer one ended")
	require.ErrorIs(t, l.AtPrimary(records(1, 2, 3), l.Floor()), ErrLost)

	l.Lost(l.Begin(10, AnyPosition))
	require.ErrorIs(t, l.AtSecondary(records(1, 2, 3, 6), 0), ErrMoved, "the primary has shown 5 there")
	require.NoError(t, l.AtSecondary(records(1, 2), 0))
	require.NoError(t, l.AtSecondary(nil, l.FloorAt(9)))
	require.NoError(t, l.AtSecondary(records(1, 2), l.FloorAt(29)))
	require.ErrorIs(t, l.AtSecondary(records(1), l.FloorAt(20)), ErrBehind)
}

// After Resolve the log is what it was then, at the secondary too.
func TestLogFinal(t *testing.T) {
	l := grown(t)
	require.NoError(t, l.Resolve(records(1, 2, 3)))
	require.NoError(t, l.Final(records(1, 2, 3), tag(3)))
	require.ErrorIs(t, l.Final(records(1, 2, 3), "other"), ErrTag)
	require.ErrorIs(t, l.Final(records(1, 2), tag(2)), ErrBehind)
	require.ErrorIs(t, l.Final(records(1, 2, 3, 5), tag(3)), ErrInvented, "it was not there any more")
}

// An answer that no log can have given is found before any read.
func TestLogAnswers(t *testing.T) {
	l := grown(t)
	require.ErrorIs(t, l.Acked(l.Begin(10, AnyPosition), 25, 4, "", 40), ErrMoved, "the third is there")
	require.ErrorIs(t, l.Acked(l.Begin(10, 30), 40, 4, "", 40), ErrMoved, "it was to begin at 30")

	l = grown(t)
	n := l.Begin(10, 40)
	require.NoError(t, l.Acked(n, 40, 4, "", 40))
	require.ErrorIs(t, l.AtPrimary(records(1, 2, 3, 5, n), l.Floor()), ErrMoved, "it is the fifth, answered was the fourth")
}
