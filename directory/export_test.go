package directory

import "time"

// ReservationLife is how long reservations hold.
const ReservationLife = reservationLife

// SetLife sets how long reservations hold at a location.
func (d *Directory) SetLife(life time.Duration) { d.life = life }
