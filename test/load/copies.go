package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"antipode/geo"
	"antipode/test/oracle"
	"antipode/test/rest"
)

const (
	// copyContainer has what is copied, beside the keys.
	copyContainer = "copies"
	// copiers is how many copy for each client that owns a long list.
	copiers = 3
	// copyNames is how many names all copiers share: few, so that they overwrite each other's copies under way.
	copyNames = 6
	// copyInterval is the time between two operations of a copier.
	copyInterval = 20 * time.Millisecond
	// longEach bounds the long lists of a client.
	longEach = 16
)

// errNoCopy means that a copy was answered without its id or its status.
var errNoCopy = fmt.Errorf("%w: copy without an id, or not done", ErrContradiction)

// longList is the list of a client whose rows are too long to be copied by one change. It goes on to another name
// once a write of that has no answer.
type longList struct {
	client int
	inUse  atomic.Int32
}

func (l *longList) key() string {
	return fmt.Sprintf("%c/c%02d-%02d", kindLongList, l.client, l.inUse.Load()%longEach)
}

// chooseLong draws whether the client writes its long list next: while it is not there, and seldom otherwise.
func (c *client) chooseLong() (key string, ok bool) {
	i := c.opts.Clients - 1 - c.id // From the last on: the first have blobs of which snapshots are taken.
	if i >= len(c.long) {
		return "", false
	}
	l := c.long[i]
	s, _, known := c.Oracle.Current(l.key())
	if !known {
		l.inUse.Add(1)
		s, _, known = c.Oracle.Current(l.key())
	}
	return l.key(), known && !s.Present || c.rng.IntN(12) == 0
}

// copier copies keys onto names that other copiers write at the same time, puts, deletes and reads them.
type copier struct {
	*Load
	rng *rand.Rand
}

func (p *copier) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := p.step(ctx, fmt.Sprintf("n%d", p.rng.IntN(copyNames))); err != nil {
			if !isNoAnswer(err) {
				return fmt.Errorf("copies: %w", err)
			}
			pause(ctx, backoff)
		}
		pause(ctx, copyInterval+p.opts.Pause)
	}
	return nil
}

// step does something to a name.
func (p *copier) step(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWait)
	defer cancel()
	switch n := p.rng.IntN(20); {
	case n < 11:
		return p.copy(ctx, name, p.source())
	case n == 11:
		return p.put(ctx, name)
	case n == 12:
		return p.remove(ctx, name)
	case n < 17:
		return p.readCopy(ctx, p.Primary, name, oracle.Now)
	}
	stats, err := p.Secondary.Stats(ctx, geo.Blob)
	if err != nil || !stats.Known {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return p.readCopy(ctx, p.Secondary, name, geo.TimestampOf(stats.LastSyncTime))
}

// source draws a key to copy: of inline bytes, of chunks, and of block lists, some of them long.
func (p *copier) source() string {
	id, n := p.rng.IntN(p.opts.Clients), p.rng.IntN(20)
	switch {
	case n < 5:
		return p.long[p.rng.IntN(len(p.long))].key()
	case n < 12 && len(p.taken) > 0:
		return p.taken[p.rng.IntN(len(p.taken))].key(n % 2)
	case n == 12 && p.opts.BigClients > 0:
		return fmt.Sprintf("%c/c%02d", kindBig, id%p.opts.BigClients)
	case n == 13 && p.opts.BigClients > 0:
		return fmt.Sprintf("%c/c%02d", kindBigBlocks, id%p.opts.BigClients)
	case n%2 == 0:
		return fmt.Sprintf("%c/c%02d-%d", kindSmall, id, p.rng.IntN(p.opts.BlobsEach))
	}
	return fmt.Sprintf("%c/c%02d-%d", kindBlocks, id, p.rng.IntN(p.opts.BlocksEach))
}

// copy copies a key onto a name.
func (p *copier) copy(ctx context.Context, name, source string) error {
	w := p.copies.Copy(name, source)
	a, err := p.Primary.CopyBlob(ctx, copyContainer, name, container+"/"+source, p.rng.IntN(2) == 0)
	if err == nil && a.Status == http.StatusNotFound {
		return w.NotThere()
	}
	done, err := p.overwritten(w, name, a, err)
	switch {
	case isNoAnswer(err) && source[0] == kindLongList:
		p.count(CopiesCut)
	case done && source[0] == kindLongList:
		p.count(CopiesInSteps)
	case done:
		p.count(Copies)
	}
	return err
}

// put overwrites a name with what is no copy.
func (p *copier) put(ctx context.Context, name string) error {
	w := p.copies.Put(name)
	s := oracle.State{Present: true, Last: w.Number, Base: w.Number}
	with := rest.BlobWrite{Metadata: blobMetadata(s)}
	a, err := p.Primary.PutBlobWith(ctx, copyContainer, name, putBytes(name, w.Number), with)
	_, err = p.overwritten(w, name, a, err)
	return err
}

// remove deletes a name, which may be gone already.
func (p *copier) remove(ctx context.Context, name string) error {
	since := p.copies.Since(name, oracle.Now)
	w := p.copies.Delete(name)
	a, err := p.Primary.DeleteBlob(ctx, copyContainer, name)
	if err == nil && a.Status == http.StatusNotFound {
		w.Refused()
		return p.copies.Read(name, since, oracle.Found{})
	}
	if err == nil && a.OK() {
		return w.Acked("", "", p.soon())
	}
	_, err = p.overwritten(w, name, a, err)
	return err
}

// overwritten takes the answer to a write of a name. done is false for one that did not happen, or whose outcome is
// unknown.
func (p *copier) overwritten(w *oracle.Overwrite, name string, a rest.Answer, err error) (done bool, _ error) {
	switch {
	case err != nil && rest.NeverSent(err), isBusy(a, err):
		w.Refused()
		return false, nil
	case err != nil || a.Status >= http.StatusInternalServerError:
		w.Lost()
		return false, fmt.Errorf("%w: write of %s: %v, %w", errNoAnswer, name, a, err)
	case !a.OK():
		return false, fmt.Errorf("%w: write of %s: %v", ErrContradiction, name, a)
	}
	at, ok := a.CommitTime()
	id, status := a.Header.Get("x-ms-copy-id"), a.Header.Get("x-ms-copy-status")
	if copied := a.Status == http.StatusAccepted; !ok || copied && (id == "" || status != "success") {
		return false, fmt.Errorf("%w: %s: ETag %q, copy %q %q", errNoCopy, name, a.Header.Get("ETag"), id, status)
	}
	return true, w.Acked(a.Header.Get("ETag"), id, at)
}

// readCopy reads a name where everything up to the sync time has arrived.
func (l *Load) readCopy(ctx context.Context, c *rest.Client, name string, sync geo.Timestamp) error {
	since := l.copies.Since(name, sync)
	f, err := found(ctx, c, name)
	if err == nil {
		err = l.copies.Read(name, since, f)
	}
	if err == nil && f.Present {
		l.count(CopiesRead)
	}
	return err
}

// found reads a name, and compares every byte and block with what its metadata claims.
func found(ctx context.Context, c *rest.Client, name string) (f oracle.Found, err error) {
	a, err := c.GetBlob(ctx, copyContainer, name)
	if notThere(a, err) {
		return f, nil
	}
	if err := unanswered(name, a, err); err != nil {
		return f, err
	}
	f.ETag = a.Header.Get("ETag")
	f.At, _ = a.CommitTime()
	f.ID, f.Source = c.Copied(a)
	f.Source = strings.TrimPrefix(f.Source, container+"/")
	if f.State, err = metadataState(name, a.Metadata()); err != nil {
		return f, err
	}
	want := func() []byte { return putBytes(name, f.Base) }
	if f.Source != "" {
		want = func() []byte { return blobBytes(f.Source, f.State) }
	}
	if !bytes.Equal(a.Body, want()) {
		return f, fmt.Errorf("%w: copy %s of %d bytes claims %v", errTorn, name, len(a.Body), f)
	}
	if f.Source != "" && inBlocks(f.Source) {
		err = checkBlockList(ctx, c, copyContainer, name, f.Source, f.Read)
	}
	return f, err
}

// resolveCopies reads all names at the primary while nobody writes them.
func (l *Load) resolveCopies(ctx context.Context) error {
	return l.forCopies(ctx, l.Primary, l.copies.Resolve)
}

// finalCopies reads all names at the secondary, which has everything.
func (l *Load) finalCopies(ctx context.Context) error {
	return l.forCopies(ctx, l.Secondary, func(name string, _ oracle.Since, f oracle.Found) error {
		return l.copies.Final(name, f)
	})
}

func (l *Load) forCopies(
	ctx context.Context, c *rest.Client, check func(name string, s oracle.Since, f oracle.Found) error,
) error {
	var errs []error
	for _, name := range l.copies.Names() {
		errs = append(errs, answered(ctx, func() error {
			since := l.copies.Since(name, oracle.Now)
			f, err := found(ctx, c, name)
			if err != nil {
				return err
			}
			return check(name, since, f)
		}))
	}
	return errors.Join(errs...)
}

// dueCopies are the names for which a sync time demands more than was found before, with the commit times.
func (s *Sampler) dueCopies(lastSync geo.Timestamp) map[string]geo.Timestamp {
	due := map[string]geo.Timestamp{}
	for _, name := range s.load.copies.Names() {
		if at := s.load.copies.Since(name, lastSync).Newest; at > s.checkedCopies[name] {
			due[name] = at
		}
	}
	return due
}

// checkCopies reads them. What the server does not answer stays due.
func (s *Sampler) checkCopies(ctx context.Context, due map[string]geo.Timestamp, lastSync geo.Timestamp) error {
	for name, at := range due {
		err := s.load.readCopy(ctx, s.secondary, name, lastSync)
		if isNoAnswer(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("last sync time %v: copies: %w", lastSync, err)
		}
		s.checkedCopies[name] = at
	}
	return nil
}
