package directory

import (
	"errors"
	"fmt"
	"time"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// errReplaced ends an attempt at a creation whose record another one replaced, or an operator
// freed.
var errReplaced = errors.New("directory: the record of the creation is gone")

// reservationLife is how long a reservation keeps its name from creations here. Then the creation
// that it was made for counts as abandoned. Taking the name over is safe at any time.
const reservationLife = time.Hour

// begin stores the record of a creation whose primary is this location, or finds the one that
// another call began. The account is not complete, so its gate here has no numbers yet and nothing
// is shipped.
type begin struct {
	// want has an epoch and a time after the evaluation alone.
	want catalog.Account
	// given is what the caller chose; the other keys of want are random.
	given given
	// other is the other location.
	other geo.Location
	// above is what the epoch of the creation must be above, besides what was seen here.
	above geo.Epoch
	// life is how long a reservation holds.
	life   time.Duration
	stored catalog.Account
}

// Evaluate implements ranges.Command.
func (c *begin) Evaluate(tx *ranges.Tx) error {
	have, err := record.Look(tx, c.want.Name)
	if err != nil {
		return err
	}
	at, old := tx.Timestamp(0), have.Account
	c.stored = c.want
	switch {
	case old == nil:
	case old.Active:
		return storageerr.AccountAlreadyExists
	case old.Primary == c.want.Primary:
		c.stored.Key1, c.stored.Key2 = c.given.over(old)
		if c.given.redundancy == "" {
			c.stored.SetRedundancy(old.Redundancy, c.other)
		}
		// Another redundancy has other gates, so it begins again with another epoch.
		if old.Redundancy == c.stored.Redundancy && old.GeoEpoch().Compare(c.above) > 0 {
			return c.resume(tx, old, at)
		}
	case at.Time().Sub(old.Reserved.Time()) < c.life:
		return storageerr.AccountAlreadyExists.Saying(fmt.Sprintf(
			"account %s is being created at %s: antipodectl account reservations shows how far it is, and antipodectl account free %s gives the name up",
			old.Name, old.Primary, old.Name))
	}
	c.stored.Epoch = max(have.Seen.Number, c.above.Number) + 1
	c.stored.Created = at
	return record.Stage(tx, &c.stored, at)
}

// resume continues a creation that stopped half way. It keeps the stored keys except those that
// are given now: the account could not be used yet.
func (c *begin) resume(tx *ranges.Tx, old *catalog.Account, at geo.Timestamp) error {
	c.stored.Epoch, c.stored.Created = old.Epoch, old.Created
	if c.given.missing(old) == "" {
		c.stored = *old
		return nil
	}
	return record.Stage(tx, &c.stored, at)
}

// reserve stores the record of a creation whose primary is the other location, and opens the gate
// of its epoch in the catalog.
//
// Rules: a complete account stays. Otherwise the higher epoch wins, so that of two creations of a
// name both locations choose the same one, and a late call of an older creation changes nothing.
// A creation of this location that is replaced never completes: see activate.
type reserve struct{ want catalog.Account }

// Evaluate implements ranges.Command.
func (c reserve) Evaluate(tx *ranges.Tx) error {
	have, err := record.Look(tx, c.want.Name)
	if err != nil {
		return err
	}
	switch old := have.Account; {
	case old != nil && old.SameCreation(&c.want):
		return nil // A second call.
	case old != nil && old.Active:
		return storageerr.AccountAlreadyExists
	case c.want.GeoEpoch().Compare(have.Seen) <= 0:
		return &record.PassedError{Seen: have.Seen}
	}
	a, at := c.want, tx.Timestamp(0)
	a.Reserved = at
	if err := record.Stage(tx, &a, at); err != nil {
		return err
	}
	tx.SetGate(a.Name, record.SecondaryGate(&a))
	return nil
}

// activate completes a creation: it opens the gate of its epoch in the catalog, and marks the account
// complete. With a secondary, the gate has numbers, and this is the first change that is shipped.
// Without one nothing is shipped (R10): the announcement to the other location is left as an operation.
type activate struct {
	creation catalog.Account
	given    given
	stored   catalog.Account
}

// Evaluate implements ranges.Command. It completes no creation but its own: a name that was
// reserved for the other location meanwhile, or freed, stays so.
func (c *activate) Evaluate(tx *ranges.Tx) error {
	have, err := record.Look(tx, c.creation.Name)
	if err != nil {
		return err
	}
	switch a := have.Account; {
	case a == nil || !a.SameCreation(&c.creation) && !a.Active:
		return errReplaced
	case a.Primary != c.creation.Primary:
		return storageerr.AccountAlreadyExists
	default:
		c.stored = *a
	}
	if err := c.given.check(&c.stored); err != nil {
		return err // Another creation of the name came in between, with other choices.
	}
	if c.stored.Active {
		return nil
	}
	if have.Seen.Compare(c.stored.GeoEpoch()) > 0 {
		return &record.PassedError{Seen: have.Seen}
	}
	tx.SetGate(c.stored.Name, record.PrimaryGate(&c.stored))
	if c.stored.Active = true; !c.stored.Redundancy.Geo() {
		c.stored.Operation = &catalog.Operation{Kind: catalog.OperationAnnounce}
	}
	return record.StageAccount(tx, tx.Timestamp(c.stored.Created), &c.stored)
}
