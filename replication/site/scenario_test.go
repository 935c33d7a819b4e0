package site

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// Stories of the sites of two processes, a and b: testdata holds what happens to each and what it does then.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/sites", func(t *testing.T, path string) {
		now := time.Duration(0)
		sites := map[string]*Machine{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "wait" {
				step, err := time.ParseDuration(d.CmdArgs[0].String())
				require.NoError(t, err)
				now += step
				return ""
			}
			if d.Cmd == "process" {
				sites[d.CmdArgs[0].String()] = New(Options{Whole: d.HasArg("whole"), Ranges: []geo.RangeID{1, 2, 3, 4}})
				return ""
			}
			m := sites[d.Cmd]
			require.NotNil(t, m, "no process %s", d.Cmd)
			var out []string
			for _, line := range strings.Split(d.Input, "\n") {
				effects := m.Step(now, parseEvent(t, line))
				for _, e := range effects {
					out = append(out, describe(e))
				}
			}
			s, term := m.State()
			return strings.Join(append(out, fmt.Sprintf("%s, term %d", s, term), ""), "\n")
		})
	})
}

func parseEvent(t *testing.T, line string) Event {
	words := strings.Fields(line)
	n := func(i int) (v uint64) {
		_, err := fmt.Sscan(words[i], &v)
		require.NoError(t, err, line)
		return v
	}
	switch words[0] {
	case "look":
		return Look{Term(n(1))}
	case "known":
		return Known{Term(n(1)), time.Unix(int64(n(2)), 0).UTC()}
	case "failed":
		return Failed{Term(n(1))}
	case "ended":
		return Ended{Term(n(1))}
	case "stop":
		return Stop{}
	case "node-started":
		e := NodeStarted{Node: geo.NodeID(n(1))}
		for i := range words[2:] {
			e.Ranges = append(e.Ranges, geo.RangeID(n(2+i)))
		}
		return e
	case "node-stops":
		return NodeStops{geo.NodeID(n(1))}
	}
	t.Fatalf("no event: %s", line)
	return nil
}

func describe(e Effect) string {
	switch e := e.(type) {
	case Read:
		return fmt.Sprintf("read what the location knows, for term %d", e.Term)
	case StartReceiver:
		return fmt.Sprintf("start a receiver for term %d, of the stream of %d", e.Term, e.Incarnation.Unix())
	case EndReceiver:
		return fmt.Sprintf("end the receiver of term %d", e.Term)
	case StartShipper:
		return fmt.Sprintf("ship range %d from node %d", e.Range, e.Node)
	case StopShipper:
		return fmt.Sprintf("stop shipping range %d from node %d", e.Range, e.Node)
	}
	panic(fmt.Sprintf("no effect %T", e))
}
