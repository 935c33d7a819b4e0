package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"antipode/geo"
	"antipode/test/oracle"
	"antipode/test/rest"
)

const (
	// snapshotsMax is how many snapshots of a blob stay.
	snapshotsMax = 6
	// takenEach bounds the blobs of a client and a kind.
	takenEach = 16
	// snapshotPage is how many entries a listing with snapshots asks for at a time.
	snapshotPage = 4
	// takeInterval is the time between two operations on snapshots.
	takeInterval = 10 * time.Millisecond
)

// errNoID means that a snapshot was answered without its id.
var errNoID = fmt.Errorf("%w: snapshot without an id", ErrContradiction)

// takenOf are the blobs of a client of which snapshots are taken. It writes one of each kind, and another one once a write of
// that has no answer.
type takenOf struct {
	client int
	// inUse counts by kind how often it went on to another one.
	inUse [2]atomic.Int32
}

// key is the one in use of a kind.
func (t *takenOf) key(kind int) string {
	return fmt.Sprintf("%c/c%02d-%02d", [...]byte{kindTaken, kindTakenList}[kind], t.client, t.inUse[kind].Load()%takenEach)
}

// chooseTaken draws the blob that the client writes next.
func (c *client) chooseTaken() string {
	kind, t := c.rng.IntN(2), c.taken[c.id]
	if _, _, ok := c.Oracle.Current(t.key(kind)); !ok {
		t.inUse[kind].Add(1)
	}
	return t.key(kind)
}

// removeTaken deletes a blob with its snapshots.
func (c *client) removeTaken(ctx context.Context, key string) (rest.Answer, error) {
	c.snapshots.Remove(key)
	a, err := c.Primary.DeleteBlobAll(ctx, container, key)
	switch {
	case err != nil && rest.NeverSent(err), isBusy(a, err):
		c.snapshots.NotRemoved(key)
	case err == nil && a.OK():
		c.snapshots.Removed(key, c.soon())
	}
	return a, err
}

// soon is a time that no commit that was answered by now is above.
func (l *Load) soon() geo.Timestamp { return geo.TimestampOf(l.Clock.Now().Add(clockSlack)) }

// taker takes snapshots of blobs of a client, which writes them meanwhile, and reads, lists and deletes them.
type taker struct {
	*Load
	of  *takenOf
	rng *rand.Rand
}

func (t *taker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := t.step(ctx, t.of.key(t.rng.IntN(len(t.of.inUse)))); err != nil {
			if !isNoAnswer(err) {
				return err
			}
			pause(ctx, backoff)
		}
		pause(ctx, takeInterval+t.opts.Pause)
	}
	return nil
}

// step does something to the snapshots of a key.
func (t *taker) step(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWait)
	defer cancel()
	ids, left := t.snapshots.Known(key)
	n := t.rng.IntN(10)
	switch {
	case left == 0 || n < 3 && left < snapshotsMax:
		return t.take(ctx, key)
	case n < 5:
		return t.remove(ctx, key, ids)
	case n < 7:
		return t.list(ctx, key)
	}
	c, sync := t.Primary, oracle.Now
	if t.rng.IntN(2) == 0 {
		stats, err := t.Secondary.Stats(ctx, geo.Blob)
		if err != nil || !stats.Known {
			return fmt.Errorf("%w: %w", errNoAnswer, err)
		}
		c, sync = t.Secondary, geo.TimestampOf(stats.LastSyncTime)
	}
	return t.readSnapshot(ctx, c, key, ids[t.rng.IntN(len(ids))], sync)
}

// take takes a snapshot.
func (t *taker) take(ctx context.Context, key string) error {
	taking := t.snapshots.Take(key)
	a, err := t.Primary.Snapshot(ctx, container, key)
	switch {
	case err != nil && rest.NeverSent(err), isBusy(a, err):
		return fmt.Errorf("%w: snapshot of %s", errNoAnswer, key)
	case err != nil || a.Status >= http.StatusInternalServerError:
		taking.Lost()
		return fmt.Errorf("%w: snapshot of %s", errNoAnswer, key)
	case a.Status == http.StatusNotFound:
		return taking.NotThere()
	case a.Status != http.StatusCreated:
		return fmt.Errorf("%w: snapshot of %s: %v", ErrContradiction, key, a)
	}
	id, at, ok := a.SnapshotID()
	if !ok {
		return fmt.Errorf("%w: %s: %v", errNoID, key, a.Header)
	}
	if err := taking.Acked(id, at); err != nil {
		return err
	}
	t.count(SnapshotsTaken)
	return nil
}

// remove deletes one of the snapshots of a key, that may be gone already.
func (t *taker) remove(ctx context.Context, key string, ids []string) error {
	id := ids[t.rng.IntN(len(ids))]
	if may, _ := t.snapshots.Standing(key, id, oracle.Now); !may {
		return nil
	}
	d := t.snapshots.Delete(key, id)
	a, err := t.Primary.DeleteSnapshot(ctx, container, key, id)
	switch {
	case err != nil && rest.NeverSent(err), isBusy(a, err):
		d.Kept()
		return fmt.Errorf("%w: deleting a snapshot of %s", errNoAnswer, key)
	case err != nil || a.Status >= http.StatusInternalServerError:
		return fmt.Errorf("%w: deleting a snapshot of %s", errNoAnswer, key)
	case a.Status == http.StatusNotFound:
		return d.NotThere(t.soon())
	case a.Status != http.StatusAccepted:
		return fmt.Errorf("%w: deleting the snapshot of %s at %s: %v", ErrContradiction, key, id, a)
	}
	d.Acked(t.soon())
	t.count(SnapshotsDeleted)
	return nil
}

// readSnapshot reads a snapshot where everything up to the sync time has arrived.
func (l *Load) readSnapshot(ctx context.Context, c *rest.Client, key, id string, sync geo.Timestamp) error {
	may, _ := l.snapshots.Standing(key, id, sync)
	r, err := readContent(ctx, c, key, id)
	if err == nil {
		_, must := l.snapshots.Standing(key, id, sync)
		err = l.snapshots.Read(key, id, r, may, must)
	}
	if err != nil && !isNoAnswer(err) {
		return fmt.Errorf("snapshot: %w", err)
	}
	if err == nil && r.Present {
		l.count(SnapshotsRead)
	}
	return err
}

// list lists a key with its snapshots at the primary.
func (t *taker) list(ctx context.Context, key string) error {
	_, err := t.listSnapshots(ctx, t.Primary, key)
	if err == nil {
		t.count(SnapshotLists)
	}
	return err
}

// listSnapshots lists a key with its snapshots, all of which must show and no other. It returns what is there.
func (l *Load) listSnapshots(ctx context.Context, c *rest.Client, key string) (there map[string]bool, err error) {
	ids, _ := l.snapshots.Known(key)
	may := map[string]bool{}
	for _, id := range ids {
		may[id], _ = l.snapshots.Standing(key, id, oracle.Now)
	}
	found, err := pagesOf(ctx, c, key)
	if err != nil {
		return nil, err
	}
	there = map[string]bool{}
	for id, r := range found {
		allowed, known := may[id]
		if !known {
			t, err := time.Parse(time.RFC3339Nano, id)
			if err == nil {
				err = l.snapshots.Adopt(key, id, geo.TimestampOf(t))
			}
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errListing, err)
			}
			allowed = true
		}
		there[id] = true
		if err := l.snapshots.Read(key, id, r, allowed, false); err != nil {
			return nil, fmt.Errorf("%w: %w", errListing, err)
		}
	}
	for _, id := range ids {
		if _, must := l.snapshots.Standing(key, id, oracle.Now); must && !there[id] {
			return nil, fmt.Errorf("%w: %w: snapshot of %s at %s", errListing, oracle.ErrLost, key, id)
		}
	}
	return there, nil
}

// pagesOf lists the snapshots of a key, page by page. They must come in order, and before the blob.
func pagesOf(ctx context.Context, c *rest.Client, key string) (map[string]oracle.Read, error) {
	found := map[string]oracle.Read{}
	last, whole := "", false
	for marker := ""; ; {
		page, a, err := c.ListBlobs(ctx, container, rest.BlobListing{Prefix: key, Max: snapshotPage, Marker: marker, Snapshots: true})
		if err := unanswered("a page of snapshots", a, err); err != nil {
			return nil, err
		}
		for _, b := range page.Blobs {
			if b.Name != key || whole || b.Snapshot != "" && b.Snapshot <= last || len(page.Blobs) > snapshotPage {
				return nil, fmt.Errorf("%w: %s %s follows %s, after the blob: %t, on a page of %d",
					errListing, b.Name, b.Snapshot, last, whole, len(page.Blobs))
			}
			if whole = b.Snapshot == ""; whole {
				continue
			}
			last = b.Snapshot
			if found[last], err = listedBlob(b); err != nil {
				return nil, fmt.Errorf("%w: %s: %w", errListing, last, err)
			}
		}
		if marker = page.NextMarker; marker == "" {
			return found, nil
		}
	}
}

// resolveSnapshots lists and reads all snapshots at the primary while nobody does anything. What is not there then never comes.
func (l *Load) resolveSnapshots(ctx context.Context) error {
	return l.forSnapshots(func(key string) error {
		var there map[string]bool
		err := answered(ctx, func() (err error) {
			there, err = l.listSnapshots(ctx, l.Primary, key)
			return err
		})
		if err != nil {
			return err
		}
		l.snapshots.Resolved(key, there, l.soon())
		return l.readSnapshots(ctx, l.Primary, key)
	})
}

// finalSnapshots lists and reads all snapshots at the secondary, which has everything.
func (l *Load) finalSnapshots(ctx context.Context) error {
	return l.forSnapshots(func(key string) error {
		err := answered(ctx, func() error {
			_, err := l.listSnapshots(ctx, l.Secondary, key)
			return err
		})
		return errors.Join(err, l.readSnapshots(ctx, l.Secondary, key))
	})
}

// readSnapshots reads all snapshots of a key, those that are gone too, where everything has arrived.
func (l *Load) readSnapshots(ctx context.Context, c *rest.Client, key string) error {
	ids, _ := l.snapshots.Known(key)
	for _, id := range ids {
		err := answered(ctx, func() error { return l.readSnapshot(ctx, c, key, id, oracle.Now) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Load) forSnapshots(check func(key string) error) error {
	var errs []error
	for _, key := range l.snapshots.Keys() {
		errs = append(errs, check(key))
	}
	return errors.Join(errs...)
}

// newest is the greatest commit time among what was acknowledged of append blobs, snapshots and copies.
func (l *Load) newest() (at geo.Timestamp) {
	for _, b := range l.logs() {
		at = max(at, b.Newest())
	}
	return max(at, l.snapshots.Newest(), l.copies.Newest())
}

// snapshotDemand is a snapshot that the secondary must show, or show no more.
type snapshotDemand struct {
	key, id string
	gone    bool
}

// dueSnapshots are the demands of a sync time on snapshots that were not met before.
func (s *Sampler) dueSnapshots(lastSync geo.Timestamp) (out []snapshotDemand) {
	for _, key := range s.load.snapshots.Keys() {
		ids, _ := s.load.snapshots.Known(key)
		for _, id := range ids {
			may, must := s.load.snapshots.Standing(key, id, lastSync)
			if d := (snapshotDemand{key, id, !may}); (must || !may) && !s.checkedSnapshots[d] {
				out = append(out, d)
			}
		}
	}
	return out
}

// checkSnapshot reads one of them. What the server does not answer stays due.
func (s *Sampler) checkSnapshot(ctx context.Context, d snapshotDemand, lastSync geo.Timestamp) error {
	err := s.load.readSnapshot(ctx, s.secondary, d.key, d.id, lastSync)
	if isNoAnswer(err) {
		return nil
	}
	s.checkedSnapshots[d] = true
	return err
}
