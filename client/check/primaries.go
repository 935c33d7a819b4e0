package check

import (
	"fmt"
	"slices"
	"strings"

	"antipode/client/admin"
	"antipode/geo"
)

// TwoPrimaries reports whether both locations take writes of an account: the former primary runs, does not know of the
// failover, and nothing has it refuse them.
func TwoPrimaries(s admin.Status, a admin.AccountStatus) bool {
	if a.FormerEpoch == nil {
		return false
	}
	i := slices.IndexFunc(s.Locations, func(l admin.Location) bool { return l.Name == a.FormerEpoch.Location })
	return i >= 0 && takesWrites(s.Locations[i], a.Name)
}

// takesWrites reports whether a node of a location may take writes of an account that the location has as its primary.
func takesWrites(l admin.Location, name geo.Account) bool {
	e := l.Epochs
	if e == nil || !Serves(l) {
		return false
	}
	return !refuses(e, name) && (e.Confirmed || among(l, e.UnconfirmedNodes) != string(l.Name))
}

// primaries finds accounts of which both locations take writes: one finding for all that have the same two primaries.
func (f *findings) primaries() {
	type pair struct{ now, former geo.Location }
	var pairs []pair
	of := map[pair][]geo.Account{}
	for _, a := range f.status.Accounts {
		if !TwoPrimaries(f.status, a) {
			continue
		}
		p := pair{a.Primary, a.FormerEpoch.Location}
		if of[p] == nil {
			pairs = append(pairs, p)
		}
		of[p] = append(of[p], a.Name)
	}
	for _, p := range pairs {
		f.add(Critical, stopFormer(f.status, p.now, p.former), "%s with two primaries: %s, and %s, which does not know of the failover and takes writes that %s will not have: %s",
			Count(len(of[p]), "account"), p.now, p.former, p.now, some(of[p]))
	}
}

// stopFormer is what ends that an account has two primaries.
func stopFormer(s admin.Status, now, former geo.Location) string {
	if s.Link.State == admin.LinkCut {
		return linkHeal
	}
	return fmt.Sprintf("stop the processes of %s until it reaches %s: docs/runbooks/unplanned-failover.md", former, now)
}

// OtherTakesWrites names the former primary of an account that takes its writes too, with what to do; empty where none is known to.
func OtherTakesWrites(s admin.Status, name geo.Account) string {
	i := slices.IndexFunc(s.Accounts, func(a admin.AccountStatus) bool { return a.Name == name })
	if i < 0 || !TwoPrimaries(s, s.Accounts[i]) {
		return ""
	}
	now, former := s.Accounts[i].Primary, s.Accounts[i].FormerEpoch.Location
	return fmt.Sprintf("two primaries: %s, which does not know of the failover, takes writes too, that %s will not have; next: %s", former, now, stopFormer(s, now, former))
}

// RefusesWrites is why the primary of an account, which runs, refuses its writes, with what to do; empty where it is not known
// to.
func RefusesWrites(s admin.Status, name geo.Account) string {
	i := slices.IndexFunc(s.Accounts, func(a admin.AccountStatus) bool { return a.Name == name })
	if i < 0 || s.Accounts[i].WithoutPrimary != "" {
		return ""
	}
	l := slices.IndexFunc(s.Locations, func(l admin.Location) bool { return l.Name == s.Accounts[i].Primary })
	if l < 0 || Down(s.Locations[l]) {
		return ""
	}
	none, _ := unled(s.Locations[l])
	switch at, e := s.Locations[l], s.Locations[l].Epochs; {
	case len(none) > 0:
		return fmt.Sprintf("refused at %s, and reads too, without a leader of range %s: antipodectl check", at.Name, strings.Join(none, ", "))
	case e == nil || s.Accounts[i].Secondary == "":
		return ""
	case refuses(e, name):
		return fmt.Sprintf("refused at %s, since the other location has a later epoch: antipodectl check", at.Name)
	case !e.Confirmed && e.Witness:
		return fmt.Sprintf("refused at %s, without a lease of the witness: antipodectl check", among(at, e.UnconfirmedNodes))
	case !e.Confirmed:
		return fmt.Sprintf("refused at %s, without an answer of the other location: antipodectl check", among(at, e.UnconfirmedNodes))
	}
	return ""
}
