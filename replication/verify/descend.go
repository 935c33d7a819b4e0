package verify

import (
	"context"
	"slices"

	"antipode/geo"
)

// Bounds of the search for the rows that differ.
const (
	// rowsEach is up to how many rows of a node are listed. A node with more is divided.
	rowsEach = 16
	// listedEach is of how many nodes one scan lists the rows.
	listedEach = 256
	// followedMax is how many nodes of one level are divided further. The others are counted alone.
	followedMax = 4096
)

// compare compares lanes in one pair of snapshots.
func (r *run) compare(ctx context.Context, p *pair, lanes []geo.Lane) (Result, error) {
	var out Result
	nodes := make([]Node, 0, len(lanes))
	for _, l := range lanes {
		nodes = append(nodes, Node{Lane: l})
	}
	near, far, err := r.scan(ctx, p, Scan{Want: WantSums, Nodes: nodes, Payload: r.o.Payload, BytesPerSecond: r.o.BytesPerSecond})
	if err != nil {
		return out, err
	}
	r.before, r.at = r.before+r.at, 0
	differ, err := differing(near, far)
	if err != nil {
		return out, err
	}
	tallies, err := parseTallies(near.result)
	if err != nil {
		return out, err
	}
	for _, t := range tallies {
		out.Rows += t.Rows
		out.Bytes += t.Bytes
	}
	out.Chunks, out.ChunkBytes = far.at.chunks, far.at.chunkBytes
	out.payload(far)
	return out, r.descend(ctx, p, differ, &out)
}

// payload adds the damaged payload of a scan.
func (out *Result) payload(far scanned) {
	for _, d := range far.damages {
		kind := PayloadCorrupt
		if d.Reason == ReasonMissing {
			kind = PayloadMissing
		}
		out.Differences = append(out.Differences, Difference{Kind: kind, Key: d.Key, Chunk: d.Chunk, Reason: d.Reason})
	}
	out.Total += far.damaged
}

// part is a node whose tallies differ.
type part struct {
	Node
	// rows is the greater number of rows of the two.
	rows uint64
}

// differing returns the nodes whose tallies differ between two results, in their order.
func differing(near, far scanned) ([]part, error) {
	a, err := parseTallies(near.result)
	if err != nil {
		return nil, err
	}
	b, err := parseTallies(far.result)
	if err != nil {
		return nil, err
	}
	var out []part
	for n, t := range a {
		if b[n] != t {
			out = append(out, part{n, max(t.Rows, b[n].Rows)})
		}
	}
	for n, t := range b {
		if _, both := a[n]; !both {
			out = append(out, part{n, t.Rows})
		}
	}
	slices.SortFunc(out, func(a, b part) int { return a.compare(b.Node) })
	return out, nil
}

// descend finds the rows in which nodes differ: it divides nodes with many rows, and lists the others.
// Where more differ than are listed or followed it counts each such node once.
func (r *run) descend(ctx context.Context, p *pair, level []part, out *Result) error {
	for len(level) > 0 {
		var divided, listed []Node
		for _, n := range level {
			if n.rows <= rowsEach || n.Depth == depthMax {
				listed = append(listed, n.Node)
			} else {
				divided = append(divided, n.Node)
			}
		}
		for nodes := range slices.Chunk(listed, listedEach) {
			if err := r.list(ctx, p, nodes, out); err != nil {
				return err
			}
		}
		if len(divided) > followedMax || len(divided) > 0 && len(out.Differences) >= r.o.DifferencesMax {
			kept := followedMax
			if len(out.Differences) >= r.o.DifferencesMax {
				kept = 0
			}
			out.AtLeast = true
			out.Total += uint64(len(divided) - kept)
			divided = divided[:kept]
		}
		level = nil
		for nodes := range slices.Chunk(divided, nodesMax) {
			near, far, err := r.scan(ctx, p, Scan{Want: WantParts, Nodes: nodes, BytesPerSecond: r.o.BytesPerSecond})
			if err != nil {
				return err
			}
			differ, err := differing(near, far)
			if err != nil {
				return err
			}
			level = append(level, differ...)
		}
	}
	return nil
}

// list adds the rows in which some nodes differ.
func (r *run) list(ctx context.Context, p *pair, nodes []Node, out *Result) error {
	if len(out.Differences) >= r.o.DifferencesMax {
		out.AtLeast = true
		out.Total += uint64(len(nodes))
		return nil
	}
	near, far, err := r.scan(ctx, p, Scan{Want: WantRows, Nodes: nodes, BytesPerSecond: r.o.BytesPerSecond})
	if err != nil {
		return err
	}
	a, err := ParseSums(near.result)
	if err != nil {
		return err
	}
	b, err := ParseSums(far.result)
	if err != nil {
		return err
	}
	add := func(kind Kind, key string) {
		out.Total++
		out.Differences = append(out.Differences, Difference{Kind: kind, Key: []byte(key)})
	}
	for key, sum := range a {
		switch other, both := b[key]; {
		case !both:
			add(Missing, key)
		case other != sum:
			add(Different, key)
		}
	}
	for key := range b {
		if _, both := a[key]; !both {
			add(Extra, key)
		}
	}
	return nil
}
