package membership

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"antipode/geo"
	"antipode/stamp/replica"
)

// TestScenarios runs the files of testdata: what happens to a range of three nodes, the effects
// of the machines beside messages, and after each step one line for each node.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		g := newGroup(1, 2, 3)
		datadriven.RunTest(t, path, g.run)
	})
}

// run is one step. "node" and "n" are its arguments:
//
//	stamp            three nodes that joined, of which node 1 leads
//	start, crash     a node; start damaged: its store was put in quarantine; start empty: its
//	                 folder is a new one
//	crash-before     a node crashes before it carries out the effect that the input begins
//	fail             the replica of a running node finds that it lost what it had promised
//	cut, heal        a node is cut off from the others
//	elect            a node stands for election
//	write            the leader appends n entries
//	tick             n ticks of all nodes
//	reform           an operator re-forms the range from the survivor of the nodes that are up
//	                 and not cut off; reform untrusted: also from a lost replica
func (g *group) run(t *testing.T, d *datadriven.TestData) string {
	id, count := 0, 1
	d.MaybeScanArgs(t, "node", &id)
	d.MaybeScanArgs(t, "n", &count)
	n := g.nodes[0]
	if id != 0 {
		n = g.node(geo.NodeID(id))
	}
	g.log.Reset()
	switch d.Cmd {
	case "stamp":
		g.begin(n)
		g.log.Reset()
	case "start":
		if d.HasArg("empty") {
			n.empty()
		}
		if d.HasArg("damaged") {
			n.disk.damaged = true
			n.breakPromises()
		}
		n.start()
	case "crash":
		n.crash()
	case "fail":
		n.breakPromises()
		n.carryOut(Lose{fmt.Errorf("%w: the log ends early", replica.ErrLost)})
		n.keepLost()
	case "crash-before":
		n.crashAt = strings.TrimSpace(d.Input)
		return "armed"
	case "cut", "heal":
		n.cut = d.Cmd == "cut"
	case "elect":
		g.elect(n)
	case "write":
		g.write(uint64(count))
	case "tick":
		g.ticks(count)
	case "reform":
		best, as, err := Survivor(g.surveys(), d.HasArg("untrusted"))
		if err != nil {
			return err.Error()
		}
		g.node(best.Node).step(Reform{As: as})
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	if strings.Contains(g.log.String(), breaksR4) {
		t.Errorf("%s: %s", d.Pos, g.log.String()) // -rewrite must not make it the expected output.
	}
	return g.log.String() + g.state()
}

// begin starts all nodes of a new stamp and makes one of them the leader.
func (g *group) begin(leader *modelNode) {
	for _, n := range g.nodes {
		n.start()
	}
	g.ticks(2)
	g.elect(leader)
	g.write(3)
	g.ticks(1)
}

func (g *group) ticks(n int) {
	for range n {
		g.tick()
	}
}

// write appends to the log of each leader. Whether it is acknowledged shows in the next tick.
func (g *group) write(n uint64) {
	for _, l := range g.nodes {
		if l.leads {
			l.append(n)
		}
	}
}
