package load

import (
	"context"
	"fmt"
	"net/http"

	"antipode/test/oracle"
	"antipode/test/rest"
)

// The ways in which blocks break a promise.
var (
	// errUncommitted means that a reader sees blocks that no list has committed.
	errUncommitted = fmt.Errorf("%w: uncommitted block shows", ErrContradiction)
	// errBlockLost means that an acknowledged block cannot be committed.
	errBlockLost = fmt.Errorf("%w: block", oracle.ErrLost)
)

// block is one block of a blob: its first, which every list brings again, or one of
// the body, which a list that is a merge takes over from the list before.
type block struct {
	v     oracle.Version
	index int
	size  int
}

// id has the same length for every block, as the protocol wants it.
func (b block) id() string { return fmt.Sprintf("version-%08d-%02d", b.v, b.index) }

func (b block) bytes(key string) []byte { return bytesOf(key, b.id(), b.size) }

// blocksOf are the blocks of a blob's value: the first of the last write's version,
// the body of the base's.
func blocksOf(key string, s oracle.State) []block {
	return append([]block{firstBlock(key, s.Last)}, bodyBlocks(key, s.Base)...)
}

func firstBlock(key string, v oracle.Version) block {
	if key[0] == kindBigBlocks {
		return block{v: v, size: 1 << 20}
	}
	return block{v: v, size: 700}
}

// Of the body of a long list: the rows of its blocks, which travel in the log, are longer than half a MiB, so a copy of it goes
// in steps (DESIGN R9).
const (
	longBlocks     = 40
	longBlockBytes = 15 << 10
)

// bodyBlocks are of sizes on both sides of what travels in the log.
func bodyBlocks(key string, base oracle.Version) []block {
	if key[0] == kindLongList {
		var out []block
		for i := range longBlocks {
			out = append(out, block{v: base, index: i + 1, size: longBlockBytes})
		}
		return out
	}
	if key[0] == kindBigBlocks {
		return []block{{v: base, index: 1, size: 4 << 20}, {v: base, index: 2, size: 1 << 20}}
	}
	var out []block
	for i := range 1 + int(base)%4 {
		out = append(out, block{v: base, index: i + 1, size: [...]int{2 << 10, 17 << 10, 40 << 10}[(int(base)+i)%3]})
	}
	return out
}

// sendBlocks uploads the blocks that a write brings and then sends the list. What
// fails before the list leaves the blob as it was.
func (c *client) sendBlocks(ctx context.Context, op operation) (rest.Answer, error) {
	fresh := []block{firstBlock(op.key, op.v)}
	if op.verb == insert {
		fresh = blocksOf(op.key, op.state)
	}
	if err := c.stage(ctx, op.key, fresh); err != nil {
		return rest.Answer{}, err
	}
	if c.rng.IntN(3) == 0 {
		if err := c.unchanged(ctx, op.key); err != nil {
			return rest.Answer{}, err
		}
	}
	var list []rest.Block
	for i, b := range blocksOf(op.key, op.state) {
		source := rest.Uncommitted
		switch {
		case op.v%3 == 0:
			source = rest.Latest
		case i > 0 && op.verb == merge:
			source = rest.Committed
		}
		list = append(list, rest.Block{ID: b.id(), Source: source})
	}
	w := rest.BlobWrite{Metadata: blobMetadata(op.state), IfNoneMatch: "*"}
	if op.before.Present {
		w.IfNoneMatch, w.IfMatch = "", op.match
	}
	if op.doomed {
		w.IfMatch = noBlobTag
	}
	return c.Primary.PutBlockList(ctx, container, op.key, list, w)
}

// stage uploads blocks. An error is errUntouched, or a contradiction.
func (c *client) stage(ctx context.Context, key string, blocks []block) error {
	for _, b := range blocks {
		a, err := c.Primary.PutBlock(ctx, container, key, b.id(), b.bytes(key))
		switch {
		case err != nil || a.Status >= http.StatusInternalServerError:
			return fmt.Errorf("%w: %s, block %s: %v, %w", errUntouched, key, b.id(), a, err)
		case a.Status != http.StatusCreated:
			return fmt.Errorf("%w: block %s: %v", ErrContradiction, b.id(), a)
		}
	}
	return nil
}

// unchanged requires that a blob shows its last committed value. Only the client of
// the key can ask for that, before it sends a list.
func (c *client) unchanged(ctx context.Context, key string) error {
	r, err := readBlob(ctx, c.Primary, key)
	if err == nil {
		err = c.Oracle.Final(key, r)
	}
	if err != nil && !isNoAnswer(err) {
		return fmt.Errorf("%w: %w", errUncommitted, err)
	}
	return nil
}

// abandon uploads the body of a value and leaves it without a list, for resume.
func (c *client) abandon(ctx context.Context, key string) (took bool, err error) {
	v := c.Oracle.Insert(key)
	err = c.stage(ctx, key, bodyBlocks(key, v))
	c.Oracle.Refused(key, v)
	if isUntouched(err) {
		return false, nil
	}
	if err == nil {
		c.staged[key] = v
		err = c.unchanged(ctx, key)
	}
	return err == nil, err
}

// resume finds the blocks of an abandoned upload as a client does that has lost its
// memory, by the list of the uncommitted ones, and commits them.
func (c *client) resume(ctx context.Context, key string, base oracle.Version, before oracle.State) (took bool, err error) {
	if err := checkStaged(ctx, c.Primary, key, base); err != nil {
		if isNoAnswer(err) {
			err = nil
		}
		return false, err
	}
	v := c.Oracle.Resume(key, base)
	return c.write(ctx, operation{
		key: key, verb: resume, v: v, before: before, match: "*",
		state: oracle.State{Present: true, Last: v, Base: base},
	})
}

// checkStaged requires that the blocks of an abandoned upload are listed.
func checkStaged(ctx context.Context, c *rest.Client, key string, base oracle.Version) error {
	lists, a, err := c.GetBlockList(ctx, container, key)
	if !notThere(a, err) {
		if err := unanswered(key, a, err); err != nil {
			return err
		}
	}
	found := map[string]int64{}
	for _, b := range lists.Uncommitted {
		found[b.ID] = b.Size
	}
	for _, b := range bodyBlocks(key, base) {
		if found[b.id()] != int64(b.size) {
			return fmt.Errorf("%w: %s, %s: uncommitted are %v", errBlockLost, key, b.id(), lists.Uncommitted)
		}
	}
	return nil
}

// checkAllStaged is checkStaged of every upload that was abandoned, while nobody writes.
func (l *Load) checkAllStaged(ctx context.Context) error {
	for _, c := range l.clients {
		for key, base := range c.staged {
			if err := answered(ctx, func() error { return checkStaged(ctx, l.Primary, key, base) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkBlockList requires that the committed blocks of a blob are those of a value of a key that was just read there. If the blob
// has changed since, the check is skipped.
func checkBlockList(ctx context.Context, c *rest.Client, container, name, key string, r oracle.Read) error {
	lists, a, err := c.GetBlockList(ctx, container, name)
	if !notThere(a, err) {
		if err := unanswered(name, a, err); err != nil {
			return err
		}
	}
	if tag := a.Header.Get("ETag"); tag != r.ETag {
		return fmt.Errorf("%w: %s: changed from %s to %q between two reads", errNoAnswer, name, r.ETag, tag)
	}
	want := blocksOf(key, r.State)
	for i, b := range lists.Committed {
		if len(want) != len(lists.Committed) || b.ID != want[i].id() || b.Size != int64(want[i].size) {
			return fmt.Errorf("%w: %s: %v has blocks %v, its list says %v", errTorn, key, r.State, want, lists.Committed)
		}
	}
	if len(lists.Committed) == 0 {
		return fmt.Errorf("%w: %s: %v has an empty block list", errTorn, key, r.State)
	}
	return nil
}
