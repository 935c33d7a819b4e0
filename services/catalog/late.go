package catalog

import "fmt"

// WhenLate is what the primary of an account does with its writes while changes of it have not reached the secondary
// within the RPO target. It is in catalog rows: never rename a value.
type WhenLate string

// The policies.
const (
	// LateAlert lets writes go on: an event reports the changes, as with the others.
	LateAlert WhenLate = ""
	// LateSlow delays each write, longer the older the oldest change is.
	LateSlow WhenLate = "slow"
	// LateRefuse refuses writes until the changes have arrived.
	LateRefuse WhenLate = "refuse"
)

// String is the name for people and documents.
func (w WhenLate) String() string {
	if w == LateAlert {
		return "alert"
	}
	return string(w)
}

// ParseWhenLate parses a policy by its name.
func ParseWhenLate(s string) (WhenLate, error) {
	for _, w := range []WhenLate{LateAlert, LateSlow, LateRefuse} {
		if s == w.String() {
			return w, nil
		}
	}
	return "", fmt.Errorf("%q is no policy for late changes: alert, slow or refuse", s)
}
