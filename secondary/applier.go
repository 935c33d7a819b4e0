package secondary

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/replication/receive"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// Stamp is the stamp of this location.
type Stamp interface {
	ranges.Submitter
	ranges.Routed
	// Leader returns the range at its leader, nil while no node of this process leads it.
	Leader(r geo.RangeID) *ranges.Range
	// LeaderNode returns the node that leads the range, in this process or another.
	LeaderNode(r geo.RangeID) (id geo.NodeID, ok bool)
	// Replica returns a replica of this process, which may be behind; nil for none.
	Replica(r geo.RangeID) *ranges.Range
	// Progress reads how far the range has applied its streams, with all that was acknowledged
	// before the call, wherever the leader is.
	Progress(ctx context.Context, r geo.RangeID, src geo.SourceRange, a geo.Account) (cursor.Progress, error)
	// PutChunk makes a chunk durable on the nodes that are up.
	PutChunk(ctx context.Context, ref extent.Ref, data []byte) error
	// HasChunk reports whether the chunk is durable on the leader of a range.
	HasChunk(ref extent.Ref) bool
	// Go runs f on a goroutine that the stamp waits for.
	Go(f func(ctx context.Context))
}

// Applier implements receive.Applier over a stamp.
type Applier struct {
	stamp Stamp
	// from is the table of the ranges of the other location.
	from *route.Table
}

// NewApplier returns the applier of a stamp, which takes records of the ranges in from.
func NewApplier(s Stamp, from *route.Table) *Applier { return &Applier{s, from} }

// errRouted: the keys of a source range are not those of one range here. A batch goes to one range, so it
// cannot be applied.
var errRouted = errors.New("secondary: no range here holds all keys of the source range")

// errNoLeader: the local range has no leader now.
var errNoLeader = errors.New("secondary: the local range has no leader")

// errPartition: the partition of a record is none of its account and service. The record cannot be
// evaluated, here or elsewhere, now or later.
var errPartition = errors.New("secondary: partition of a record that is none")

// local returns the range of this location that takes the records of a source range (R14).
func (a *Applier) local(src geo.SourceRange) (geo.RangeID, error) {
	if d, ok := a.from.Range(src.Range); ok {
		if own := a.stamp.Route().Holding(d.Span); len(own) == 1 {
			return own[0].ID, nil
		}
	}
	return 0, fmt.Errorf("%w: range %d of %s", errRouted, src.Range, src.Origin)
}

// Apply implements receive.Applier.
func (a *Applier) Apply(b *receive.Batch, done func(error)) {
	a.submit(b.Source, &apply{b: b, catalog: replicaOf(a.stamp.Replica(a.stamp.Route().Catalog()))}, done)
}

// submit commits a command in the range that takes the records of a source range, at whichever node leads it.
func (a *Applier) submit(src geo.SourceRange, cmd ranges.Portable, done func(error)) {
	id, err := a.local(src)
	if err != nil {
		done(err)
		return
	}
	if r := a.stamp.Leader(id); r != nil {
		r.Submit(cmd, done)
		return
	}
	if _, known := a.stamp.LeaderNode(id); !known {
		done(errNoLeader)
		return
	}
	a.stamp.Go(func(ctx context.Context) { done(a.stamp.Submit(ctx, id, cmd)) })
}

// Progress implements receive.Applier.
func (a *Applier) Progress(src geo.SourceRange, done func(cursor.Progress, error)) {
	a.stamp.Go(func(ctx context.Context) {
		id, err := a.local(src)
		if err != nil {
			done(cursor.Progress{}, err)
			return
		}
		done(a.stamp.Progress(ctx, id, src, cursor.EveryAccount))
	})
}

// PutPayload implements receive.Applier.
func (a *Applier) PutPayload(ref extent.Ref, data []byte, done func(error)) {
	a.stamp.Go(func(ctx context.Context) { done(a.stamp.PutChunk(ctx, ref, data)) })
}

// HasPayload implements receive.Applier.
func (a *Applier) HasPayload(ref extent.Ref) bool { return a.stamp.HasChunk(ref) }

// Expects implements receive.Applier. Each account that is received has an open gate in every range. The
// catalog's are asked, since every node has a replica of the catalog.
func (a *Applier) Expects(geo.SourceRange) bool {
	cat := a.stamp.Replica(a.stamp.Route().Catalog())
	return cat != nil && cat.Machine.Receiving()
}

// apply is the command that commits a batch of received records.
type apply struct {
	b *receive.Batch
	// catalog is the state that a replica of the catalog at the evaluating node has applied. It
	// may lag behind without harm (R14). Records of an epoch in which it does not hold the account yet
	// wait, and so do those of a generation that it does not hold yet.
	// Within an epoch a replaced or deleted generation never returns. Records applied to a generation whose
	// deletion is not seen yet reach no reader: readers find their generation in the catalog, no
	// other generation can have its number, and whether a generation is closed is looked up in
	// the range itself.
	catalog containers
	// last is the disposition of the previous record, since most batches touch few containers.
	last disposition
	// found is how many bytes of rows this evaluation keeps in the lost-and-found.
	found int
}

// containers are what a replica of the catalog has applied.
type containers interface {
	kv.Getter
	// Gate returns the gate of an account; a later Get sees the state that has it, or a newer one.
	Gate(a geo.Account) (change.Gate, error)
}

// catalogReplica implements containers.
type catalogReplica struct{ *ranges.Range }

// replicaOf returns what a replica of the catalog has applied; r may be nil.
func replicaOf(r *ranges.Range) containers {
	if r == nil {
		return noCatalog{}
	}
	return catalogReplica{r}
}

// Get implements kv.Getter.
func (c catalogReplica) Get(key []byte) ([]byte, bool, error) { return c.State().Get(key) }

// Gate implements containers.
func (c catalogReplica) Gate(a geo.Account) (change.Gate, error) { return c.Machine.Gate(a), nil }

// disposition states how the records of one generation are applied: whole; only the cursor moves;
// or they wait.
type disposition struct {
	account     geo.Account
	container   string
	generation  keys.Generation
	whole, wait bool
}

// Evaluate implements ranges.Command. It sets all outcomes, since it may run again.
func (c *apply) Evaluate(tx *ranges.Tx) error {
	c.last, c.found = disposition{}, 0
	waits := map[geo.Stream]*receive.Record{}
	for _, r := range c.b.Records {
		if r.Ahead = 0; r.Bad != change.NotStopped {
			if r.Outcome = receive.Undecodable; r.Bad == change.StopVersion {
				r.Outcome = receive.UnknownVersion
			}
			continue
		}
		st := r.Record.Stream()
		if before, wait := waits[st]; wait {
			r.Outcome, r.Ahead, r.For = before.Outcome, before.Ahead, before.For
			continue
		}
		var err error
		if r.Outcome, err = c.classifyRecord(tx, r, st); err != nil {
			return err
		}
		switch r.Outcome {
		case receive.Gap, receive.Wait:
			waits[st] = r
		}
	}
	c.b.ClosedTaken, c.b.ClosedAhead = !c.b.ClosedLater, 0
	if c.b.Closed != nil {
		c.b.ClosedTaken = c.close(tx, c.b.Closed)
	}
	return nil
}

// classifyRecord returns the outcome of a record, and stages it if it is applied.
func (c *apply) classifyRecord(tx *ranges.Tx, r *receive.Record, st geo.Stream) (receive.Outcome, error) {
	if why, _ := tx.Stopped(st); why.Reason.Stands() {
		return receive.Stopped, nil
	}
	gate := tx.Gate(st.Account)
	switch cmp := st.Epoch.Compare(gate.Epoch); {
	case cmp < 0: // Also while the gate is closed: it never takes a lower epoch again.
		return receive.Refused, nil
	case cmp > 0 || !gate.Open:
		r.For = receive.WaitsForGate
		return receive.Wait, nil
	case gate.Role != change.RoleSecondary || st.Range != c.b.Source.Range || st.Epoch.Location != c.b.Source.Origin:
		return receive.Refused, nil
	}
	if r.Record.Seq == 0 {
		return receive.Void, nil // It is of no stream.
	}
	known := tx.Known(c.b.Source)
	if r.Record.Incarnation > known.Incarnation {
		tx.TakeClosed(cursor.Recovered(c.b.Source, r.Record.Incarnation))
		known = tx.Known(c.b.Source)
	}
	at, hash := tx.Cursor(st), change.HashOf(r.Bytes)
	switch relation(known, &at, &r.Record, hash) {
	case cursor.Repeated:
		return receive.Duplicate, nil
	case cursor.Missing:
		return receive.Gap, nil
	case cursor.Void:
		return receive.Void, nil
	case cursor.Forked:
		fork(tx, st, at.Applied, geo.Head{Seq: r.Record.Seq, Hash: hash})
		return receive.Fork, nil
	}
	if r.Ahead = tx.Ahead(r.Record.CommitTime); r.Ahead > 0 {
		if taken, err := c.takesAhead(st, r.Ahead); err != nil || !taken {
			r.For = receive.WaitsForClock
			return receive.Wait, err
		}
		r.Ahead = 0
	}
	how, err := c.disposition(tx, &r.Record)
	switch {
	case errors.Is(err, errPartition):
		tx.Stop(st, change.Stop{Reason: change.StopPoison, Here: at.Applied, There: geo.Head{Seq: r.Record.Seq, Hash: hash}})
		return receive.Stopped, nil
	case err != nil:
		return 0, err
	}
	if how.wait {
		r.For = receive.WaitsForGeneration
		return receive.Wait, nil
	}
	if how.whole {
		for _, ref := range r.Record.Chunks {
			if !tx.HasChunk(ref) && !plantedbugs.Planted(plantedbugs.ApplyWithoutPayload) {
				r.For = receive.WaitsForPayload
				return receive.Wait, nil
			}
		}
		if whole, err := c.keepFound(tx, st, &r.Record); err != nil {
			return 0, err
		} else if !whole {
			r.For = receive.WaitsForOther
			return receive.Wait, nil
		}
	}
	return receive.Applied, tx.Received(r.Bytes, &r.Record, how.whole)
}

// aheadMax is how far the time of a record may be ahead that an unplanned failover takes.
const aheadMax = 24 * time.Hour

// takesAhead reports whether a record is taken although its time is ahead of the clock here: while the account fails over to
// this location, since a record that waits then is lost (R20). One that is further ahead than aheadMax would be a lower bound of all
// times here for longer than anybody can wait.
func (c *apply) takesAhead(st geo.Stream, ahead time.Duration) (bool, error) {
	p, err := catalog.GetPromotion(c.catalog, st.Account)
	return err == nil && p != nil && p.Phase == catalog.PromotionApplying && p.GeoEpoch() == st.Epoch && ahead <= aheadMax, err
}

// disposition looks the record's generation up in this location's catalog. A record of a
// generation that the catalog holds is applied. If the catalog deleted or replaced the
// generation, only the cursor moves. If it does not hold the generation yet, the record waits
// (R14).
func (c *apply) disposition(tx *ranges.Tx, r *change.Record) (disposition, error) {
	if r.Service == geo.Catalog || len(r.Ops) == 0 { // One that sets nothing is of no generation: see ranges.Settle.
		return disposition{whole: true}, nil
	}
	p, rest, err := keys.ParsePartition(r.Partition)
	if err != nil || len(rest) > 0 || p.Account != r.Account || p.Service != r.Service {
		return disposition{}, errPartition
	}
	if d := c.last; d.account == p.Account && d.container == p.Container && d.generation == p.Generation {
		return d, nil
	}
	d := disposition{account: p.Account, container: p.Container, generation: p.Generation}
	// In a former epoch the account's copy may have been another one, which held the generation as deleted. It is
	// gone from the group on that opens the gate of the epoch (R17).
	gate, err := c.catalog.Gate(p.Account)
	if err != nil {
		return disposition{}, err
	}
	if gate.Epoch.Compare(r.Epoch) < 0 || gate.Epoch == r.Epoch && !gate.Open {
		d.wait = true
		c.last = d
		return d, nil
	}
	found, wait, err := c.container(p, r.Epoch)
	switch {
	case err != nil:
		return disposition{}, err
	case wait:
		d.wait = true
	case found == nil || found.Generation().Before(p.Generation):
		d.wait = true
	case found.Over(p.Generation):
	default:
		closed, err := tx.GenerationClosed(keys.ClosedGeneration(tx.Range(), p.Service, p.Account, p.Container, p.Generation))
		if err != nil {
			return disposition{}, err
		}
		d.whole = !closed
	}
	c.last = d
	return d, nil
}

// container looks up the container of a generation. By the catalog of a former primary one may be over that lives, until
// that is rewound (R22): then the record waits. The range itself takes records of the epoch from when it is; the replica of
// the catalog may lag behind that.
func (c *apply) container(p keys.Partition, e geo.Epoch) (found *catalog.Container, wait bool, err error) {
	found, err = catalog.Lookup(c.catalog, p.Service, p.Account, p.Container)
	if err != nil || found == nil || !found.Over(p.Generation) {
		return found, false, err
	}
	claim, err := catalog.LostClaim(c.catalog, geo.Catalog, p.Account, e)
	if err != nil || claim == nil {
		return found, false, err
	}
	if !claim.Rewound {
		return nil, true, nil
	}
	found, err = catalog.Lookup(c.catalog, p.Service, p.Account, p.Container) // It may have gone on before the claim was read.
	return found, false, err
}
