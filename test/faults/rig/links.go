package rig

import (
	"errors"
	"slices"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/cluster"
	"antipode/test/faults/proxy"
)

// setAbsent makes every connection to a process refused, or accepted again.
func (r *Rig) setAbsent(name string, absent bool) error {
	var errs []error
	for way, links := range r.links {
		if way[1] != name {
			continue
		}
		for _, l := range links {
			errs = append(errs, l.SetAbsent(absent))
		}
	}
	return errors.Join(errs...)
}

// usedLink is a proxy and what goes through it.
type usedLink struct {
	*proxy.Link
	use cluster.Use
}

func newRates() map[geo.Location]*proxy.Rate {
	return map[geo.Location]*proxy.Rate{North: {}, South: {}}
}

// ratesBetween are the rates of a connection that from makes to to: none within a location, and at the
// gateway.
func (r *Rig) ratesBetween(from, to string) proxy.Rates {
	a, _, errA := wire.ParseNodeName(from)
	b, _, errB := wire.ParseNodeName(to)
	if errA != nil || errB != nil || a == b {
		return proxy.Rates{}
	}
	return proxy.Rates{Forth: r.rates[a], Back: r.rates[b]}
}

// RateFrom bounds, and counts, what the nodes of a location send to those of the other one, for all
// uses together.
func (r *Rig) RateFrom(l geo.Location) *proxy.Rate { return r.rates[l] }

// Break makes the connections that from makes to any of to faulty; the zero Fault makes them whole.
// They are those of some uses, without any those of all.
func (r *Rig) Break(f proxy.Fault, from string, to []string, uses ...cluster.Use) error {
	var errs []error
	for _, name := range to {
		for _, l := range r.links[[2]string{from, name}] {
			if len(uses) == 0 || slices.Contains(uses, l.use) {
				errs = append(errs, l.Set(f))
			}
		}
	}
	return errors.Join(errs...)
}

// Cut makes the connections between two sets of processes faulty, either side dialling. A
// fault's directions are those from a to b. Uses are as those of Break.
func (r *Rig) Cut(f proxy.Fault, a, b []string, uses ...cluster.Use) error {
	back := f
	back.HoldForth, back.HoldBack = f.HoldBack, f.HoldForth
	var errs []error
	for _, name := range a {
		errs = append(errs, r.Break(f, name, b, uses...))
	}
	for _, name := range b {
		errs = append(errs, r.Break(back, name, a, uses...))
	}
	return errors.Join(errs...)
}

// Others are the processes that are not in a set.
func Others(of []string, among []string) []string {
	return slices.DeleteFunc(slices.Clone(among), func(name string) bool { return slices.Contains(of, name) })
}
