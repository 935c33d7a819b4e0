package membership

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/durable"
	"antipode/stamp/feature"
	"antipode/stamp/ranges"
)

// ErrPlacement: the file placement is damaged, or the configuration does not fit it.
var ErrPlacement = errors.New("cannot determine which nodes have which ranges")

const placementVersion = 1

// PlacementSum is the checksum of a placement, by which nodes compare theirs. It is never 0,
// which a node of a version without placements sends.
type PlacementSum uint64

// SumOf returns the checksum of a placement.
func SumOf(p ranges.Placement) PlacementSum {
	b := EncodePlacement(p)
	return 1<<32 | PlacementSum(binary.LittleEndian.Uint32(b[len(b)-4:]))
}

// EncodePlacement is what the file has twice: docs/format/placement.md.
func EncodePlacement(p ranges.Placement) []byte {
	b := binary.LittleEndian.AppendUint16([]byte{placementVersion}, uint16(len(p.Nodes)))
	for _, n := range p.Nodes {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(p.Ranges)))
	for _, id := range slices.Sorted(maps.Keys(p.Ranges)) {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
		for _, n := range p.Ranges[id] {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	}
	return binary.LittleEndian.AppendUint32(b, crc.Of(b))
}

// ReadPlacement decodes the file placement, which has a placement twice. ErrPlacement: both are damaged.
func ReadPlacement(file []byte) (ranges.Placement, error) {
	p, err := durable.ParseTwice(file, ParsePlacement)
	if errors.Is(err, ErrPlacement) {
		return p, fmt.Errorf("%w: the file is damaged, twice: copy it from another node of the stamp", err)
	}
	return p, err
}

// ParsePlacement decodes what b begins with.
func ParsePlacement(b []byte) (ranges.Placement, error) {
	const node, placed = 8, 4 + 8*ranges.Replicas
	p := ranges.Everywhere(nil)
	le, at := binary.LittleEndian, 3
	if len(b) > 0 && b[0] > placementVersion && crc.Fits(b) {
		return p, feature.Later("the file placement", uint64(b[0]), placementVersion)
	}
	if len(b) < at || b[0] != placementVersion {
		return p, ErrPlacement
	}
	nodes := b[at:]
	at += node * int(le.Uint16(b[1:]))
	if len(b) < at+2 {
		return p, ErrPlacement
	}
	nodes, rest := nodes[:at-3], b[at+2:]
	at += 2 + placed*int(le.Uint16(b[at:]))
	if len(b) < at+4 || crc.Of(b[:at]) != le.Uint32(b[at:]) {
		return p, ErrPlacement
	}
	rest = rest[:len(rest)-(len(b)-at)]
	var ok bool
	if p.Nodes, ok = parseNodes(nodes); !ok {
		return p, ErrPlacement
	}
	last := geo.RangeID(0)
	for ; len(rest) > 0; rest = rest[placed:] {
		id := geo.RangeID(le.Uint32(rest))
		on, ok := parseNodes(rest[4:placed])
		if !ok || id <= last {
			return p, ErrPlacement
		}
		p.Ranges[id], last = on, id
	}
	return p, nil
}

// parseNodes decodes ascending nodes that fill b.
func parseNodes(b []byte) (list []geo.NodeID, ok bool) {
	last := geo.NodeID(0)
	for ; len(b) > 0; b = b[8:] {
		n := geo.NodeID(binary.LittleEndian.Uint64(b))
		if n <= last {
			return nil, false
		}
		list, last = append(list, n), n
	}
	return list, true
}
