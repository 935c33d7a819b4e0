package directory

import (
	"context"
	"errors"
	"time"

	"antipode/failover/unplanned"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/route"
)

// ReservationLife is how long reservations hold.
const ReservationLife = reservationLife

// SetLife sets how long reservations hold at a location.
func (d *Directory) SetLife(life time.Duration) { d.life = life }

// NeverWait has calls end where they would wait for the other location.
func (d *Directory) NeverWait() {
	d.wait = func(context.Context, time.Duration) error { return errors.New("it does not wait") }
	d.mover.SetTime(d.wait, d.within)
}

// MoveWave is how many accounts have a planned failover at once.
const MoveWave = moveWave

// CheckMax is how many accounts a command of the check of a location looks at.
const CheckMax = checkMax

// PartsOf are the services of which a copy has a part only: see partsOf.
func PartsOf(a *catalog.Account, forks []catalog.Fork) (out []geo.Service) {
	for _, p := range unplanned.PartsOf(a, route.First(), forks) {
		out = append(out, p.Service)
	}
	return out
}
