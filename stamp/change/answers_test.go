package change

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// R22: a change was surely answered if a later group of the same term says so; one of a leader that died before it said so
// was perhaps answered, whatever a later leader answers.
//
// Capability: Failover: The lost-change report (R22).
func TestR22Answers(t *testing.T) {
	var a Answers
	surely := func(want ...geo.Timestamp) {
		t.Helper()
		var got []geo.Timestamp
		for _, at := range []geo.Timestamp{10, 20, 30, 40, 50, 60} {
			if a.Surely(at) {
				got = append(got, at)
			}
		}
		require.Equal(t, want, got)
		b := AppendAnswers(nil, &a)
		again, err := ParseAnswers(b)
		require.NoError(t, err)
		require.Equal(t, b, AppendAnswers(nil, &again))
		a = again
	}
	a.Add(7, 1, 0, 5, 10, true)
	a.Add(8, 1, 0, 10, 20, true)
	surely()
	a.Add(9, 1, 7, 20, 30, true)
	surely(10)
	a.Add(10, 1, 8, 30, 35, false)
	surely(10, 20)
	a.Add(12, 2, 0, 35, 40, true) // 30 was not known to be answered when the leader changed.
	a.Add(13, 2, 12, 40, 50, true)
	surely(10, 20, 40)
	a.Add(14, 2, 13, 50, 60, true)
	surely(10, 20, 40, 50)
}

// Answers are bounded; what does not fit is perhaps answered.
//
// Capability: Failover: The lost-change report (R22).
func TestR22AnswersAreBounded(t *testing.T) {
	var a Answers
	for i := range uint64(1000) {
		at := geo.Timestamp(10 * (i + 1))
		a.Add(i+1, 1, 0, at-10, at, true)
	}
	a.Add(2000, 1, 1999, 10_000, 10_010, false)
	require.True(t, a.Surely(10*answersPendingMax))
	require.False(t, a.Surely(10*answersPendingMax+10))
	for term := range uint64(1000) {
		at := geo.Timestamp(20_000 + 100*term)
		a.Add(3000+2*term, 2+term, 0, at-100, at, true)
		a.Add(3001+2*term, 2+term, 3000+2*term, at, at+10, false)
	}
	require.Len(t, a.Spans, answersSpansMax)
	b := AppendAnswers(nil, &a)
	got, err := ParseAnswers(b)
	require.NoError(t, err)
	require.Equal(t, a.Spans, got.Spans)
	for n := range b {
		_, err := ParseAnswers(b[:n])
		require.ErrorIs(t, err, ErrMalformed)
	}
}
