package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"antipode/geo"
	"antipode/test/oracle"
	"antipode/test/rest"
)

const (
	// logContainer holds the append blobs, so that the listings of the other blobs do not show them.
	logContainer = "crash-logs"
	// appenders is how many clients share an append blob.
	appenders = 3
	// logRecordsMax and logBytesMax bound an append blob. Then its clients go on with a new one.
	logRecordsMax = 200
	logBytesMax   = 512 << 10
	// logsKept is how many full append blobs of a slot stay. Older ones are deleted once the secondary has shown them, or,
	// if there are logsMax, before.
	logsKept = 1
	logsMax  = 4
	// logReadInterval is the time between two reads of append blobs beside the clients.
	logReadInterval = 100 * time.Millisecond
)

// logBlob is an append blob and what is known of it.
type logBlob struct {
	*oracle.Log
	name string

	mu sync.Mutex
	// retired is set before the deletion is sent. Guarded by mu.
	retired bool
}

// begin is Begin, unless the blob is retired.
func (b *logBlob) begin(size, position int64) (n oracle.Version, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.retired {
		return 0, false
	}
	return b.Begin(size, position), true
}

// isFull reports whether no more records should come.
func (b *logBlob) isFull() bool { return b.Begun() >= logRecordsMax || b.Floor() >= logBytesMax }

// retire keeps clients from a blob that is to be deleted, unless one of them waits for an answer.
func (b *logBlob) retire() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retired = b.retired || !b.Pending()
	return b.retired
}

func (b *logBlob) isRetired() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.retired
}

// slot is a place for one append blob after the other.
type slot struct {
	*Load
	number int

	mu sync.Mutex
	// blobs are those that are there, the last is in use. Guarded by mu.
	blobs []*logBlob
	// generation is the number of the next, and making is set while a client makes it. Guarded by mu.
	generation int
	making     bool
}

// log returns the append blob in use, and makes a new one when it is full; nil if there is none at the moment.
func (s *slot) log(ctx context.Context) (*logBlob, error) {
	s.mu.Lock()
	if n := len(s.blobs); n > 0 && !s.blobs[n-1].isFull() {
		defer s.mu.Unlock()
		return s.blobs[n-1], nil
	}
	if s.making {
		defer s.mu.Unlock()
		return nil, nil //nolint:nilnil // Another client makes it.
	}
	s.making = true
	name := fmt.Sprintf("a%d-%d", s.number, s.generation)
	s.mu.Unlock()

	a, err := s.Primary.CreateAppendBlob(ctx, logContainer, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making = false
	switch {
	case err != nil || a.Status >= http.StatusInternalServerError:
		return nil, nil //nolint:nilnil,nilerr // The same name is tried again: it does not replace what this one may have made.
	case a.Status != http.StatusCreated && a.Status != http.StatusConflict:
		return nil, fmt.Errorf("%w: making %s: %v", ErrContradiction, name, a)
	}
	s.generation++
	b := &logBlob{Log: &oracle.Log{}, name: name}
	s.blobs = append(s.blobs, b)
	return b, nil
}

// all returns the blobs of a slot that are there.
func (s *slot) all() []*logBlob {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.blobs)
}

// logs returns the append blobs that are there.
func (l *Load) logs() (all []*logBlob) {
	for _, s := range l.slots {
		all = append(all, s.all()...)
	}
	return all
}

// logReader reads the append blobs at both locations beside the clients, and deletes old ones.
type logReader struct {
	*Load
	rng *rand.Rand
}

func (r *logReader) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if all := r.logs(); len(all) > 0 {
			b, at := all[r.rng.IntN(len(all))], r.readAt
			if r.rng.IntN(2) == 0 {
				at = r.readThere
			}
			if err := at(ctx, b); err != nil && !isNoAnswer(err) {
				return err
			}
		}
		for _, s := range r.slots {
			if err := r.prune(ctx, s); err != nil && !isNoAnswer(err) {
				return err
			}
		}
		pause(ctx, logReadInterval)
	}
	return nil
}

// readAt reads a blob at the primary, which shows at least what it has shown and acknowledged before.
func (l *Load) readAt(ctx context.Context, b *logBlob) error {
	floor := b.Floor()
	found, _, err := readLog(ctx, l.Primary, b.name)
	if err == nil {
		err = b.AtPrimary(found, floor)
	}
	return l.readOf(b, err, "the primary")
}

// readThere reads a blob at the secondary, which shows at least what Last Sync Time has passed.
func (l *Load) readThere(ctx context.Context, b *logBlob) error {
	_, err := l.readSynced(ctx, b)
	return err
}

// readSynced is readThere. It reports whether the secondary shows all that was acknowledged.
func (l *Load) readSynced(ctx context.Context, b *logBlob) (all bool, err error) {
	stats, err := l.Secondary.Stats(ctx, geo.Blob)
	if err != nil || !stats.Known {
		return false, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	floor := b.FloorAt(geo.TimestampOf(stats.LastSyncTime))
	found, _, err := readLog(ctx, l.Secondary, b.name)
	if err == nil {
		err = b.AtSecondary(found, floor)
	}
	return floor == b.Floor(), l.readOf(b, err, "the secondary")
}

// readOf is the outcome of a read of a blob.
func (l *Load) readOf(b *logBlob, err error, where string) error {
	switch {
	case err == nil:
		l.count(LogReads)
	case b.isRetired():
		return nil // It may be gone.
	case !isNoAnswer(err):
		return fmt.Errorf("%s, at %s: %w", b.name, where, err)
	}
	return err
}

// prune deletes the oldest blob of a slot, if there are more than are kept.
func (r *logReader) prune(ctx context.Context, s *slot) error {
	all := s.all()
	if len(all) <= 1+logsKept {
		return nil
	}
	b := all[0]
	if !b.isRetired() {
		synced, err := r.readSynced(ctx, b)
		if err != nil && (!isNoAnswer(err) || len(all) < logsMax) {
			return err
		}
		if !synced && len(all) < logsMax {
			return nil
		}
		if err := r.readAt(ctx, b); err != nil || !b.retire() {
			return err
		}
	}
	a, err := r.Primary.DeleteBlob(ctx, logContainer, b.name)
	if !a.OK() && !notThere(a, err) {
		return fmt.Errorf("%w: deleting %s: %v, %w", errNoAnswer, b.name, a, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs = slices.DeleteFunc(s.blobs, func(o *logBlob) bool { return o == b })
	return nil
}

// forLogs reads every append blob that is not about to be deleted through c and checks it.
func (l *Load) forLogs(
	ctx context.Context, c *rest.Client, check func(b *logBlob, found []oracle.Record, etag string) error,
) error {
	var complaints []error
	for _, b := range l.logs() {
		if b.isRetired() {
			continue
		}
		err := answered(ctx, func() error {
			found, etag, err := readLog(ctx, c, b.name)
			if err == nil {
				err = check(b, found, etag)
			}
			return err
		})
		if err != nil {
			complaints = append(complaints, fmt.Errorf("%s: %w", b.name, err))
		}
	}
	return errors.Join(complaints...)
}

func (l *Load) resolveLogs(ctx context.Context) error {
	return l.forLogs(ctx, l.Primary, func(b *logBlob, found []oracle.Record, _ string) error { return b.Resolve(found) })
}

func (l *Load) finalLogs(ctx context.Context) error {
	return l.forLogs(ctx, l.Secondary, func(b *logBlob, found []oracle.Record, etag string) error { return b.Final(found, etag) })
}

// dueLog is an append blob that the secondary must show up to a length.
type dueLog struct {
	*logBlob
	floor int64
}

// dueLogs are the demands of a sync time on append blobs that were not met before.
func (s *Sampler) dueLogs(lastSync geo.Timestamp) (out []dueLog) {
	for _, b := range s.load.logs() {
		if floor := b.FloorAt(lastSync); floor > s.checkedLogs[b.name] {
			out = append(out, dueLog{b, floor})
		}
	}
	return out
}

// checkLog reads one of them. What the server does not answer stays due.
func (s *Sampler) checkLog(ctx context.Context, d dueLog) error {
	found, _, err := readLog(ctx, s.secondary, d.name)
	if err == nil {
		err = d.AtSecondary(found, d.floor)
	}
	if isNoAnswer(err) || err != nil && d.isRetired() {
		return nil
	}
	if err == nil {
		s.checkedLogs[d.name] = d.floor
		return nil
	}
	return fmt.Errorf("%s: %w", d.name, err)
}
