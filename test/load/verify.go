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

// errNoAnswer says that a read was not answered with a value or a plain "not
// there"; it says nothing about the value.
var errNoAnswer = errors.New("read not answered")

// read reads one key through c.
func read(ctx context.Context, c *rest.Client, key string) (oracle.Read, error) {
	var a rest.Answer
	var e rest.Entity
	var err error
	if key[0] == kindEntity {
		pk, rk := entityKeys(key)
		e, a, err = c.GetEntity(ctx, table, pk, rk)
	} else {
		a, err = c.GetBlob(ctx, container, key)
	}
	switch {
	case err != nil:
		return oracle.Read{}, fmt.Errorf("%w: %s: %w", errNoAnswer, key, err)
	case a.Status == http.StatusNotFound:
		return oracle.Read{}, nil
	case !a.OK():
		return oracle.Read{}, fmt.Errorf("%w: %s: %v", errNoAnswer, key, a)
	}
	r := oracle.Read{ETag: a.Header.Get("ETag")}
	r.At, _ = a.CommitTime()
	if key[0] == kindEntity {
		r.State, err = entityState(key, e)
	} else {
		r.State, err = blobState(key, a.Body)
	}
	return r, err
}

// readAnswered reads until there is an answer or ctx ends.
func readAnswered(ctx context.Context, c *rest.Client, key string) (oracle.Read, error) {
	for {
		r, err := read(ctx, c, key)
		if !errors.Is(err, errNoAnswer) {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, err
		case <-time.After(pollInterval):
		}
	}
}

// Settle reads every key at the primary while nobody writes, and settles the
// writes whose answers were lost. The error joins the first complaints.
func (l *Load) Settle(ctx context.Context) error {
	return l.forAll(ctx, l.Primary, func(key string, r oracle.Read) error {
		return l.Oracle.Settle(key, r, geo.TimestampOf(l.Clock.Now()))
	})
}

// Final waits until the secondary's Last Sync Time has passed every acknowledged
// write, and then requires every final value there, with its tag.
func (l *Load) Final(ctx context.Context) error {
	_, newest := l.Oracle.Acks()
	for _, s := range []geo.Service{geo.Table, geo.Blob} {
		if err := WaitLastSyncTime(ctx, l.Secondary, s, newest.Time()); err != nil {
			return err
		}
	}
	return l.forAll(ctx, l.Secondary, l.Oracle.Final)
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

// forAll reads every key through c and judges it.
func (l *Load) forAll(ctx context.Context, c *rest.Client, judge func(string, oracle.Read) error) error {
	var mu sync.Mutex
	var complaints []error
	var g errgroup.Group
	g.SetLimit(readers)
	for _, key := range l.Oracle.Keys() {
		g.Go(func() error {
			r, err := readAnswered(ctx, c, key)
			if err == nil {
				err = judge(key, r)
			}
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
