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
	c.saved = map[*member]*vfs.MemFS{}
	for _, m := range c.location(d).members {
		c.saved[m] = m.synced()
	}
	return ""
}

func (c *scenario) restore(d *datadriven.TestData) string {
	c.rewritten = true
	members := c.location(d).members
	for _, m := range members {
		c.down(m, c.saved[m])
		clear(m.owes)
		m.owesChunks = nil
	}
	for _, m := range members {
		m.open()
	}
	return ""
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
	for _, m := range c.nodes(d) {
		if d.HasArg("ahead") {
			var ahead string
			d.ScanArgs(c.t, "ahead", &ahead)
			c.setWrong(m, c.duration(ahead))
		} else {
			c.setRight(m)
		}
	}
	return ""
}
