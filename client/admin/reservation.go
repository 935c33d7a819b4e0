package admin

import (
	"context"

	"antipode/geo"
)

// Kinds of a Reservation.
const (
	// KindCreation is the record at the location that becomes the primary.
	KindCreation = "creation"
	// KindReservation is the record at the other location.
	KindReservation = "reservation"
)

// Reservation is what a location holds of an account whose creation has not ended. It keeps the
// name from other creations.
type Reservation struct {
	Name geo.Account `json:"name"`
	// Location holds the record.
	Location geo.Location `json:"location"`
	// Kind is KindCreation or KindReservation.
	Kind string `json:"kind"`
	// Primary is the location that creates the account.
	Primary geo.Location `json:"primary"`
	Epoch   Epoch        `json:"epoch"`
	// Created is when the creation began, by the clock of Primary; with Epoch it names the creation.
	Created Time `json:"created"`
	// Since is when Location wrote the record first; AgeSeconds is how long ago that is.
	Since      Time    `json:"since"`
	AgeSeconds float64 `json:"age_seconds"`
	// Waits says what the creation waits for, as seen from this record.
	Waits string `json:"waits"`
}

// Reservations is the answer of GET /v1/reservations and of POST /v1/reservations/{name}/free.
type Reservations struct {
	// Reservations are those that are there, or those that were freed.
	Reservations []Reservation `json:"reservations"`
	// SilentLocations did not answer: what they hold is not listed, and was not freed.
	SilentLocations []geo.Location `json:"silent_locations"`
}

// Reservations lists the accounts whose creation has not ended.
func (c *Client) Reservations(ctx context.Context) (Reservations, error) {
	return CallReservations.Do(ctx, c, At{}, None{})
}

// FreeReservation gives up the creation of an account that has not ended, and returns what was
// freed.
func (c *Client) FreeReservation(ctx context.Context, name geo.Account) (Reservations, error) {
	return CallFreeReservation.Do(ctx, c, At{Account: name}, None{})
}
