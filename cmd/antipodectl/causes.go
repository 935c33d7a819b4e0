package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/geo"
)

// causesMost is how many causes there are lines for at most.
const causesMost = 3

// sharedCause is why accounts do not move: the first one, and how many others there are for the same cause.
type sharedCause struct {
	admin.RefusedFailover
	accounts int
}

// byCause groups accounts whose reasons differ in names and numbers alone, most accounts first.
func byCause(list []admin.RefusedFailover) (out []sharedCause) {
	at := map[string]int{}
	for _, r := range list {
		kind := alike.ReplaceAllString(strings.ReplaceAll(r.Why, string(r.Account), ""), "")
		i, have := at[kind]
		if !have {
			i = len(out)
			at[kind] = i
			out = append(out, sharedCause{RefusedFailover: r})
		}
		out[i].accounts++
	}
	slices.SortStableFunc(out, func(a, b sharedCause) int { return cmp.Compare(b.accounts, a.accounts) })
	return out
}

// writeCauses writes a line for each of so many causes, and how many accounts of all there are beside these. more is what shows
// them; empty where nothing does.
func writeCauses(w io.Writer, label string, list []admin.RefusedFailover, all, most int, more string) {
	for i, c := range byCause(list) {
		if i == most {
			break
		}
		who := "account " + string(c.Account)
		if c.accounts > 1 {
			who = fmt.Sprintf("%s, such as %s", check.Count(c.accounts, "account"), c.Account)
		}
		_, _ = fmt.Fprintf(w, "%-10s %s: %s\n", label, who, check.OneLine(c.Why))
		all -= c.accounts
	}
	if all > 0 {
		_, _ = fmt.Fprintf(w, "%-10s %s%s\n", label, check.Count(all, "more account"), more)
	}
}

// writeServices writes how far the services are, on one line where they have the same counts.
func writeServices(w io.Writer, services []wholeService) {
	same := len(services) > 1
	all := wholeService{Service: "services"}
	for i, s := range services {
		first := services[0]
		same = same && s.Live == first.Live && s.NotLive == first.NotLive && s.Unknown == first.Unknown && s.Oldest.IsZero() == first.Oldest.IsZero()
		all.Live, all.NotLive, all.Unknown = s.Live, s.NotLive, s.Unknown
		if i == 0 || s.Oldest.Before(all.Oldest.Time) {
			all.Oldest = s.Oldest
		}
	}
	if same {
		services = []wholeService{all}
	}
	for _, s := range services {
		oldest, silent := "not known", ""
		if !s.Oldest.IsZero() {
			oldest = s.Oldest.UTC().Format(lossTime)
		}
		if s.Unknown > 0 {
			silent = fmt.Sprintf(", %d not known", s.Unknown)
		}
		_, _ = fmt.Fprintf(w, "%-10s %d live, %d not%s; oldest Last Sync Time %s\n", s.Service, s.Live, s.NotLive, silent, oldest)
	}
}

// passedBy are the accounts that a plan passes over, in words for programs: the first of them, and how many others there are.
func passedBy(list []admin.RefusedFailover) []string {
	out := []string{}
	for _, r := range list[:min(len(list), passedOverMax)] {
		out = append(out, fmt.Sprintf("account %s: %s", r.Account, r.Why))
	}
	if n := len(list) - passedOverMax; n > 0 {
		out = append(out, check.Count(n, "more account")+" with an operation under way")
	}
	return out
}

// passes is that an operation of an account is under way, for which a failover passes it over.
func passes(name geo.Account, operation string) admin.RefusedFailover {
	return admin.RefusedFailover{Account: name, Why: "an operation is under way: " + operation}
}
