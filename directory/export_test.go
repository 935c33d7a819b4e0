package directory

import (
	"context"
	"errors"
	"time"
)

// ReservationLife is how long reservations hold.
const ReservationLife = reservationLife

// SetLife sets how long reservations hold at a location.
func (d *Directory) SetLife(life time.Duration) { d.life = life }

// NeverWait has calls end where they would wait for the other location.
func (d *Directory) NeverWait() {
	d.wait = func(context.Context, time.Duration) error { return errors.New("it does not wait") }
}

// MoveWave is how many accounts have a planned failover at once.
const MoveWave = moveWave
