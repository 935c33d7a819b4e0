package check

import (
	"fmt"
	"slices"
	"strings"

	"antipode/client/admin"
	"antipode/geo"
)

// whole is a failover of all accounts of a location that is under way.
type whole struct {
	admin.LocationFailover
	// stuck: of some of its accounts it cannot go on, which names it.
	stuck bool
}

func (w *whole) name() string {
	return fmt.Sprintf("the %s failover of location %s to %s", w.Type, w.From, w.To)
}

// left says what the failovers that are under way hold up; empty for nothing.
func (w *whole) left() string {
	var out []string
	switch {
	case w.Waiting == 0:
	case w.Phase == admin.LocationEnding:
		out = append(out, Count(w.Waiting, "account")+" will stay")
	default:
		out = append(out, Count(w.Waiting, "account")+" of it still to begin")
	}
	if n := len(w.RefusedAccounts); n > 0 {
		r := w.RefusedAccounts[0]
		out = append(out, fmt.Sprintf("refused until it goes through them again: %d, %s: %s", w.Refused, r.Account, r.Why))
	}
	return strings.Join(out, "; ")
}

// wholes are the failovers of locations that are under way, by the location that the accounts leave.
func (f *findings) wholes() map[geo.Location]*whole {
	out := map[geo.Location]*whole{}
	for _, l := range f.status.Locations {
		if l.Failover != nil {
			out[l.Failover.From] = &whole{LocationFailover: *l.Failover}
		}
	}
	return out
}

// wholeOf is the failover of a location that an account's is a part of; nil for none.
func (f *findings) wholeOf(a admin.Account) *whole {
	w := f.whole[a.Primary]
	if w == nil || a.Promoting() != (w.Type == admin.FailoverUnplanned) {
		return nil
	}
	switch a.FailoverPhase {
	case "", admin.FailoverTaken:
		return nil
	}
	return w
}

// wayOut is what to do about accounts for which the failover of a location cannot go on.
func (f *findings) wayOut(w *whole) string {
	i := slices.IndexFunc(f.status.Locations, func(l admin.Location) bool { return l.Name == w.To })
	if w.Type == admin.FailoverUnplanned && i >= 0 && SilentWitness(f.status.Locations[i]) != "" {
		return WayOutOfWhole(w.From)
	}
	show := "antipodectl failover show --location " + string(w.From)
	if w.Phase == admin.LocationEnding {
		return show
	}
	return fmt.Sprintf("%s; to end it: antipodectl failover end --location %s", show, w.From)
}

// WayOutOfWhole is what to do about the unplanned failover of a location that waits for the witness.
func WayOutOfWhole(from geo.Location) string {
	return fmt.Sprintf("start the witness again (%s); if %s is off and stays off: antipodectl failover unplanned --location %s --yes --without-witness",
		witnessPage, from, from)
}

// locationFailovers finds failovers of locations that go on: those that cannot are found with what their accounts wait for.
func (f *findings) locationFailovers() {
	for _, l := range f.status.Locations {
		if l.Failover == nil || f.whole[l.Failover.From].stuck {
			continue
		}
		w, under := f.whole[l.Failover.From], 0
		for _, n := range w.Moving {
			under += n
		}
		goes := "is under way"
		if w.Phase == admin.LocationEnding {
			goes = "is ending"
		}
		what := fmt.Sprintf("%s %s: %d moving, %d moved", w.name(), goes, under, w.Moved)
		if left := w.left(); left != "" {
			what += "; " + left
		}
		f.add(Warning, "antipodectl failover show --location "+string(w.From), "%s", what)
	}
}
