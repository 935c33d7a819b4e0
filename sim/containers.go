package sim

import (
	"context"
	"fmt"
	"strings"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// objectServices are the services of objects that clients write and read: see client. They carry the workload of every run.
var objectServices = [...]geo.Service{geo.Table, geo.Blob} //nolint:gochecknoglobals // A table.

// container is a table or a blob container of an account, from its creation's effect on.
type container struct {
	account    *account
	service    geo.Service
	name       string
	generation keys.Generation
	// creation is the number of the write that creates it, deletion and closing are those that delete it (R8), -1 before them.
	creation, deletion, closing int
	// deleted means that its deletion took effect in the catalog, after so many moves of the account. closed that its range
	// in a location committed that it takes no more changes, by the location's parity.
	deleted   bool
	deletedIn int
	closed    [2]bool
	// strayed means that a location committed its deletion, by its parity, and the account's primary does not have that.
	strayed [2]bool
}

// partition is a partition of the container.
func (c *container) partition(object string) keys.Partition {
	return keys.Partition{
		Service: c.service, Account: c.account.name, Container: c.name, Generation: c.generation, Object: object,
	}
}

// drawContainer draws where to write or read. The newest one is used at once, so that a record
// may arrive before its container; a deleted one is written to by clients that have not learned
// of the deletion.
func (s *Sim) drawContainer(a *account, svc geo.Service) *container {
	all := a.containers[svc]
	if s.chance(0.5) {
		return all[s.rng.IntN(len(all))]
	}
	return all[len(all)-1]
}

// newContainer makes a container whose name holds its operation, or a deleted one again.
func (s *Sim) newContainer(a *account, svc geo.Service) *op {
	if s.sweeps {
		if again := s.recreated(a, svc); again != nil {
			return s.newOp(a, again)
		}
	}
	return s.newOp(a, &catalog.Create{Service: svc, Account: a.name, Name: fmt.Sprintf("c%d", len(s.ops))})
}

// deleteContainer deletes a container as the front end does: first in the catalog,
// then in the range. A client that fails half way leaves it at that.
func (s *Sim) deleteContainer(a *account, svc geo.Service, done func()) {
	all := a.containers[svc]
	c := all[s.rng.IntN(len(all))]
	if c.deletion >= 0 || len(all) == 1 {
		done()
		return
	}
	o := s.newOp(a, &catalog.Delete{Service: svc, Account: a.name, Name: c.name})
	c.deletion = o.id
	s.submit(o, func() {
		if o.outcome == acked {
			_ = o.l.primary.CloseGeneration(context.Background(), svc, a.name, c.name, c.generation) // errTaken: see intake.
			closing := s.takeOp(a, o.l, geo.FirstRange(svc))
			c.closing = closing.id
			s.submit(closing, done)
			return
		}
		done()
	})
}

// container finds a container by its generation, nil if it is not known.
func (s *Sim) container(p keys.Partition) *container {
	for _, c := range s.account(p.Account).containers[p.Service] {
		if c.generation == p.Generation {
			return c
		}
	}
	for _, c := range s.account(p.Account).strays {
		if c.generation == p.Generation && c.service == p.Service {
			return c
		}
	}
	return nil
}

// parseContainerName reads what newContainer made; ok is false for another name of
// the catalog.
func parseContainerName(object string) (svc geo.Service, id int, ok bool) {
	kind, name, found := strings.Cut(object, "/")
	svc, err := geo.ParseService(kind)
	if !found || err != nil {
		return 0, 0, false
	}
	_, err = fmt.Sscanf(name, "c%d", &id)
	return svc, id, err == nil
}

// tookContainer records that a creation or a deletion took effect.
func (h *history) tookContainer(svc geo.Service, id int, p keys.Partition, r *change.Record, index uint64) {
	stored, err := catalog.ParseContainer(r.Ops[0].Value)
	if err != nil {
		h.s.fail(err)
		return
	}
	if stored.Deleted != 0 {
		c := h.s.container(keys.Partition{Account: p.Account, Service: svc, Generation: stored.Generation()})
		if h.tookOp(c.deletion, string(r.Partition), index, r.CommitTime); h.s.ops[c.deletion].lost {
			c.strayed[h.l.parity] = true
			return
		}
		c.deleted, c.deletedIn = true, c.account.moved
		return
	}
	id = creationOf(id, stored)
	h.tookOp(id, string(r.Partition), index, r.CommitTime)
	a := h.s.ops[id].account
	c := &container{
		account: a, service: svc, name: stored.Name, generation: stored.Generation(), creation: id, deletion: -1, closing: -1,
	}
	if h.s.ops[id].lost {
		a.strays = append(a.strays, c)
		return
	}
	a.containers[svc] = append(a.containers[svc], c)
}

// tookClosing records that a generation takes no more changes from here on. A sweeper closes one too, whose client
// did not or not yet: the client's closing then has its effect already.
func (h *history) tookClosing(key []byte, index uint64) {
	c := h.closedBy(key)
	if c == nil {
		return
	}
	c.closed[h.l.parity] = true
	if c.closing < 0 || h.s.ops[c.closing].l != h.l {
		return
	}
	if o := h.s.ops[c.closing]; !h.s.sweeps || o.index == 0 && o.outcome != refused {
		h.tookOp(c.closing, string(key), index, h.m.last)
	}
}

// checkOpen: no change of a generation follows its closing in the log (R8).
func (h *history) checkOpen(p keys.Partition, r *change.Record) {
	if c := h.s.container(p); c == nil || c.closed[h.l.parity] {
		h.fail(ErrDeleted, "%s at %d", p.Container, r.CommitTime)
	}
}

// checkSkipped: only the records of a generation that the catalog here has deleted may be skipped (R14), and those of a
// copy that the catalog has deleted as a whole and the range is about to: its catalog knows no containers (R17).
func (h *history) checkSkipped(r *change.Record) {
	p, _, err := keys.ParsePartition(r.Partition)
	if err != nil {
		h.s.fail(err)
		return
	}
	if !h.over(p) && !h.former(p.Account) {
		h.fail(ErrSkipped, "%s #%d of %s", r.Stream(), r.Seq, p.Container)
		return
	}
	h.s.counts.Skipped++
}

// comparable drops the rows of deleted containers, of which the other location may have skipped some,
// and those of streams that are stopped.
func (s *Sim) comparable(rows map[string]string) map[string]string {
	for k := range rows {
		p, _, err := keys.ParsePartition([]byte(k))
		if err != nil {
			s.fail(err)
		}
		if p == catalog.StreamPartition() || keptAside(p.Account) { // Each location keeps its own.
			delete(rows, k)
			continue
		}
		moved := s.moves != nil && (p == catalog.AccountPartition(p.Account) || !s.account(p.Account).hasCopy()) // See unmoved.
		if p.Service != geo.Catalog && s.container(p).deleted || moved || s.inStopped(p) {
			delete(rows, k)
		}
	}
	return rows
}
