package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"antipode/client/admin"
	"antipode/geo"
)

// reasons are what can hold a secondary up, and what to do, worst first.
var reasons = []struct { //nolint:gochecknoglobals // A table.
	reason, what, next string
	severity           Severity
}{
	{"forked", "both locations hold different changes under the same numbers", "docs/runbooks/fork.md", Critical},
	{"lost", "the secondary has lost changes that it had", "docs/runbooks/fork.md", Critical},
	{"poison", "a change cannot be read", "docs/runbooks/fork.md", Critical},
	{"behind-outbox", "changes were dropped from the outbox: the copy must be made again", "docs/runbooks/outbox-budget.md", Critical},
	{"version", "the secondary runs an earlier version: upgrade it", "docs/upgrade.md", Critical},
	{"clock", "times of the primary are ahead of the clocks of the secondary", "docs/runbooks/clock-skew.md", Warning},
	{"not-heard", "the secondary has not heard of all ranges of the primary", "", Warning},
}

// UnderWay is the operation of an account, in words for a port that shows both locations: the one that carries out a failover
// calls itself "this location".
func UnderWay(a admin.Account) string {
	to := a.Primary
	if a.Promoting() {
		to = a.Secondary
	}
	return strings.ReplaceAll(a.Operation, "to this location", "to "+string(to))
}

// operations finds what is under way for accounts and cannot go on: one finding for all that wait for the same. A location that
// is down is found; that it does not know of its accounts' new primary follows from it.
func (f *findings) operations() {
	type wait struct {
		operation, why string
		whole          *whole
	}
	var waits []wait
	of, wayOut := map[wait][]geo.Account{}, map[wait]string{}
	for _, a := range f.status.Accounts {
		w := wait{UnderWay(a.Account), a.OperationWaits, f.wholeOf(a.Account)}
		if w.whole != nil {
			w.operation = w.whole.name()
		}
		if w.why == "" || a.WithoutPrimary != "" || TwoPrimaries(f.status, a) || a.FailoverPhase == admin.FailoverTaken && f.down[a.Secondary] {
			continue
		}
		if of[w] == nil {
			waits = append(waits, w)
			wayOut[w] = WayOut(a.Account)
		}
		of[w] = append(of[w], a.Name)
	}
	for _, w := range waits {
		whose, next := "account "+some(of[w]), cmp.Or(wayOut[w], "antipodectl account show "+string(of[w][0]))
		if n := len(of[w]); n > 1 {
			whose, next = fmt.Sprintf("%s (%s)", Count(n, "account"), some(of[w])), fmt.Sprintf("%s (and so for the other %d)", next, n-1)
		}
		why := w.why
		if w.whole != nil {
			next = f.wayOut(w.whole)
			if left := w.whole.left(); left != "" && !w.whole.stuck { // Once.
				why += "; " + left
			}
			w.whole.stuck = true
		}
		f.add(Warning, next, "%s cannot go on with %s: %s", whose, w.operation, why)
	}
}

// accounts finds accounts that nobody serves, and secondaries that do not follow: one finding for each reason.
func (f *findings) accounts() {
	held, late := map[string][]geo.Account{}, []geo.Account(nil)
	for _, a := range f.status.Accounts {
		if a.WithoutPrimary != "" {
			f.add(Critical, "docs/runbooks/account-without-primary.md", "account %s: %s", a.Name, a.WithoutPrimary)
			continue
		}
		if f.down[a.Primary] || f.down[a.Secondary] {
			continue // That is found.
		}
		is := map[string]bool{}
		for _, s := range a.Services {
			switch {
			case s.Status == admin.Unavailable && s.Reason != "bootstrap":
				is[s.Reason] = true
			case s.LagSeconds != nil && *s.LagSeconds > Late.Seconds():
				is[""] = true
			}
		}
		for reason := range is {
			if reason != "" {
				held[reason] = append(held[reason], a.Name)
			} else if len(is) == 1 {
				late = append(late, a.Name)
			}
		}
	}
	for _, r := range reasons {
		if of := held[r.reason]; len(of) > 0 {
			f.add(r.severity, cmp.Or(r.next, "antipodectl why "+string(of[0])), "%s without a Last Sync Time: %s: %s", Count(len(of), "account"), r.what, some(of))
			delete(held, r.reason)
		}
	}
	for _, reason := range sorted(held) { // A later server has reasons that this program does not know.
		of := held[reason]
		f.add(Warning, "antipodectl why "+string(of[0]), "%s without a Last Sync Time: %s: %s", Count(len(of), "account"), reason, some(of))
	}
	if len(late) > 0 {
		f.add(Warning, "antipodectl why "+string(late[0]), "%s more than %s behind: %s", Count(len(late), "account"), Late, some(late))
	}
}

func sorted(m map[string][]geo.Account) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
