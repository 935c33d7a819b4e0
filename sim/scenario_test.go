package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/failover/unplanned"
	"antipode/geo"
	"antipode/replication/bus"
	"antipode/stamp/change"
	"antipode/stamp/node"
)

// TestScenarios plays the stories of testdata. Each is a script for the world that Run plays
// seeds in: two locations of three nodes, production types, virtual time, and every check of
// errors.go. Nothing happens by chance. The account is written in north, its primary, and read
// in south, its secondary; the locations are 10 ms apart.
//
// Every command prints what came of it, and then one line with what everyone sees: see view.
//
//	open [service=blob]              start both locations; the account keeps entities, or blobs in two chunks each
//	write a=1 b=1                    write keys one after the other, each acknowledged before the next
//	read location=north node=2       read all keys at this node, which answers while it holds a lease; a paused one
//	                                 answers as it does when it goes on and has received nothing yet
//	run 300ms                        let time pass
//	drain                            let time pass until south has everything and every replica is in sync; then compare all
//	cut link                         nothing passes between the locations
//	cut calls                        no call does, and no payload; the stream flows
//	cut bus                          the stream does not; calls pass
//	cut location=north node=leader   the node cannot reach its peers, nor they it
//	lag 500ms                        one way over the link takes this much longer
//	gap [frames=1]                   the bus confirms the next frames with changes, and loses them
//	lose payload                     chunks pushed or pulled over the link are lost
//	lose offer                       offers of accounts are lost on their way to the other location
//	lose answer                      their answers are lost
//	wipe bus                         the bus is deleted, with all it holds, and made again
//	wipe location=north node=2       the node restarts with an empty disk
//	kill location=north node=all     power is lost: all that was not synced is gone; the nodes stay down
//	pause location=north node=leader   the process stands still, its clock does not
//	flush location=south node=all    the state stores write to disk what they hold in memory
//	fill location=north node=2       the disk of the node has no room
//	corrupt location=north node=2 key=a   a bit of the node's copy of a chunk flips
//	save location=north              copy the disks of all nodes of the location
//	restore location=north           put those copies back: the location forgets what came later
//	recover location=north node=3    an operator recovers the service's range from this node, which its peers reach again,
//	                                 and accepts the loss of what others held; prints the acknowledged writes that are lost
//	start location=north node=1      a node that is down starts
//	clock location=north node=leader ahead=10m   the wall clock of the node goes wrong; without ahead it is right again
//	move [within=300ms]              an operator asks for a planned move of the account, which open moves allows: then north
//	                                 and south in this text are the account's primary and secondary as they are now
//	promote                          an operator asks for an unplanned failover to the secondary
//	cancel                           and for its end
//	rebuild                          and for the copy to be made again
//	heal                             end all faults; nodes that are down start
//
// node is a number, leader (of the service's range) or all.
// A command is a method of scenario in the table of commands.
//
// Capability: Storage on a node: A disk that is nearly full.
// Capability: Proofs: Recoveries with loss under a cut of calls, at either end, and a wrong clock, step by step.
// Capability: Proofs: Planned failovers in the simulator (R19).
// Capability: The house: Scenarios that a person can read.
func TestScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, slow under the race detector")
	}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		c := &scenario{t: t}
		defer c.end()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			c.t = t
			run, ok := commands[d.Cmd]
			if !ok {
				d.Fatalf(t, "there is no command %q", d.Cmd)
			}
			require.True(t, d.Cmd == "open" || c.Sim != nil, "the first command is open")
			out := run(c, d)
			require.NoError(t, c.err, "a promise is broken at %s", d.Pos)
			c.follow()
			out += c.view() + "\n"
			require.NoError(t, c.err, "a promise is broken at %s", d.Pos)
			return out
		})
	})
}

// commands are what a scenario file can say.
var commands = map[string]func(*scenario, *datadriven.TestData) string{
	"open": (*scenario).open, "write": (*scenario).write, "read": (*scenario).readAt, "run": (*scenario).run, "drain": (*scenario).drainAll,
	"cut": (*scenario).cut, "lag": (*scenario).setLag, "gap": (*scenario).gap, "lose": (*scenario).lose, "wipe": (*scenario).wipe,
	"kill": (*scenario).kill, "pause": (*scenario).stopProcess, "flush": (*scenario).flush, "fill": (*scenario).fill, "corrupt": (*scenario).corrupt,
	"save": (*scenario).save, "restore": (*scenario).restore, "heal": (*scenario).healAll,
	"recover": (*scenario).recoverRange, "start": (*scenario).start, "clock": (*scenario).setClock,
	"move": (*scenario).move, "promote": (*scenario).promote, "cancel": (*scenario).cancel, "rebuild": (*scenario).rebuild,
}

// scenario is one file under way.
type scenario struct {
	*Sim
	t *testing.T
	// home is the account's primary, far its secondary.
	home, far *location
	account   *account
	service   geo.Service
	// written are the keys in the order of their first write, acked the acknowledged writes in
	// the order of their answers.
	written []string
	acked   []ackedWrite
	// events are the alarms, and what nodes reported to the operator, since the last view.
	events []string
	// saved are disks that restore puts back.
	saved map[*member]*vfs.MemFS
	// seed is that of the world, 1 in the stories of testdata.
	seed uint64
	// lease is how long a lease of the witness lives, zero for any time.
	lease time.Duration
}

// ackedWrite is an acknowledged write, as key=value, with its commit time.
type ackedWrite struct {
	word string
	at   geo.Timestamp
}

const (
	// distance is how long one way over the link takes at least.
	distance = 10 * time.Millisecond
	// answerMax is how long a client waits for its answer, and for a leader to ask.
	answerMax = 2 * time.Second
)

func (c *scenario) open(d *datadriven.TestData) string {
	service := geo.Table.String()
	d.MaybeScanArgs(c.t, "service", &service)
	svc, err := geo.ParseService(service)
	require.NoError(c.t, err)
	c.Sim, c.service = newSim(Options{Seed: cmp.Or(c.seed, 1), Tee: c.listen}), svc
	c.batchBytesMax, c.logBytesMax, c.flushEntries = 1<<20, 1<<30, 20_000
	c.inSyncTimeout, c.lag = 200*time.Millisecond, distance
	if d.HasArg("moves") {
		c.moves = rand.New(rand.NewPCG(1, 1))
		c.story = func() {} // Its account has a copy from the start.
		c.promotions = rand.New(rand.NewPCG(1, 2))
		c.promotionTimes = unplanned.Times{Within: 10 * time.Second, Quiet: 600 * time.Millisecond, Most: 2 * time.Second}
	}
	if d.HasArg("witness") {
		c.fences = rand.New(rand.NewPCG(1, 3))
		c.third = newThird(c.Sim, rand.New(rand.NewPCG(1, 4)))
		c.third.leases = cmp.Or(c.lease, c.third.leases)
		c.failovers, c.away = rand.New(rand.NewPCG(1, 5)), 0.4 // Many clients go on with the former primary.
	}
	c.build(stampNodes(1))
	c.boot()
	require.NoError(c.t, c.err)
	c.account = c.accounts[0]
	require.True(c.t, c.account.record.Redundancy.Geo())
	c.follow()
	c.startChecks()
	c.runFor(bootTime)
	return ""
}

func (c *scenario) end() {
	if c.Sim != nil {
		c.close()
	}
}

// listen takes the lines of the event log and keeps those that the next view shows.
func (c *scenario) listen(line string) {
	words := strings.Fields(line)
	event := ""
	switch {
	case len(words) == 4 && words[2] == "alarm":
		event = words[1] + " " + words[3] + " alarm"
	case len(words) > 5 && words[2] == "node" && slices.Contains(shownEvents, node.EventKind(strings.TrimSuffix(words[5], ":"))):
		event = words[1] + "-" + strings.TrimSuffix(words[3], ":") + " " + strings.TrimSuffix(words[5], ":")
	}
	if event != "" && !slices.Contains(c.events, event) {
		c.events = append(c.events, event)
	}
}

// shownEvents are the events of nodes that a view shows: leaders and in-sync sets are shown
// by themselves.
var shownEvents = []node.EventKind{
	node.ReplicaLost, node.ReplicaRebuilding, node.ReplicaPromoted, node.ChunksRepaired, node.StoreDamaged, node.DiskFull, node.DiskHasRoom,
	node.ClockOff, node.LeaderTransferred,
}

func (c *scenario) run(d *datadriven.TestData) string {
	c.runFor(c.duration(d.CmdArgs[0].Key))
	return ""
}

func (c *scenario) duration(word string) time.Duration {
	length, err := time.ParseDuration(word)
	require.NoError(c.t, err)
	return length
}

func (c *scenario) drainAll(*datadriven.TestData) string {
	target, began := geo.TimestampOf(c.clock.Now()), c.now
	var why string
	if c.runUntil(drainMax, func() bool {
		why = c.undrained(target)
		return why == ""
	}) {
		if !c.rewritten {
			c.checkEnd()
		}
		return fmt.Sprintf("drained within %v\n", (c.now - began + 99*time.Millisecond).Truncate(100*time.Millisecond))
	}
	return fmt.Sprintf("not drained within %v: %s\n", drainMax, why)
}

func (c *scenario) cut(d *datadriven.TestData) string {
	switch {
	case d.HasArg("link"):
		c.setLink(true, true)
		return ""
	case d.HasArg("calls"):
		c.setLink(true, c.busCut)
		return ""
	case d.HasArg("bus"):
		c.setLink(c.callsCut, true)
		return ""
	case d.HasArg("nothing"):
		c.setLink(false, false)
		return ""
	}
	for _, m := range c.nodes(d) {
		m.l.net.isolated[m.id] = true
	}
	return ""
}

func (c *scenario) setLag(d *datadriven.TestData) string {
	c.lag = distance + c.duration(d.CmdArgs[0].Key)
	return ""
}

func (c *scenario) gap(d *datadriven.TestData) string {
	frames := 1
	d.MaybeScanArgs(c.t, "frames", &frames)
	c.far.bus.LoseIf(func(m bus.Message) bool {
		f, err := change.ParseFrame(m.Data)
		if err != nil || len(f.Records) == 0 || frames == 0 {
			return false
		}
		frames--
		return true
	})
	return ""
}

func (c *scenario) lose(d *datadriven.TestData) string {
	if answer := d.HasArg("answer"); answer || d.HasArg("offer") {
		c.losesCall = func(method string, ofAnswer bool) bool {
			return strings.HasSuffix(method, ".Offer") && ofAnswer == answer
		}
		return ""
	}
	c.rates.pushLose, c.rates.pullLose = 1, 1
	return ""
}

func (c *scenario) wipe(d *datadriven.TestData) string {
	if d.HasArg("bus") {
		c.far.bus.Wipe()
		return ""
	}
	for _, m := range c.nodes(d) {
		m.loseDisk(diskGone)
		m.life++ // It starts at once.
		m.open()
	}
	return ""
}

func (c *scenario) kill(d *datadriven.TestData) string {
	for _, m := range c.nodes(d) {
		c.down(m, m.crashed())
	}
	return ""
}

// down ends a node, which is left with disk and stays down until heal.
func (c *scenario) down(m *member, disk *vfs.MemFS) {
	if m.n != nil {
		m.die(disk)
	}
	m.life++ // The start that die has planned is void.
}

func (c *scenario) stopProcess(d *datadriven.TestData) string {
	for _, m := range c.nodes(d) {
		m.paused = true
	}
	return ""
}

func (c *scenario) flush(d *datadriven.TestData) string {
	for _, m := range c.nodes(d) {
		m.flush()
	}
	return ""
}

func (c *scenario) fill(d *datadriven.TestData) string {
	for _, m := range c.nodes(d) {
		m.full = true
	}
	return ""
}

func (c *scenario) corrupt(d *datadriven.TestData) string {
	var key string
	d.ScanArgs(c.t, "key", &key)
	for _, m := range c.nodes(d) {
		c.corruptChunk(m, c.newestOf(key).payload.refs[0])
		require.NotEmpty(c.t, m.corrupted, "no bit was flipped")
	}
	return ""
}

// newestOf is the last acknowledged write of a key.
func (c *scenario) newestOf(key string) *op {
	var newest *op
	for _, o := range c.ops {
		if o.outcome == acked && o.numbered != nil && o.write.Partition().Object == key {
			newest = o
		}
	}
	require.NotNil(c.t, newest, "%s was not written", key)
	return newest
}

func (c *scenario) healAll(*datadriven.TestData) string {
	c.heal()
	c.lag, c.losesCall = distance, nil
	c.far.bus.LoseIf(nil)
	return ""
}

// location is the one that a command names.
func (c *scenario) location(d *datadriven.TestData) *location {
	var name string
	d.ScanArgs(c.t, "location", &name)
	for _, l := range c.locations {
		if string(l.name) == name {
			return l
		}
	}
	d.Fatalf(c.t, "there is no location %q", name)
	return nil
}

// nodes are those that a command names.
func (c *scenario) nodes(d *datadriven.TestData) []*member {
	var name string
	d.ScanArgs(c.t, "node", &name)
	l := c.location(d)
	switch name {
	case "all":
		return l.members
	case "leader":
		m := l.newest(geo.FirstRange(c.service))
		require.NotNil(c.t, m, "nobody leads")
		return []*member{m}
	}
	n, err := strconv.Atoi(name)
	require.NoError(c.t, err)
	return []*member{l.member(geo.NodeID(n))}
}
