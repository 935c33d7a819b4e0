package record

import (
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// StageMoving changes the record of an account that moves: without a number while its gate is closed.
func StageMoving(tx *ranges.Tx, at geo.Timestamp, a *catalog.Account, more ...change.Op) error {
	if tx.Gate(a.Name).Open {
		return StageAccount(tx, at, a, more...)
	}
	return StageLocal(tx, at, a, more...)
}

// Finish ends the operation of an account, if it is still that one.
type Finish struct{ Of catalog.Account }

// Evaluate implements ranges.Command.
func (c Finish) Evaluate(tx *ranges.Tx) error {
	have, err := Look(tx, c.Of.Name)
	if err != nil {
		return err
	}
	a := have.Account
	if a == nil || a.Operation == nil || a.GeoEpoch() != c.Of.GeoEpoch() || *a.Operation != *c.Of.Operation {
		return nil
	}
	at := tx.Timestamp(0)
	if a.Bootstraps() || a.Operation.Rewinding {
		// The clocks of other ranges were ahead by that at most, and this one is behind by that at most (R6).
		a.Copied = geo.TimestampOf(at.Time().Add(2 * geo.ClockOffMax))
	}
	agrees := a.Agreed() != 0
	if a.Operation = nil; agrees {
		tx.SetGate(a.Name, PrimaryGate(a))
	}
	return StageAccount(tx, at, a)
}

// Reclaims implements ranges.Reclaimer: it begins with what frees room, and needs almost none.
func (Finish) Reclaims() {}

// PassedError refuses a creation whose epoch is not above every epoch that was ever seen for the
// name. The creation begins again above Seen.
type PassedError struct{ Seen geo.Epoch }

func (e *PassedError) Error() string {
	return fmt.Sprintf("directory: epoch %s was already seen for the name", e.Seen)
}

// Known is what a catalog knows of a name.
type Known struct {
	// Account is nil if there is no row.
	Account *catalog.Account
	// Seen is the highest epoch ever seen for the name here: of the row that is kept for that,
	// and of the gate, which is as old.
	Seen geo.Epoch
	// Promotion is the unplanned failover of the account to this location that is under way, nil for none.
	Promotion *catalog.Promotion
}

// Look returns what the catalog knows of a name.
func Look(tx *ranges.Tx, name geo.Account) (k Known, err error) {
	if k.Account, err = catalog.GetAccount(tx, name); errors.Is(err, storageerr.AccountNotFound) {
		k.Account, err = nil, nil
	}
	if err != nil {
		return k, err
	}
	k.Seen, err = catalog.SeenEpoch(tx, name)
	if err != nil {
		return k, err
	}
	k.Seen = Later(k.Seen, tx.Gate(name).Epoch)
	k.Promotion, err = catalog.GetPromotion(tx, name)
	return k, err
}

// Replaceable returns nil if the record of an account of the other location may be replaced as that asks: while this
// location is about to become the primary it may not (R20).
func (k Known) Replaceable() error {
	if k.Promotion == nil {
		return nil
	}
	return storageerr.ServerBusy.Saying(fmt.Sprintf("account %s: %s", k.Account.Name, k.Promotion.Describe()))
}

// Later returns the higher one of two epochs.
func Later(a, b geo.Epoch) geo.Epoch {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}

// Stage changes the record of an incomplete account, and keeps its epoch as the highest one that
// was seen for the name (R8).
func Stage(tx *ranges.Tx, a *catalog.Account, at geo.Timestamp) error {
	op, err := catalog.SeenOp(a.GeoEpoch())
	if err != nil {
		return err
	}
	return StageAccount(tx, at, a, op)
}

// StageAccount changes the record of an account.
func StageAccount(tx *ranges.Tx, at geo.Timestamp, a *catalog.Account, more ...change.Op) error {
	return stageBy(tx.Change, at, a, more)
}

// StageLocal changes the record of an account at this location alone.
func StageLocal(tx *ranges.Tx, at geo.Timestamp, a *catalog.Account, more ...change.Op) error {
	return stageBy(tx.Local, at, a, more)
}

func stageBy(stage func(keys.Partition, change.Record) error, at geo.Timestamp, a *catalog.Account, more []change.Op) error {
	v, err := a.Encode()
	if err != nil {
		return err
	}
	p := catalog.AccountPartition(a.Name)
	ops := append([]change.Op{{Value: v}}, more...)
	return stage(p, change.Record{CommitTime: at, Partition: p.Append(nil), Ops: ops})
}

// ParseOf parses a record of an account of the location other that a call names here, where it fits.
func ParseOf(body []byte, here, other geo.Location, fits func(*catalog.Account) bool) (*catalog.Account, error) {
	a, err := catalog.ParseAccount(body)
	if err != nil {
		return nil, err
	}
	secondary := geo.Location("")
	if a.Redundancy.Geo() {
		secondary = here
	}
	known, err := catalog.ParseRedundancy(string(a.Redundancy))
	if err != nil || known != a.Redundancy || !a.Name.Valid() || a.Epoch == 0 || a.Created == 0 || a.Primary != other || a.Secondary != secondary || !fits(a) {
		return nil, fmt.Errorf("account %q of %s is not one that %s may name here", a.Name, a.Primary, other)
	}
	return a, nil
}

// OfTaken returns the record of an account that this location has taken, nil if it has gone on since.
func OfTaken(tx *ranges.Tx, of catalog.Account) (*catalog.Account, Known, error) {
	have, err := Look(tx, of.Name)
	a := have.Account
	if err != nil || a == nil || a.Operation == nil || a.GeoEpoch() != of.GeoEpoch() || *a.Operation != *of.Operation {
		return nil, have, err
	}
	return a, have, nil
}

// ErrOperation is what another operation of an account is refused with while one is under way.
var ErrOperation = storageerr.OperationInProgress

// LookHere is look for a complete account whose primary is this location. Else the error has what it is.
func LookHere(tx *ranges.Tx, name geo.Account) (have Known, err error) {
	have, err = Look(tx, name)
	switch {
	case err != nil:
		return have, err
	case have.Account == nil || !have.Account.Active:
		return have, storageerr.AccountNotFound
	case have.Account.Primary != tx.Location():
		return have, storageerr.InvalidInput.Saying(fmt.Sprintf("the primary of account %s is %s: its copy is changed there", name, have.Account.Primary))
	}
	return have, nil
}
