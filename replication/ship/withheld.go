package ship

import (
	"time"

	"antipode/geo"
)

// Records that the other location cannot take would cross the link for nothing. It may have no gate yet for their
// epoch, since it is the account's former primary and has not followed. Or their account has become its own meanwhile
// (R22). Such records stay in the outbox. Their streams are held back as for payload: what waits is named in closed
// records, and is sent, late, once the other location can take it.

// withheldEvery is how often it is looked whether a stream that is withheld may go on.
const withheldEvery = 20 * time.Millisecond

func (s *Shipper) withheld(st geo.Stream) bool { return s.o.Withheld != nil && s.o.Withheld(st) }

// withhold parks a held stream.
func (s *Shipper) withhold(h *hold) {
	s.mu.Lock()
	h.next = h.sent + 1
	s.mu.Unlock()
	s.holds.withheld = append(s.holds.withheld, h)
}

// endWithheld lets the streams go on that are withheld no longer.
func (s *Shipper) endWithheld(now time.Duration) {
	if len(s.holds.withheld) == 0 || now < s.holds.lookAt {
		return
	}
	s.holds.lookAt = now + withheldEvery
	parked := s.holds.withheld
	s.holds.withheld = nil
	for _, h := range parked {
		s.enlist(h)
	}
	s.startPushes()
}

// Rebuild has the next step drop the frames that are built, and read what they hold from the outbox again, as a new
// leader of the range does: some of it may be withheld since. It may be called concurrently with Step.
func (s *Shipper) Rebuild() {
	s.mu.Lock()
	s.rebuild = true
	s.mu.Unlock()
	s.Wake()
}

// rebuilds reports whether Rebuild was called since the last step.
func (s *Shipper) rebuilds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.rebuild
	s.rebuild = false
	return was
}
