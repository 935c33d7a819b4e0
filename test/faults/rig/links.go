package rig

import (
	"errors"
	"slices"

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

// Break makes every connection that from makes to any of to faulty; the zero Fault makes
// them whole.
func (r *Rig) Break(f proxy.Fault, from string, to ...string) error {
	var errs []error
	for _, name := range to {
		for _, l := range r.links[[2]string{from, name}] {
			errs = append(errs, l.Set(f))
		}
	}
	return errors.Join(errs...)
}

// Cut makes all connections between two sets of processes faulty, either side dialling. A
// fault's directions are those from a to b.
func (r *Rig) Cut(f proxy.Fault, a, b []string) error {
	back := f
	back.HoldForth, back.HoldBack = f.HoldBack, f.HoldForth
	var errs []error
	for _, name := range a {
		errs = append(errs, r.Break(f, name, b...))
	}
	for _, name := range b {
		errs = append(errs, r.Break(back, name, a...))
	}
	return errors.Join(errs...)
}

// Others are the processes that are not in a set.
func Others(of []string, among []string) []string {
	return slices.DeleteFunc(slices.Clone(among), func(name string) bool { return slices.Contains(of, name) })
}
