package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"antipode/directory"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// One seed in sweepingEvery is a run with sweepers, in which clients delete containers often and create others
// under their names. The other seeds are played as if there were no sweepers.
const sweepingEvery = 3

// sweepPause is the pause between two rounds of a sweeper.
const sweepPause = 100 * time.Millisecond

// sweeping is the sweeper of a location and when it wants to be stepped.
type sweeping struct {
	*directory.Sweeper
	at    time.Duration
	swept uint64
}

// sweep begins to sweep, also in place of a sweeper that died with its process.
func (l *location) sweep() {
	var data []geo.RangeID
	for _, svc := range l.s.used {
		data = append(data, geo.FirstRange(svc))
	}
	l.sweeping = sweeping{at: l.s.now, Sweeper: directory.NewSweeper(directory.SweeperOptions{
		Stamp: catalogReader{l}, Catalog: geo.FirstRange(geo.Catalog), Ranges: data, Every: sweepPause,
		Leader: func(id geo.RangeID) *ranges.Range {
			if m := l.newest(id); m != nil && !m.stands() {
				return m.n.Range(id)
			}
			return nil
		},
	})}
}

// sweepStep steps the sweeper, if there is one and it is due.
func (l *location) sweepStep() (busy bool) {
	if l.sweeping.Sweeper == nil || l.s.now < l.sweeping.at {
		return false
	}
	l.sweeping.at = l.s.now + l.sweeping.Step(context.Background())
	n := l.sweeping.Swept()
	l.s.counts.Swept += n - l.sweeping.swept
	l.sweeping.swept = n
	l.wake()
	return true
}

// catalogReader reads the catalog at a leader whose lease holds. One that has none asks for it.
type catalogReader struct{ l *location }

// Read implements ranges.Reader.
func (c catalogReader) Read(_ context.Context, id geo.RangeID, f func(ranges.State) error) error {
	m := c.l.newest(id)
	if m == nil || m.stands() {
		return ranges.ErrNotLeader
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // It must not wait for a lease.
	err := m.n.Range(id).Read(ctx, f)
	m.dirty = true
	return err
}

// recreated returns a creation under the name of a container that was deleted, nil if there is none. Its operation is
// in its metadata, since its name is that of another one.
func (s *Sim) recreated(a *account, svc geo.Service) *catalog.Create {
	var names []string
	for _, c := range a.containers[svc] {
		if c.deleted {
			names = append(names, c.name)
		}
	}
	if len(names) == 0 || s.chance(0.3) {
		return nil
	}
	id := []catalog.Pair{{Name: "op", Value: strconv.Itoa(len(s.ops))}}
	return &catalog.Create{Service: svc, Account: a.name, Name: names[s.rng.IntN(len(names))], Metadata: id}
}

// creationOf returns the operation that created a container whose name is that of the operation id, or of a later
// creation.
func creationOf(id int, stored *catalog.Container) int {
	for _, pair := range stored.Metadata {
		if n, err := strconv.Atoi(pair.Value); err == nil {
			return n
		}
	}
	return id
}

// checkWipe: no rows are wiped but those of one generation whose deletion took effect, which at the primary is
// closed before (R8).
func (h *history) checkWipe(lower, upper []byte) {
	if h.checkCopyWipe(lower) || h.reopened(lower) || h.disowned(lower, upper) {
		return
	}
	p, whole, err := keys.ParseSpan(lower, upper)
	if err != nil || !whole {
		h.fail(ErrSwept, "%x to %x: no generation", lower, upper)
		return
	}
	c := h.s.container(p)
	ended := c != nil && (c.deleted || c.strayed[h.l.parity] || slices.Contains(h.s.account(p.Account).strays, c))
	if !ended || !h.over(p) && !h.former(p.Account) || h.m.gates[p.Account].Role == change.RolePrimary && !c.closed[h.l.parity] {
		h.fail(ErrSwept, "%s of %s", p.Container, p.Account)
	}
}

// disowned reports whether a wipe is that of a container that a lost change created: a former primary which is rewound has
// the containers of the present one, and takes nothing of the account in the range yet (R22).
func (h *history) disowned(lower, upper []byte) bool {
	p, whole, err := keys.ParseSpan(lower, upper)
	g := h.m.gates[p.Account]
	if err != nil || !whole || g.Role != change.RoleSecondary || g.Open {
		return false
	}
	a, c := h.s.account(p.Account), h.s.container(p)
	lost := c != nil && (c.deleted || slices.Contains(a.strays, c)) // What was created and deleted by lost changes is no stray.
	if !lost || a.home == h.l || h.over(p) || h.knows(c) {
		return false
	}
	h.s.counts.StrayWiped++
	return true
}

// reopened takes that no generation of an account is closed here any more: its copy is deleted.
func (h *history) reopened(lower []byte) bool {
	for _, a := range h.s.accounts {
		if string(lower) != string(keys.ClosedGenerations(h.id, h.svc, a.name)) {
			continue
		}
		if h.m.gates[a.name].Role == change.RolePrimary {
			h.fail(ErrSwept, "what %s has closed", a.name)
		}
		for _, c := range append(slices.Clone(a.containers[h.svc]), a.strays...) {
			c.closed[h.l.parity] = c.closed[h.l.parity] && c.service != h.svc
		}
		return true
	}
	return false
}

// knows reports whether the catalog here has a generation.
func (h *history) knows(c *container) bool {
	p := catalog.ContainerPartition(c.service, c.account.name, c.name)
	stored, err := catalog.ParseContainer([]byte(h.l.history[geo.FirstRange(geo.Catalog)].m.parts[string(p.Append(nil))][""]))
	return err == nil && stored.Generation() == c.generation
}

// over reports whether the catalog here has deleted or replaced a generation.
func (h *history) over(p keys.Partition) bool {
	rows := h.l.history[geo.FirstRange(geo.Catalog)].m.parts[string(catalog.ContainerPartition(p.Service, p.Account, p.Container).Append(nil))]
	c, err := catalog.ParseContainer([]byte(rows[""]))
	return err == nil && c.Over(p.Generation)
}

// former reports whether the range still has the copy of an account that the catalog here has deleted.
func (h *history) former(a geo.Account) bool {
	return h.m.gates[a].Epoch.Compare(h.l.history[geo.FirstRange(geo.Catalog)].m.gates[a].Epoch) < 0
}

// unswept returns which rows of a deleted container are still here, "" for none.
func (h *history) unswept() string {
	if h.l.sweeping.Sweeper == nil {
		return ""
	}
	for part, rows := range h.m.parts {
		p, _, err := keys.ParsePartition([]byte(part))
		if err == nil && len(rows) > 0 && p.Service != geo.Catalog && !keptAside(p.Account) && h.over(p) {
			return fmt.Sprintf("%s: rows of %s of %s are not swept", h.l.name, p.Service, p.Account)
		}
	}
	return ""
}

// reclose records that a generation is closed in what a recovery kept of the log.
func (h *history) reclose(kind change.PartKind, key []byte) {
	if kind != change.PartGeneration {
		return
	}
	if c := h.closedBy(key); c != nil {
		c.closed[h.l.parity] = true
	}
}

// closedBy returns the container that a key of keys.ClosedGeneration names, nil for none.
func (h *history) closedBy(key []byte) *container {
	for _, a := range h.s.accounts {
		for _, c := range append(slices.Clone(a.containers[h.svc]), a.strays...) {
			if string(keys.ClosedGeneration(h.id, h.svc, a.name, c.name, c.generation)) == string(key) {
				return c
			}
		}
	}
	return nil
}
