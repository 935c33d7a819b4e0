package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"antipode/geo"
	"antipode/test/oracle"
	"antipode/test/rest"
)

const (
	readers       = 16
	complaintsMax = 10
	pollInterval  = 100 * time.Millisecond
)

// errNoAnswer means that a read was not answered with a value or a plain "not there"; the value
// is then unknown.
var errNoAnswer = errors.New("read not answered")

func isNoAnswer(err error) bool { return errors.Is(err, errNoAnswer) }

func isUntouched(err error) bool { return errors.Is(err, errUntouched) }

// notThere reports whether a read was answered by a plain "not there".
func notThere(a rest.Answer, err error) bool { return err == nil && a.Status == http.StatusNotFound }

// unanswered is errNoAnswer unless a read was answered with a value.
func unanswered(what string, a rest.Answer, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s: %w", errNoAnswer, what, err)
	case !a.OK():
		return fmt.Errorf("%w: %s: %v", errNoAnswer, what, a)
	}
	return nil
}

// read reads one key through c.
func read(ctx context.Context, c *rest.Client, key string) (oracle.Read, error) {
	switch key[0] {
	case kindEntity:
		return readEntity(ctx, c, key)
	case kindGroup:
		return readGroup(ctx, c, key)
	}
	return readBlob(ctx, c, key)
}

// answered repeats a read until there is an answer or ctx ends.
func answered(ctx context.Context, read func() error) error {
	for {
		err := read()
		if !isNoAnswer(err) || ctx.Err() != nil {
			return err
		}
		pause(ctx, pollInterval)
	}
}

// Resolve reads every key at the primary while nobody writes, and resolves the
// writes whose answers were lost; then it makes every listing, and looks for the blocks
// of uploads that were left, the append blobs, the snapshots and the copies. The error joins the first complaints.
func (l *Load) Resolve(ctx context.Context) error {
	err := l.forAll(ctx, l.Primary, func(key string, r oracle.Read) error {
		return l.Oracle.Resolve(key, r, geo.TimestampOf(l.Clock.Now()))
	})
	return errors.Join(err, l.checkListings(ctx, l.Primary), l.checkAllStaged(ctx), l.resolveLogs(ctx), l.resolveSnapshots(ctx),
		l.resolveCopies(ctx))
}

// Final waits until the secondary's Last Sync Time has passed every acknowledged
// write, and then requires every final value there, with its tag, and every listing.
func (l *Load) Final(ctx context.Context) error {
	_, newest := l.Oracle.Acks()
	newest = max(newest, l.newest())
	for _, s := range []geo.Service{geo.Table, geo.Blob} {
		if err := WaitLastSyncTime(ctx, l.Secondary, s, newest.Time()); err != nil {
			return err
		}
	}
	return errors.Join(
		l.forAll(ctx, l.Secondary, l.Oracle.Final), l.checkListings(ctx, l.Secondary), l.finalLogs(ctx), l.finalSnapshots(ctx), l.finalCopies(ctx),
	)
}

// WaitLastSyncTime waits until the printed Last Sync Time of a service is at or
// after t. The value is cut to whole seconds, so this takes a second at least.
func WaitLastSyncTime(ctx context.Context, secondary *rest.Client, s geo.Service, t time.Time) error {
	for {
		stats, err := secondary.Stats(ctx, s)
		if err == nil && stats.Known && !stats.LastSyncTime.Before(t) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("last sync time of %v did not reach %v: %+v, %w", s, t, stats, errors.Join(err, ctx.Err()))
		case <-time.After(pollInterval):
		}
	}
}

// forAll reads every key through c and checks it.
func (l *Load) forAll(ctx context.Context, c *rest.Client, check func(string, oracle.Read) error) error {
	var mu sync.Mutex
	var complaints []error
	var g errgroup.Group
	g.SetLimit(readers)
	for _, key := range l.Oracle.Keys() {
		g.Go(func() error {
			err := answered(ctx, func() error {
				r, err := read(ctx, c, key)
				if err == nil {
					err = check(key, r)
				}
				return err
			})
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				complaints = append(complaints, err)
			}
			return nil
		})
	}
	_ = g.Wait()
	n := len(complaints)
	if n > complaintsMax {
		complaints = append(complaints[:complaintsMax], fmt.Errorf("and %d more", n-complaintsMax))
	}
	return errors.Join(complaints...)
}
