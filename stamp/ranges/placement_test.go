package ranges

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
)

// A range is on three nodes that differ in fault and upgrade domain whenever the stamp has
// three such nodes, as trying all of them shows; else on as many fault domains as there
// can be, and then on as many upgrade domains. The order in which the nodes are listed
// changes nothing.
//
// Capability: Storage on a node: Fault and upgrade domains.
func TestPlace(t *testing.T) {
	ids := []geo.RangeID{1, 2, 3, 4, 5, 6, 7}
	rapid.Check(t, func(t *rapid.T) {
		domain := func(kind string) *rapid.Generator[string] {
			return rapid.SampledFrom([]string{"", kind + "1", kind + "2", kind + "3", kind + "4", kind + "5"})
		}
		numbers := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 40), 1, 9, rapid.ID[uint64]).Draw(t, "nodes")
		var sites []Site
		bySite := map[geo.NodeID]Site{}
		for i, n := range numbers {
			s := Site{geo.NodeID(n), domain("f").Draw(t, fmt.Sprint("fault", i)), domain("u").Draw(t, fmt.Sprint("upgrade", i))}
			sites = append(sites, s)
			bySite[s.Node] = s
		}
		p := Place(sites, 1, ids)
		require.Equal(t, p, Place(rapid.Permutation(sites).Draw(t, "order"), 1, rapid.Permutation(ids).Draw(t, "ids")))
		require.Len(t, p.Nodes, len(sites))
		require.Equal(t, p.Nodes, p.Of(geo.FirstRange(geo.Catalog)))

		mostFault, mostUpgrade, both := 0, 0, false
		for i := range sites {
			for j := range i {
				for k := range j {
					fault, upgrade := Domains(sites[i], sites[j], sites[k])
					both = both || fault == 3 && upgrade == 3
					if fault > mostFault || fault == mostFault && upgrade > mostUpgrade {
						mostFault, mostUpgrade = fault, upgrade
					}
				}
			}
		}
		for _, id := range ids[1:] {
			on := p.Of(id)
			require.True(t, slices.IsSorted(on))
			require.Len(t, slices.Compact(slices.Clone(on)), min(3, len(sites)))
			var at []Site
			for _, n := range on {
				require.Contains(t, bySite, n)
				at = append(at, bySite[n])
			}
			if len(sites) < 3 {
				continue
			}
			fault, upgrade := Domains(at...)
			require.Equal(t, []int{mostFault, mostUpgrade}, []int{fault, upgrade}, "range %d on %v", id, on)
			require.True(t, !both || fault == 3 && upgrade == 3)
		}
	})
}

// Where domains leave the choice, no node has more than one range more than another.
//
// Capability: Storage on a node: Fault and upgrade domains.
func TestPlaceBalances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		apart := rapid.Bool().Draw(t, "no domain shared")
		var sites []Site
		for n := range rapid.IntRange(3, 12).Draw(t, "nodes") {
			s := Site{Node: geo.NodeID(n + 1)}
			if apart {
				s.Fault, s.Upgrade = fmt.Sprint("f", n), fmt.Sprint("u", n)
			}
			sites = append(sites, s)
		}
		var ids []geo.RangeID
		for id := range rapid.IntRange(2, 20).Draw(t, "ranges") {
			ids = append(ids, geo.RangeID(id+1))
		}
		p := Place(sites, 1, ids)
		load := map[geo.NodeID]int{}
		for _, id := range ids[1:] {
			for _, n := range p.Of(id) {
				load[n]++
			}
		}
		least, most := len(ids), 0
		for _, s := range sites {
			least, most = min(least, load[s.Node]), max(most, load[s.Node])
		}
		require.LessOrEqual(t, most-least, 1, "%v", load)
	})
}
