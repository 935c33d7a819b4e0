package snapshot

import "antipode/geo"

// Reservation keeps incoming snapshots of a range away, so that the owner can work on the folder of its staged files and
// replace its state. Its methods are called from the scheduler.
type Reservation struct {
	m  *Manager
	id geo.RangeID
	// busy: what Apart began has not ended.
	busy bool
}

// Reserve refuses incoming snapshots of a range until Free. It returns nil while one is being received, or the range is
// reserved.
func (m *Manager) Reserve(id geo.RangeID) *Reservation {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.incoming[id]; taken {
		return nil
	}
	m.incoming[id] = nil
	return &Reservation{m: m, id: id}
}

// Free ends the reservation, unless Apart goes on: then it ends with that.
func (v *Reservation) Free() {
	if v.busy {
		return
	}
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	delete(v.m.incoming, v.id)
}

// Apart runs f, which may take long, apart from the scheduler, and then done on the scheduler with the error of f. The
// range is reserved until then. An error of done takes the node out of service.
func (v *Reservation) Apart(f func() error, done func(error) error) {
	v.busy = true
	v.m.start(func() {
		failure := f()
		v.m.o.Node.Later(func() error {
			err := done(failure)
			v.busy = false
			v.Free()
			return err
		})
	})
}
