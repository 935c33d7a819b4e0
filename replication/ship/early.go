package ship

import "antipode/geo"

// early are the streams that a backlog named ahead of time: their records are not sent, and when they were
// committed is not known. A receiver has to see them named in whichever closed record it takes whose
// time passes such a record; which one that is follows from what it took of another leader, and from what the bus
// loses. So each frame names them until the backlog is at its end, which is behind them all. Those that the
// receiver has acknowledged need no such thing.
type early map[geo.Stream]struct{}

func (e early) add(st geo.Stream) { e[st] = struct{}{} }

// nameEarly names again what was named ahead of time, in the closed record that the next frame gets. It
// returns false where the heads are too many for a frame: the closed record then has to promise nothing, and the one at
// the end of the backlog is full.
func (s *Shipper) nameEarly() bool {
	few := len(s.early)*headBytes <= s.o.FrameBytesMax/2
	if few {
		for st := range s.early {
			s.changed[st] = struct{}{}
		}
	}
	if s.lost || s.backlog != nil {
		return few
	}
	s.fullNext = s.fullNext || !few
	clear(s.early)
	return true
}
