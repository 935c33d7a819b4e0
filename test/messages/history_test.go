package messages

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A short story of one message, of which each row changes something.
type story struct {
	h    History
	key  string
	text string
	at   time.Time
}

func newStory() *story {
	s := &story{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), h: History{Padding: 100}}
	s.key, s.text = s.h.begin(1, s.at)
	return s
}

func (s *story) after(seconds int) time.Time { return s.at.Add(time.Duration(seconds) * time.Second) }

// get has it got at a time, for 10 s.
func (s *story) get(at, count int) *hold {
	return s.h.got("id", s.text, hold{count: count, sent: s.after(at), ended: s.after(at + 1), until: s.after(at + 10)})
}

func (s *story) put(f fate) { s.h.putEnded(s.key, f, "id", s.after(1)) }

func (s *story) deleted(f fate, at int) {
	s.h.deleteBegins(s.text)
	s.h.deleteEnded(s.text, f, s.after(at-1), s.after(at))
}

// A history is found good exactly where some outcome of what has no answer explains it.
func TestCheck(t *testing.T) {
	for name, row := range map[string]struct {
		play func(s *story)
		want error
	}{
		"put, got, deleted":             {func(s *story) { s.put(acked); s.get(2, 1); s.deleted(acked, 4) }, nil},
		"put, left":                     {func(s *story) { s.put(acked); s.h.leaves(s.text); s.h.counts(1) }, nil},
		"put, gone":                     {func(s *story) { s.put(acked) }, ErrLost},
		"put, got, gone":                {func(s *story) { s.put(acked); s.get(2, 1) }, ErrLost},
		"put, perhaps deleted":          {func(s *story) { s.put(acked); s.get(2, 1); s.deleted(unknown, 4) }, nil},
		"perhaps put, gone":             {func(s *story) { s.put(unknown) }, nil},
		"put under another id":          {func(s *story) { s.h.putEnded(s.key, acked, "other", s.after(1)); s.get(2, 1); s.deleted(acked, 4) }, ErrTwice},
		"refused, got":                  {func(s *story) { s.put(refused); s.get(2, 1) }, ErrInvented},
		"another text":                  {func(s *story) { s.put(unknown); s.text += "x"; s.get(2, 1) }, ErrInvented},
		"unknown message":               {func(s *story) { s.put(unknown); s.text = "m000007-1"; s.get(2, 1) }, ErrInvented},
		"got again when it was visible": {func(s *story) { s.put(acked); s.get(2, 1); s.get(11, 2); s.deleted(acked, 14) }, nil},
		"got again while hidden":        {func(s *story) { s.put(acked); s.get(2, 1); s.get(5, 2); s.deleted(acked, 14) }, ErrHidden},
		"got again while hidden, by a stepped clock": {func(s *story) {
			s.h.Stepped = true
			s.put(acked)
			s.get(2, 1)
			s.get(5, 2)
			s.deleted(acked, 14)
		}, nil},
		"got twice as the first": {func(s *story) { s.put(acked); s.get(2, 1); s.get(20, 1); s.deleted(acked, 24) }, ErrHidden},
		"hidden longer, and got": {func(s *story) {
			s.put(acked)
			s.h.hidden(s.get(2, 1), acked, s.after(20))
			s.get(15, 2)
			s.deleted(acked, 24)
		}, ErrHidden},
		"perhaps hidden longer, and got": {func(s *story) {
			s.put(acked)
			s.h.hidden(s.get(2, 1), unknown, s.after(20))
			s.get(15, 2)
			s.deleted(acked, 24)
		}, nil},
		"got after its deletion":  {func(s *story) { s.put(acked); s.get(2, 1); s.deleted(acked, 4); s.get(14, 2) }, ErrDeleted},
		"left after its deletion": {func(s *story) { s.put(acked); s.get(2, 1); s.deleted(acked, 4); s.h.leaves(s.text); s.h.counts(1) }, ErrDeleted},
		"an old receipt works":    {func(s *story) { s.put(acked); s.get(2, 1); s.h.stale(s.key, acked); s.deleted(acked, 4) }, ErrReceipt},
		"a count too many":        {func(s *story) { s.put(acked); s.get(2, 1); s.deleted(acked, 4); s.h.counts(1) }, ErrCount},
		"a count too few":         {func(s *story) { s.put(acked); s.h.leaves(s.text) }, ErrCount},
		"after a promotion: hidden": {func(s *story) {
			s.put(acked)
			s.get(2, 1)
			s.h.Promoted(s.after(4), s.after(5))
			s.get(6, 1)
			s.deleted(acked, 8)
		}, nil},
		"after a promotion: deleted": {func(s *story) {
			s.put(acked)
			s.get(2, 1)
			s.deleted(acked, 4)
			s.h.Promoted(s.after(5), s.after(6))
			s.get(5, 1)
			s.deleted(acked, 8)
		}, nil},
	} {
		s := newStory()
		row.play(s)
		err := s.h.Check(s.after(100))
		if row.want == nil {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, row.want, name)
		}
	}
}

// What was put or deleted after what had arrived when the account was promoted may be undone, and nothing before.
func TestCheckIsSafeUpToATime(t *testing.T) {
	s := newStory()
	s.put(acked)
	s.h.Promoted(s.after(8), s.after(10))
	require.NoError(t, s.h.Check(s.after(0)))
	require.ErrorIs(t, s.h.Check(s.after(1)), ErrLost)
	s.h.leaves(s.text)
	s.h.counts(1)
	s.deleted(acked, 4)
	require.NoError(t, s.h.Check(s.after(3)))
	require.ErrorIs(t, s.h.Check(s.after(4)), ErrDeleted)
	s.deleted(acked, 14)
	require.ErrorIs(t, s.h.Check(s.after(0)), ErrDeleted, "it was sent since")
}
