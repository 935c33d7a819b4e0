package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"

	"antipode/geo"
	"antipode/test/oracle"
	"antipode/test/rest"
)

// client writes the keys that carry its number, one at a time.
type client struct {
	*Load
	id  int
	rng *rand.Rand
	// staged holds, per blob in blocks, the version whose blocks are all
	// acknowledged and in no list yet. A crash must leave them.
	staged map[string]oracle.Version
}

// verb is what a write does to the value.
type verb uint8

const (
	insert verb = iota // a whole value, over whatever there is
	merge              // a part of the value: an entity's half, metadata, the first block
	resume             // a list of blocks that were uploaded before
	remove
)

// operation is one write.
type operation struct {
	key    string
	verb   verb
	v      oracle.Version
	before oracle.State
	// state is what the write leaves when it is applied.
	state oracle.State
	// match is an If-Match that holds: "*" or the tag. It is used where there is
	// something to match.
	match string
	// doomed is set on a write whose condition cannot hold.
	doomed bool
}

func (op operation) String() string {
	return fmt.Sprintf("%s, version %d (%v, If-Match %s, doomed %t) over %v",
		op.key, op.v, [...]string{"insert", "merge", "resume", "remove"}[op.verb], op.match, op.doomed, op.before)
}

// errUntouched means that what would have changed the value was never sent.
var errUntouched = errors.New("not sent")

func (c *client) run(ctx context.Context) error {
	for ctx.Err() == nil {
		key := c.chooseKey()
		if isBig(key) && c.bigLeft.Add(-1) < 0 {
			continue
		}
		took := false
		if state, etag, ok := c.Oracle.Current(key); ok {
			var err error
			if took, err = c.step(ctx, key, state, etag); err != nil {
				return err
			}
		}
		if !took {
			pause(ctx, backoff)
		}
		if c.opts.Pause > 0 {
			pause(ctx, c.opts.Pause)
		}
	}
	return nil
}

// chooseKey draws one of the client's keys. Partitions are shared between
// clients, so that their writes meet in groups.
func (c *client) chooseKey() string {
	if key, ok := c.chooseLong(); ok {
		return key
	}
	n := c.rng.IntN(100)
	switch {
	case c.id < c.opts.Taken && c.rng.IntN(2) == 0:
		return c.chooseTaken()
	case n < 4 && c.id < c.opts.BigClients:
		return fmt.Sprintf("%c/c%02d", kindBig, c.id)
	case n < 9 && c.id < c.opts.BigClients:
		return fmt.Sprintf("%c/c%02d", kindBigBlocks, c.id)
	case n < 19:
		return fmt.Sprintf("%c/c%02d-%d", kindSmall, c.id, c.rng.IntN(c.opts.BlobsEach))
	case n < 26:
		return fmt.Sprintf("%c/c%02d-%d", kindBlocks, c.id, c.rng.IntN(c.opts.BlocksEach))
	case n < 38:
		k := c.rng.IntN(c.opts.GroupsEach)
		return fmt.Sprintf("%c/p%d/g%02d-%d", kindGroup, (c.id+k)%partitions, c.id, k)
	}
	k := c.rng.IntN(c.opts.EntitiesEach)
	return fmt.Sprintf("%c/p%d/c%02d-%02d", kindEntity, k%partitions, c.id, k)
}

// step makes one write of key. took is false if nothing happened and the server
// should be given a moment.
func (c *client) step(ctx context.Context, key string, s oracle.State, etag string) (took bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWait)
	defer cancel()
	if inBlocks(key) {
		if base, ok := c.staged[key]; ok && c.rng.IntN(2) == 0 {
			return c.resume(ctx, key, base, s)
		} else if !ok && c.rng.IntN(5) == 0 {
			return c.abandon(ctx, key)
		}
	}
	return c.write(ctx, c.begin(key, s, etag))
}

// begin chooses a write of key and registers it with the oracle.
func (c *client) begin(key string, s oracle.State, etag string) operation {
	op := operation{key: key, before: s, match: "*"}
	if c.rng.IntN(2) == 0 && etag != "" {
		op.match = etag
	}
	switch {
	case !s.Present:
	case c.rng.IntN(20) == 0:
		op.verb, op.doomed = merge, true
	case c.rng.IntN(5) == 0:
		op.verb = remove
	case key[0] == kindEntity || c.rng.IntN(2) == 0:
		op.verb = merge
	}
	switch op.verb {
	case remove:
		op.v = c.Oracle.Delete(key)
	case merge:
		op.v = c.Oracle.Merge(key)
		op.state = oracle.State{Present: true, Last: op.v, Base: s.Base}
	default:
		op.v = c.Oracle.Insert(key)
		op.state = oracle.State{Present: true, Last: op.v, Base: op.v}
	}
	return op
}

// write sends one write and reports its outcome to the oracle.
func (c *client) write(ctx context.Context, op operation) (took bool, err error) {
	began := c.Clock.Mono()
	a, err := c.send(ctx, op)
	if c.opts.OnWrite != nil {
		c.opts.OnWrite(c.Clock.Mono()-began, a, err)
	}
	switch {
	case errors.Is(err, ErrContradiction):
		return false, fmt.Errorf("%v: %w", op, err)
	case op.doomed:
		return c.refused(op, a, err)
	case errors.Is(err, errUntouched), err != nil && rest.NeverSent(err), isBusy(a, err):
		c.Oracle.Refused(op.key, op.v)
		return false, nil
	case err != nil || a.Status >= http.StatusInternalServerError:
		c.Oracle.Lost(op.key, op.v)
		delete(c.staged, op.key)
		return false, nil
	case !a.OK():
		return false, fmt.Errorf("%w: %v: %v", ErrContradiction, op, a)
	}
	at, etag := geo.TimestampOf(c.Clock.Now().Add(clockSlack)), "" // a delete leaves no tag, whatever it says
	if op.verb != remove {
		var ok bool
		if at, ok = a.CommitTime(); !ok {
			return false, fmt.Errorf("%w: %v: ETag %q holds no time", ErrContradiction, op, a.Header.Get("ETag"))
		}
		etag = a.Header.Get("ETag")
	}
	c.Oracle.Acked(op.key, op.v, etag, at)
	delete(c.staged, op.key) // The list, or the delete, has dropped them.
	c.count(op.kind())
	return true, nil
}

// refused concludes a write whose condition could not hold: it was not done, and if
// there is an answer it says so.
func (c *client) refused(op operation, a rest.Answer, err error) (took bool, _ error) {
	c.Oracle.Refused(op.key, op.v)
	if err != nil || a.Status >= http.StatusInternalServerError {
		return false, nil
	}
	if a.Status != http.StatusPreconditionFailed && a.Status != http.StatusConflict {
		return false, fmt.Errorf("%w: %v: %v", ErrContradiction, op, a)
	}
	c.count(Refused)
	return true, nil
}

// kind is what an acknowledged write counts as.
func (op operation) kind() Kind {
	switch {
	case op.verb == resume:
		return Resumed
	case op.verb == merge && isPut(op.key):
		return Metadata
	}
	return map[byte]Kind{
		kindEntity: Entities, kindGroup: Transactions, kindSmall: SmallBlobs, kindBig: BigBlobs,
		kindBlocks: BlockLists, kindBigBlocks: BigBlockLists, kindTaken: SmallBlobs, kindTakenList: BlockLists,
		kindLongList: LongLists,
	}[op.key[0]]
}

func (c *client) send(ctx context.Context, op operation) (rest.Answer, error) {
	switch {
	case op.key[0] == kindEntity:
		return c.sendEntity(ctx, op)
	case op.key[0] == kindGroup:
		return c.sendGroup(ctx, op)
	case op.verb == remove && isTaken(op.key):
		return c.removeTaken(ctx, op.key)
	case op.verb == remove:
		return c.Primary.DeleteBlob(ctx, container, op.key)
	case inBlocks(op.key):
		return c.sendBlocks(ctx, op)
	}
	return c.sendBlob(ctx, op)
}
