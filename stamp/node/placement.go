package node

import (
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/stamp/durable"
	"antipode/stamp/membership"
	"antipode/stamp/ranges"
)

// Each node of a stamp decides for itself where the ranges are. It does so when it first starts, from
// its configuration, and writes the result to the file placement. The first members of a range follow
// from it, so it may not be decided again once a replica here has joined, even if the configuration
// changes. Nodes whose configurations differ may decide differently. So membership.Hello carries the
// checksum of the file, and a node with another one refuses it: neither of them takes part. The
// catalog is on all nodes, so its replica compares the file with every node's.

// ErrPlacement: the file placement is damaged, or the configuration does not fit it.
var ErrPlacement = membership.ErrPlacement

const placementFile = "placement"

// placement is where the ranges of the stamp are, as this node decided it.
type placement struct {
	ranges.Placement
	o *Options // of the node
	// has are the ranges of this node.
	has []geo.RangeID
	// differing are the nodes with another placement that were reported to the operator.
	differing map[geo.NodeID]bool
}

// open reads which nodes have which ranges. It decides that if there is no file yet, and again as long
// as no replica here has taken part. It runs before any store is opened.
func (p *placement) open() error {
	fs := p.o.State.FS
	b, err := durable.Read(fs, fs.PathJoin(p.o.Dir, placementFile))
	if err != nil {
		return err
	}
	holds, err := p.holdsAnything()
	if err != nil {
		return err
	}
	switch {
	case b == nil && holds:
		// The folder is older than the file placement.
		b = durable.Twice(membership.EncodePlacement(ranges.Everywhere(p.o.Peers)))
	case b == nil || !p.tookPart():
		b = durable.Twice(membership.EncodePlacement(ranges.Place(p.sites(p.o.Peers), p.o.Route.Catalog(), p.o.Route.IDs())))
	}
	if p.Placement, err = membership.ReadPlacement(b); err != nil {
		return fmt.Errorf("%s in %s: %w", placementFile, p.o.Dir, err)
	}
	// What was read is written again too: it may be in the page cache only, as in identify, or have one
	// damaged copy.
	if err := durable.Replace(fs, p.o.Dir, placementFile, durable.Twice(membership.EncodePlacement(p.Placement))); err != nil {
		return err
	}
	if err := p.check(); err != nil {
		return err
	}
	p.has = nil
	for _, id := range p.o.Route.IDs() {
		if slices.Contains(p.Of(id), p.o.ID) {
			p.has = append(p.has, id)
		}
	}
	return nil
}

// holdsAnything reports whether a node has used the folder before.
func (p *placement) holdsAnything() (bool, error) {
	fs := p.o.State.FS
	for _, sub := range []string{"log", "state", "replicas"} {
		list, err := fs.List(fs.PathJoin(p.o.Dir, sub))
		if err != nil || len(list) > 0 {
			return true, err
		}
	}
	return false, nil
}

// tookPart reports whether a replica here is past the phase Joining.
func (p *placement) tookPart() bool {
	for _, id := range p.o.Route.IDs() {
		if d, err := membership.Load(p.o.State.FS, p.o.Dir, id); err != nil || d != nil && d.Phase != membership.Joining {
			return true
		}
	}
	return false
}

// check refuses a configuration that contradicts the placement, and warns of what
// the operator should know.
func (p *placement) check() error {
	of := p.Nodes
	if !slices.Contains(of, p.o.ID) {
		return fmt.Errorf("%w: this node is none of those that the stamp was made of, %v: a stamp does not grow yet", ErrPlacement, of)
	}
	for _, id := range of {
		if !slices.Contains(p.o.Peers, id) {
			return fmt.Errorf("%w: the configuration does not list node %d, which has replicas: list all of %v", ErrPlacement, id, of)
		}
	}
	for _, id := range p.o.Peers {
		if !slices.Contains(of, id) {
			p.o.Logger.Warn("the configuration lists a node that is none of those that the stamp was made of: nothing will be on it, a stamp does not grow yet",
				"listed", id, "made_of", of)
		}
	}
	for _, w := range p.warnings() {
		p.o.Logger.Warn(w)
	}
	return nil
}

// sites returns nodes with the domains that the configuration gives them.
func (p *placement) sites(nodes []geo.NodeID) []ranges.Site {
	var out []ranges.Site
	for _, id := range nodes {
		site := ranges.Site{Node: id}
		if i := slices.IndexFunc(p.o.Sites, func(s ranges.Site) bool { return s.Node == id }); i >= 0 {
			site = p.o.Sites[i]
		}
		out = append(out, site)
	}
	return out
}

// PlacementWarnings names the placed ranges whose nodes share a domain, as the configuration
// has the domains now.
func (n *Node) PlacementWarnings() []string { return n.placement.warnings() }

func (p *placement) warnings() []string { return p.Warnings(p.sites) }

// differs reports to the operator that a node has another placement, once for each node until the next
// start.
func (p *placement) differs(from geo.NodeID) {
	if p.differing[from] {
		return
	}
	if p.differing == nil {
		p.differing = map[geo.NodeID]bool{}
	}
	p.differing[from] = true
	p.o.Logger.Error("another node has decided otherwise which nodes have which ranges: one that is new takes no part until both agree; "+
		"its configuration must list the nodes and domains that the stamp was made with, or copy the file from a node that has data",
		"of_node", from, "file", p.o.State.FS.PathJoin(p.o.Dir, placementFile))
}
