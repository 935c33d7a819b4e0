package scrub

import "time"

// A round of the collection begins soon after something may have been unnamed, and again until two whole rounds saw no
// more of that: the second of them drops it. Most of the time there is nothing to find, and no round.
// Each reads all rows that may name chunks, so that the pause between two grows with what there is to read: at
// collectPause times as long as a round takes, rounds take at most a fifth of the time. A full round begins every
// Options.Grace in any case. It is the safety net for what no count shows, as the chunks of failed uploads.
//
// Chunks that were overwritten in the last minutes before a start look like such chunks. They also look like chunks
// that the other location has sent and that are not applied yet. Nothing may be left of the source, so it stays a
// Grace after the start, too.
const (
	// collectSoon lies at least between the beginnings of two rounds: long enough that the peers, each with its rounds,
	// have flushed what lets the logs be trimmed. With a short Grace, as tests have, it is an eighth of that.
	collectSoon  = 30 * time.Second
	collectPause = 4
	// collectPolls is how often is looked, within that time, whether anything was unnamed.
	collectPolls = 3
	quietRounds  = 2
)

// soon is the least time between the beginnings of two rounds.
func (s *Scrubber) soon() time.Duration { return s.rest(min(collectSoon, s.o.Grace/8)) }

// rounds says when the next round begins.
type rounds struct {
	// began is when the last round began, next when the next one may, and full when the next full one is due.
	began, next, full time.Duration
	// unnamings is what was counted when the last round began, and quiet how many whole rounds have begun since
	// that last changed, the one included that saw the change.
	unnamings uint64
	quiet     int
}

// untilRound returns how long it is until the next round may be due, zero or less if one is.
func (s *Scrubber) untilRound() time.Duration {
	r, now := &s.rounds, s.o.Clock.Mono()
	untilFull := r.full - now
	if r.quiet >= quietRounds && s.unnamings() == r.unnamings {
		return min(untilFull, s.soon()/collectPolls)
	}
	return min(untilFull, r.next-now)
}

// unnamings counts what may have left chunks that nothing names and nobody reads.
func (s *Scrubber) unnamings() uint64 { return s.o.Node.Unnamings() + s.o.Chunks.Stats().Releases }

// roundBegins records that a round begins, and reports whether it is a full one.
func (s *Scrubber) roundBegins() (full bool) {
	r := &s.rounds
	r.began = s.o.Clock.Mono()
	if u := s.unnamings(); u != r.unnamings {
		r.unnamings, r.quiet = u, 0
	}
	if full = r.began >= r.full; full {
		r.full = r.began + s.o.Grace
	}
	return full
}

// roundFails records that the names were not complete, or could not be read: what was found counts for nothing.
func (s *Scrubber) roundFails() {
	s.collect.active = false
	s.rounds.quiet = 0
}

// roundEnds records that a whole round ended.
func (s *Scrubber) roundEnds() {
	r := &s.rounds
	r.quiet++
	took := s.o.Clock.Mono() - r.began
	r.next = r.began + min(max(s.soon(), s.rest((1+collectPause)*took)), s.o.Grace)
}
