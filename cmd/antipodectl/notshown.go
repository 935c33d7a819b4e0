package main

import (
	"fmt"
	"slices"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/geo"
)

// notShown is that the port which answers does not show one of these locations, and what to do; empty if it shows them. Such a
// location is not to be called dead: a failover of one that serves would lose what it acknowledges.
func notShown(s admin.Status, of ...geo.Location) string {
	for _, name := range check.NotShown(s) {
		if slices.Contains(of, name) {
			return unseen(name)
		}
	}
	return ""
}

func unseen(l geo.Location) string {
	return fmt.Sprintf("this port does not show %s, which need not be dead: ask a gateway", l)
}

// lookFor finds that the port which answers does not show a location that the plan is about. A name that no location has is
// refused before, where it shows both.
func (p *wholePlan) lookFor(shown []admin.Location, unplanned bool) {
	none := func(name geo.Location) bool {
		return name != "" && !slices.ContainsFunc(shown, func(l admin.Location) bool { return l.Name == name })
	}
	switch {
	case none(p.From) && unplanned: // It is not needed.
		p.unseen = unseen(p.From)
	case none(p.From):
		p.unseen = unseen(p.From)
		p.Blocked = append(p.Blocked, p.unseen)
	case none(p.To) && unplanned: // It carries that out.
		p.Blocked = append(p.Blocked, unseen(p.To))
	}
}
