package sim

import (
	"slices"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// The commands that set a location back, recover a range, and set clocks.

func (c *scenario) save(d *datadriven.TestData) string {
	c.saveDisks(c.location(d).members)
	return ""
}

func (c *scenario) saveDisks(of []*member) {
	c.saved = map[*member]*vfs.MemFS{}
	for _, m := range of {
		c.saved[m] = m.synced()
	}
}

func (c *scenario) restore(d *datadriven.TestData) string {
	c.setBack(c.location(d))
	return ""
}

// setBack restarts the nodes of a location, those whose disks were saved on what was saved.
func (c *scenario) setBack(l *location) {
	c.rewritten = true
	for _, m := range l.members {
		disk := c.saved[m]
		if disk == nil {
			disk = m.synced()
		}
		c.down(m, disk)
		m.damaged = true // It may be found to have lost what it had.
		clear(m.owes)
		m.owesChunks = nil
	}
	for _, m := range l.members {
		m.open()
	}
}

func (c *scenario) recoverRange(d *datadriven.TestData) string {
	m := c.nodes(d)[0]
	r := &recovery{l: m.l, id: geo.FirstRange(c.service), survivor: m, old: map[*member]bool{}}
	m.l.recovery = r
	delete(m.l.net.isolated, m.id)
	require.True(c.t, c.runUntil(answerMax, func() bool { return r.reform() == nil }), "%v", r.reform())
	var lost []string
	for _, o := range c.ops {
		if o.outcome == acked && o.lost {
			lost = append(lost, c.acked[slices.IndexFunc(c.acked, func(w ackedWrite) bool { return w.at == o.numbered.at })].word)
		}
	}
	return "lost: " + orNone(lost) + "\n"
}

func (c *scenario) start(d *datadriven.TestData) string {
	for _, m := range c.nodes(d) {
		m.open()
	}
	return ""
}

func (c *scenario) setClock(d *datadriven.TestData) string {
	ahead := "0s"
	d.MaybeScanArgs(c.t, "ahead", &ahead)
	nodes := c.nodes(d)
	for _, m := range nodes {
		switch {
		case len(nodes) == len(m.l.members): // They leap together, and may be started so.
			m.l.leapt, m.l.startedLeapt, c.wrongClocks = c.duration(ahead), -len(nodes), true
		case ahead != "0s":
			c.setWrong(m, c.duration(ahead))
		default:
			c.setRight(m)
		}
	}
	return ""
}
