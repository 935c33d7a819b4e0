package sim

import (
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// A damaged chunk that the store leaves out, since no record vouches for it, is not repaired before a copy of it is there:
// rows name it.
func TestChunkTakenForTornIsUnrepaired(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, slow under the race detector")
	}
	c := &scenario{t: t}
	defer c.end()
	do := func(cmd string, args ...string) {
		d := &datadriven.TestData{Cmd: cmd}
		for i := 0; i < len(args); i += 2 {
			d.CmdArgs = append(d.CmdArgs, datadriven.CmdArg{Key: args[i], Vals: []string{args[i+1]}})
		}
		commands[cmd](c, d)
	}
	do("open", "service", "blob")
	do("write", "photo", "1")
	m, refs := c.far.member(1), c.newestOf("photo").payload.refs
	ref := refs[len(refs)-1] // The record of each other one is followed by one that vouches for it.
	require.True(t, c.runUntil(drainMax, func() bool { return m.n.Extents().Durable(ref.ID) && c.far.names(ref.ID) }))
	c.corruptChunk(m, ref)
	require.NotEmpty(t, m.corrupted)
	do("kill", "location", "south", "node", "1")
	require.Contains(t, m.unrepaired(), "chunk not found")
	do("heal")
	c.runFor(4 * time.Second)
	require.Empty(t, m.unrepaired())
	require.Empty(t, m.corrupted)
	require.NoError(t, c.err)
}
