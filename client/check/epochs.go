package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"antipode/client/admin"
	"antipode/geo"
)

// epochs finds a location that does not know whether it still is the primary. The witness is found by itself.
func (f *findings) epochs(l admin.Location) {
	e := l.Epochs
	if e == nil {
		return
	}
	if !e.Confirmed && !unwitnessed(e) {
		f.add(Critical, "docs/runbooks/epochs-unconfirmed.md", "%s refuses writes of accounts that have a copy: %s",
			among(l, e.UnconfirmedNodes), because("the other location does not answer", e.Waiting))
	}
	f.passed(l)
}

// passed finds accounts that a location refuses writes of, since the other one has them in a higher epoch: it is the primary, or
// claims to become it. Where that does not answer, which of them is not known.
func (f *findings) passed(l admin.Location) {
	at := map[geo.Account]admin.Account{}
	for _, a := range f.status.Accounts {
		at[a.Name] = a.Account
	}
	var moved, moving, either []geo.Account
	for _, r := range l.Epochs.Refused {
		a := at[r.Account]
		switch {
		case a.Primary != l.Name:
			moved = append(moved, r.Account)
		case a.Promoting():
			moving = append(moving, r.Account)
		default:
			either = append(either, r.Account)
		}
	}
	for _, c := range []struct {
		of        []geo.Account
		why, next string
	}{
		{moved, "the other location has become the primary", "antipodectl account list"},
		{moving, "an unplanned failover to the other location is under way", "antipodectl account show "},
		{either, "the other location has become the primary, or is about to", "antipodectl account show "},
	} {
		if len(c.of) > 0 {
			if strings.HasSuffix(c.next, " ") {
				c.next += string(c.of[0])
			}
			f.add(Warning, c.next, "%s refuses writes of %s: %s: %s", l.Name, Count(len(c.of), "account"), c.why, some(c.of))
		}
	}
}

// promotions finds unplanned failovers that go on, of accounts whose primary does not refuse their writes for them: what it
// takes until they are over may be lost, or it is off.
func (f *findings) promotions() {
	type move struct {
		from, to geo.Location
		phase    string
	}
	var moves []move
	of := map[move][]geo.Account{}
	for _, a := range f.status.Accounts {
		if !a.Promoting() || a.OperationWaits != "" || f.wholeOf(a.Account) != nil || f.refuses(a.Primary, a.Name) {
			continue
		}
		m := move{a.Primary, a.Secondary, a.FailoverPhase}
		if of[m] == nil {
			moves = append(moves, m)
		}
		of[m] = append(of[m], a.Name)
	}
	for _, m := range moves {
		f.add(Warning, "antipodectl account show "+string(of[m][0]), "an unplanned failover of %s from %s to %s is under way, %s: %s",
			Count(len(of[m]), "account"), m.from, m.to, m.phase, some(of[m]))
	}
}

// refuses reports whether a running location is known to refuse writes of an account.
func (f *findings) refuses(at geo.Location, name geo.Account) bool {
	return slices.ContainsFunc(f.status.Locations, func(l admin.Location) bool {
		return l.Name == at && !f.down[at] && l.Epochs != nil && refuses(l.Epochs, name)
	})
}

// refuses reports whether an account has a higher epoch at the other location.
func refuses(e *admin.Epochs, name geo.Account) bool {
	return slices.ContainsFunc(e.Refused, func(r admin.RefusedEpoch) bool { return r.Account == name })
}

// partedMax is for how long what is sent to the other location may get lost before it is no short break of connections: those
// come back within some seconds.
const partedMax = 10 * time.Second

// parted finds a location that does not reach the other one, though that is not known to be down and no operator has cut the
// link. It reports whether it has found that.
func (f *findings) parted(l admin.Location) bool {
	e := l.Epochs
	if e == nil || e.PartedSeconds < partedMax.Seconds() || f.status.Link.State == admin.LinkCut || f.down[l.Peer] {
		return false
	}
	var of []geo.Account
	for _, a := range f.status.Accounts {
		if a.Primary == l.Name && a.Secondary != "" {
			of = append(of, a.Name)
		}
	}
	if len(of) > 0 {
		f.add(Critical, "antipodectl why "+string(of[0]), "%s does not reach %s: nothing of %s is replicated, and a failover would lose what is written meanwhile",
			l.Name, l.Peer, Count(len(of), "account"))
	}
	return len(of) > 0
}

// OfEpochs reports whether a warning of a location repeats what its Epochs have, as one of an earlier version does for each
// node: that is found once.
func OfEpochs(l admin.Location, warning string) bool {
	return l.Epochs != nil && strings.HasPrefix(warning, admin.WarnsOfEpochs)
}

// witness finds a witness that does not answer: once, for both locations.
func (f *findings) witness() {
	var refuse, confirm, lease, word, left, away []string
	address, why, all := "", "", true
	for _, l := range f.status.Locations {
		e := l.Epochs
		if f.down[l.Name] || e == nil {
			continue
		}
		if !unwitnessed(e) {
			all = false
			continue
		}
		address, why = cmp.Or(address, e.WitnessAddress), cmp.Or(why, e.Waiting)
		whom := among(l, e.WaitingNodes)
		all, away = all && whom == string(l.Name), append(away, whom)
		switch {
		case ByWord(l):
			word = append(word, string(l.Name))
		case e.Confirmed:
			lease = append(lease, string(l.Name))
		case f.promoted(l.Name) && !f.serves(l.Name):
			left = append(left, string(l.Name))
		default:
			refuse = append(refuse, among(l, e.UnconfirmedNodes))
			if f.promoted(l.Name) { // To confirm it would have two primaries.
				break
			}
			confirm = append(confirm, fmt.Sprintf("antipodectl location confirm %s --not-promoted", l.Name))
		}
	}
	if len(away) == 0 {
		return
	}
	if all { // That nobody gets an answer needs no names.
		away = nil
	}
	what, severity, next := silentWitness(address, away), Warning, "start the witness again: "+witnessPage
	if len(refuse) > 0 {
		what, severity = fmt.Sprintf("%s: writes of accounts that have a copy are refused at %s; reads, and accounts without a copy, go on",
			what, strings.Join(refuse, ", ")), Critical
	}
	if len(confirm) > 0 {
		next = fmt.Sprintf("start the witness again (%s); if it will not be back soon: %s", witnessPage, strings.Join(confirm, ", "))
	}
	if len(left) > 0 {
		what += fmt.Sprintf("; %s: no writes are refused, as it is the primary of no account that has a copy", strings.Join(left, ", "))
	}
	if len(lease) > 0 {
		what += fmt.Sprintf("; %s: a lease still holds, and once it ends writes of accounts that have a copy are refused", strings.Join(lease, ", "))
	}
	if len(word) > 0 {
		what += fmt.Sprintf("; %s: writes go on without a lease, by an operator's word", strings.Join(word, ", "))
	}
	f.add(severity, next, "%s", because(what, why))
}

// promoted reports whether an account is known to have been promoted at the other location, which this one may not know.
func (f *findings) promoted(from geo.Location) bool {
	return slices.ContainsFunc(f.status.Accounts, func(a admin.AccountStatus) bool {
		return a.Secondary == from && a.FailoverPhase == admin.FailoverTaken
	})
}

// serves reports whether a location is the primary of an account that has a copy.
func (f *findings) serves(at geo.Location) bool {
	return slices.ContainsFunc(f.status.Accounts, func(a admin.AccountStatus) bool { return a.Primary == at && a.Secondary != "" })
}

// ByWord reports whether a location takes writes without a lease, by an operator's word.
func ByWord(l admin.Location) bool {
	e := l.Epochs
	return e != nil && e.Confirmed && (e.By == "override" || e.By == "policy")
}

const witnessPage = "docs/runbooks/witness.md"

// SilentWitness names the witness of a location that does not answer there, and why: a failover to the location would wait
// for it. It is empty where the witness answers, and without a witness.
func SilentWitness(l admin.Location) string {
	e := l.Epochs
	if Down(l) || e == nil || !unwitnessed(e) {
		return ""
	}
	return OneLine(because(silentWitness(e.WitnessAddress, []string{among(l, e.WaitingNodes)}), e.Waiting))
}

// silentWitness words that a witness does not answer: nobody, or only these.
func silentWitness(address string, whom []string) string {
	what := "the witness"
	if address != "" {
		what += " " + address
	}
	what += " does not answer"
	if len(whom) > 0 {
		what += " " + strings.Join(whom, ", ")
	}
	return what
}

// WayOut is what to do about an unplanned failover of an account that waits for the witness, or whose claim that is to forget;
// empty for any other account.
func WayOut(a admin.Account) string {
	if a.OperationWaits == "" {
		return ""
	}
	without := fmt.Sprintf("if %s is off and stays off: antipodectl failover unplanned %s --yes --without-witness", a.Primary, a.Name)
	switch a.FailoverPhase {
	case admin.FailoverClaiming:
		return fmt.Sprintf("%s; else: antipodectl failover end %s", without, a.Name)
	case admin.FailoverWithdrawing: // It has ended already.
		return fmt.Sprintf("start the witness again (%s); %s", witnessPage, without)
	}
	return ""
}

// unwitnessed reports whether a location has a witness that gave it no lease last.
func unwitnessed(e *admin.Epochs) bool { return e.Witness && (!e.Confirmed || e.Waiting != "") }

// among names these nodes of a location, or the location where they are all that run, or are not known.
func among(l admin.Location, nodes []string) string {
	runs := func(n admin.Node) bool { return n.State == admin.Running }
	if len(nodes) == 0 || !slices.ContainsFunc(l.Nodes, func(n admin.Node) bool { return runs(n) && !slices.Contains(nodes, n.Name) }) {
		return string(l.Name)
	}
	return strings.Join(slices.Sorted(slices.Values(nodes)), ", ")
}

func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + " (" + why + ")"
}
