package rejoin

import (
	"antipode/geo"
	"antipode/services/catalog"
)

// Withheld reports whether the other location cannot take records of a stream of the location here now, by the account's
// record, which may be an older one: it has no open gate of the epoch yet, since it is the former primary and has not
// followed, or the account has become its own. What it cannot take would cross the link in vain, and again (R22).
// The catalog's own streams bring the record that it follows.
func Withheld(a *catalog.Account, st geo.Stream, catalogRange geo.RangeID, here geo.Location) bool {
	switch op := a.Operation; {
	case st.Range == catalogRange:
		return false
	case a.GeoEpoch() != st.Epoch:
		return a.Primary != here // It is about to become this location's, or was.
	default:
		return op != nil && op.Kind == catalog.OperationTaken && !op.Joined
	}
}
