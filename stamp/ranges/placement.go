package ranges

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"antipode/geo"
)

// Replicas is how many nodes hold a range, if the stamp has so many.
const Replicas = 3

// Site is a node and what it shares with other nodes of its stamp.
type Site struct {
	Node geo.NodeID
	// Fault is the node's fault domain, such as a rack; Upgrade is its upgrade domain. Empty
	// means unknown, which counts as no domain.
	Fault, Upgrade string
}

// Placement is on which nodes the ranges of a stamp were created. It is fixed when the stamp
// is created: the first configuration of a range follows from it, so all nodes must have the
// same placement for ever.
type Placement struct {
	// Nodes are those that the stamp was created with, ascending.
	Nodes []geo.NodeID
	// Ranges has the nodes of each range that is not on all of them, ascending.
	Ranges map[geo.RangeID][]geo.NodeID
}

// Of returns the nodes of a range.
func (p Placement) Of(id geo.RangeID) []geo.NodeID {
	if on, placed := p.Ranges[id]; placed {
		return on
	}
	return p.Nodes
}

// Warnings names the placed ranges whose nodes share a domain. sites returns nodes with their domains.
func (p Placement) Warnings(sites func([]geo.NodeID) []Site) []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(p.Ranges)) {
		on := p.Of(id)
		fault, upgrade := Domains(sites(on)...)
		if fault < len(on) || upgrade < len(on) {
			out = append(out, fmt.Sprintf("range %d is on nodes %v, in %d fault and %d upgrade domains: one fault, or one step of an upgrade, "+
				"can take two copies; no three nodes were further apart when the stamp was made", id, on, fault, upgrade))
		}
	}
	return out
}

// Everywhere is the placement with every range on all nodes: the one of stamps that were
// created before there were placements.
func Everywhere(nodes []geo.NodeID) Placement {
	return Placement{Nodes: slices.Sorted(slices.Values(nodes)), Ranges: map[geo.RangeID][]geo.NodeID{}}
}

// Place decides the nodes of the ranges of a new stamp. The catalog is on every node, since
// every node looks names up in it. Each other range is on Replicas nodes, chosen by, in
// this order,
//
//	the most fault domains       three, whenever the stamp has three nodes that differ
//	the most upgrade domains     three, whenever such nodes differ in both
//	the fewest ranges so far     summed over the nodes, then of the fullest one
//	the lowest numbers
//
// in the order of the ranges' ids. It depends on nothing but its arguments, and not on
// the order of the sites. It takes time with the third power of their number: a second
// for some hundreds.
func Place(sites []Site, catalog geo.RangeID, ids []geo.RangeID) Placement {
	sites = slices.SortedFunc(slices.Values(sites), func(a, b Site) int { return cmp.Compare(a.Node, b.Node) })
	p := Placement{Ranges: map[geo.RangeID][]geo.NodeID{}}
	for _, s := range sites {
		p.Nodes = append(p.Nodes, s.Node)
	}
	if len(sites) <= Replicas {
		return p
	}
	load := make([]int, len(sites))
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if id == catalog {
			continue
		}
		chosen := choose(sites, load)
		for _, i := range chosen {
			load[i]++
			p.Ranges[id] = append(p.Ranges[id], sites[i].Node)
		}
	}
	return p
}

// choose returns the best three of the sites, by index, for a range.
func choose(sites []Site, load []int) (best [Replicas]int) {
	var bestRank [4]int
	for i := range sites {
		for j := i + 1; j < len(sites); j++ {
			for k := j + 1; k < len(sites); k++ {
				fault, upgrade := Domains(sites[i], sites[j], sites[k])
				rank := [...]int{fault, upgrade, -load[i] - load[j] - load[k], -max(load[i], load[j], load[k])}
				if best == [Replicas]int{} || slices.Compare(rank[:], bestRank[:]) > 0 {
					best, bestRank = [...]int{i, j, k}, rank
				}
			}
		}
	}
	return best
}

// Domains counts the fault and the upgrade domains of sites.
func Domains(sites ...Site) (fault, upgrade int) {
	for i, s := range sites {
		if s.Fault != "" && !slices.ContainsFunc(sites[:i], func(o Site) bool { return o.Fault == s.Fault }) {
			fault++
		}
		if s.Upgrade != "" && !slices.ContainsFunc(sites[:i], func(o Site) bool { return o.Upgrade == s.Upgrade }) {
			upgrade++
		}
	}
	return fault, upgrade
}
