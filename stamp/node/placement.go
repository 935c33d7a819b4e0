package node

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"antipode/geo"
	"antipode/stamp/durable"
	"antipode/stamp/membership"
	"antipode/stamp/ranges"
)

// Where the ranges of a stamp are is decided by each of its nodes for itself, from its
// configuration, when it first starts, and written down in a file placement: a range's
// first members follow from it, so it may not be decided anew once a replica here has
// joined, whatever the configuration says later. Nodes whose configurations differ could
// decide otherwise: msgHello carries the checksum of the file, a node that has another one
// does not answer, and so neither takes part. Everybody is asked about the catalog, which is on all nodes.

// ErrPlacement: the file placement is damaged, or the configuration does not fit it.
var ErrPlacement = membership.ErrPlacement

const placementFile = "placement"

// placement is where the ranges of the stamp are, as this node has it written down.
type placement struct {
	ranges.Placement
	// has are the ranges of this node.
	has []geo.RangeID
	// differing are the nodes with another placement that the operator was told of.
	differing map[geo.NodeID]bool
}

// openPlacement reads which nodes have which ranges, or decides it: anew, while no replica
// here has taken part in anything. It comes before any store is opened.
func (n *Node) openPlacement() error {
	fs := n.o.State.FS
	b, err := durable.Read(fs, fs.PathJoin(n.o.Dir, placementFile))
	if err != nil {
		return err
	}
	holds, err := n.holdsAnything()
	if err != nil {
		return err
	}
	switch {
	case b == nil && holds:
		// From before there were placements.
		b = durable.Twice(membership.EncodePlacement(ranges.Everywhere(n.o.Peers)))
	case b == nil || !n.tookPart():
		b = durable.Twice(membership.EncodePlacement(ranges.Place(n.sites(n.o.Peers), stampRanges())))
	}
	if n.placement.Placement, err = durable.ParseTwice(b, membership.ParsePlacement); err != nil {
		return fmt.Errorf("%w: the file is damaged, twice: copy %s from another node of the stamp into %s", err, placementFile, n.o.Dir)
	}
	// Also what was read: it may be in the page cache only, as in identify, or damaged in part.
	if err := durable.Replace(fs, n.o.Dir, placementFile, durable.Twice(membership.EncodePlacement(n.placement.Placement))); err != nil {
		return err
	}
	if err := n.checkPlacement(); err != nil {
		return err
	}
	n.placement.has = nil
	for _, id := range stampRanges() {
		if slices.Contains(n.placement.Of(id), n.o.ID) {
			n.placement.has = append(n.placement.has, id)
		}
	}
	return nil
}

// holdsAnything reports whether a node has lived in the folder.
func (n *Node) holdsAnything() (bool, error) {
	fs := n.o.State.FS
	for _, sub := range []string{"log", "state", "replicas"} {
		list, err := fs.List(fs.PathJoin(n.o.Dir, sub))
		if err != nil || len(list) > 0 {
			return true, err
		}
	}
	return false, nil
}

// tookPart reports whether a replica here is, or was, more than joining.
func (n *Node) tookPart() bool {
	for _, id := range stampRanges() {
		if d, err := membership.Load(n.o.State.FS, n.o.Dir, id); err != nil || d != nil && d.Phase != membership.Joining {
			return true
		}
	}
	return false
}

// checkPlacement refuses a configuration that contradicts the placement, and warns of what
// the operator should know.
func (n *Node) checkPlacement() error {
	of := n.placement.Nodes
	if !slices.Contains(of, n.o.ID) {
		return fmt.Errorf("%w: this node is none of those that the stamp was made of, %v: a stamp does not grow yet", ErrPlacement, of)
	}
	for _, p := range of {
		if !slices.Contains(n.o.Peers, p) {
			return fmt.Errorf("%w: the configuration does not list node %d, which has replicas: list all of %v", ErrPlacement, p, of)
		}
	}
	for _, p := range n.o.Peers {
		if !slices.Contains(of, p) {
			n.o.Logger.Warn("the configuration lists a node that is none of those that the stamp was made of: nothing will be on it, a stamp does not grow yet",
				"listed", p, "made_of", of)
		}
	}
	for _, w := range n.PlacementWarnings() {
		n.o.Logger.Warn(w)
	}
	return nil
}

// sites are nodes with the domains that the configuration gives them.
func (n *Node) sites(nodes []geo.NodeID) []ranges.Site {
	var out []ranges.Site
	for _, p := range nodes {
		site := ranges.Site{Node: p}
		if i := slices.IndexFunc(n.o.Sites, func(s ranges.Site) bool { return s.Node == p }); i >= 0 {
			site = n.o.Sites[i]
		}
		out = append(out, site)
	}
	return out
}

// PlacementWarnings tell of ranges that are placed and whose nodes share a domain, as the
// configuration has the domains now.
func (n *Node) PlacementWarnings() []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(n.placement.Ranges)) {
		on := n.placement.Of(id)
		fault, upgrade := ranges.Domains(n.sites(on)...)
		if fault < len(on) || upgrade < len(on) {
			out = append(out, fmt.Sprintf("range %d is on nodes %v, in %d fault and %d upgrade domains: one fault, or one step of an upgrade, "+
				"can take two copies; no three nodes were further apart when the stamp was made", id, on, fault, upgrade))
		}
	}
	return out
}

// sum is the checksum of the placement as it travels; never zero, which a node sends that has
// no placement.
func (p *placement) sum() uint64 {
	b := membership.EncodePlacement(p.Placement)
	return 1<<32 | uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
}

// differs reports to the operator, once in a life for each node, that it has another placement.
func (p *placement) differs(n *Node, from geo.NodeID) {
	if p.differing[from] {
		return
	}
	if p.differing == nil {
		p.differing = map[geo.NodeID]bool{}
	}
	p.differing[from] = true
	n.o.Logger.Error("another node has decided otherwise which nodes have which ranges: one that is new takes no part until both agree; "+
		"its configuration must list the nodes and domains that the stamp was made with, or copy the file from a node that has data",
		"of_node", from, "file", n.o.State.FS.PathJoin(n.o.Dir, placementFile))
}
