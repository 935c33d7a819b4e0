package change

import (
	"encoding/binary"
	"slices"

	"antipode/geo"
)

// Answers says which changes of a range were surely answered to clients, as the headers of its groups say (R22): the
// header of a group names the last index that its leader had answered in its term. A leader that died may have
// answered more than its groups say. So a change that was not surely answered may still have been answered.
type Answers struct {
	// Term is that of the last group, and After the last commit time before the first one of it.
	Term  uint64
	After geo.Timestamp
	// Pending are groups of the term that are not known to be answered, with their last commit times, in order.
	Pending []AnswerPending
	// Spans are the commit times of what was answered, in order.
	Spans []AnswerSpan
}

// AnswerPending is a group whose answers are not known to have been given.
type AnswerPending struct {
	Index uint64
	Last  geo.Timestamp
}

// AnswerSpan are commit times above After, up to Last: all changes with one of them were answered.
type AnswerSpan struct{ After, Last geo.Timestamp }

// Bounds of Answers. What they leave out counts as not surely answered.
const (
	answersPendingMax = 64
	answersSpansMax   = 64
)

// Add takes in a group that was applied at an index, under a term, whose header says answered. before and last are the
// last commit times of the range before and after it; shipped: it has numbered changes.
func (a *Answers) Add(index, term, answered uint64, before, last geo.Timestamp, shipped bool) {
	if a.Term != term {
		a.Term, a.After, a.Pending = term, before, nil
	}
	n := 0
	for n < len(a.Pending) && a.Pending[n].Index <= answered {
		n++
	}
	if n > 0 {
		a.answered(AnswerSpan{a.After, a.Pending[n-1].Last})
		a.Pending = slices.Delete(a.Pending, 0, n)
	}
	if shipped && len(a.Pending) < answersPendingMax {
		a.Pending = append(a.Pending, AnswerPending{index, last})
	}
}

func (a *Answers) answered(s AnswerSpan) {
	if n := len(a.Spans); n > 0 && a.Spans[n-1].After == s.After {
		a.Spans[n-1] = s
		return
	}
	if len(a.Spans) == answersSpansMax {
		a.Spans = slices.Delete(a.Spans, 0, 1)
	}
	a.Spans = append(a.Spans, s)
}

// Surely reports whether the change with a commit time was surely answered.
func (a *Answers) Surely(t geo.Timestamp) bool {
	return slices.ContainsFunc(a.Spans, func(s AnswerSpan) bool { return s.After < t && t <= s.Last })
}

// Clone returns a copy.
func (a *Answers) Clone() Answers {
	return Answers{Term: a.Term, After: a.After, Pending: slices.Clone(a.Pending), Spans: slices.Clone(a.Spans)}
}

// AppendAnswers appends the encoded answers: the value that a range keeps.
func AppendAnswers(dst []byte, a *Answers) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, formatVersion), a.Term)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(a.After))
	dst = append(dst, byte(len(a.Pending)), byte(len(a.Spans)))
	for _, p := range a.Pending {
		dst = binary.LittleEndian.AppendUint64(dst, p.Index)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(p.Last))
	}
	for _, s := range a.Spans {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(s.After))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Last))
	}
	return dst
}

// ParseAnswers decodes answers that fill b.
func ParseAnswers(b []byte) (a Answers, err error) {
	rd := reader{b: b}
	rd.version()
	a.Term, a.After = rd.uint64(), geo.Timestamp(rd.uint64())
	pending, spans := rd.byte(), rd.byte()
	if rd.failed = rd.failed || pending > answersPendingMax || spans > answersSpansMax; rd.failed {
		return Answers{}, rd.end()
	}
	for range pending {
		a.Pending = append(a.Pending, AnswerPending{rd.uint64(), geo.Timestamp(rd.uint64())})
	}
	for range spans {
		a.Spans = append(a.Spans, AnswerSpan{geo.Timestamp(rd.uint64()), geo.Timestamp(rd.uint64())})
	}
	if err := rd.end(); err != nil {
		return Answers{}, err
	}
	return a, nil
}
