package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sync/errgroup"
)

// pebbles are three stores, each with its own log: a commit syncs a batch in each of
// them at once. Pebble groups the syncs of concurrent batches.
type pebbles []*pebble.DB

func openPebbles(_ context.Context, _ Options, dir string) (committer, error) {
	var p pebbles
	for i := range replicas {
		db, err := pebble.Open(filepath.Join(dir, strconv.Itoa(i)), &pebble.Options{
			FormatMajorVersion: pebble.FormatNewest, MemTableSize: 64 << 20, Logger: quietPebble{},
		})
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p = append(p, db)
	}
	return p, nil
}

func (p pebbles) commit(_ context.Context, key, value []byte) error {
	var g errgroup.Group
	for _, db := range p {
		g.Go(func() error { return db.Set(key, value, pebble.Sync) })
	}
	return g.Wait()
}

// Close implements io.Closer.
func (p pebbles) Close() error {
	var errs []error
	for _, db := range p {
		errs = append(errs, db.Close())
	}
	return errors.Join(errs...)
}

// quietPebble drops what Pebble logs but its errors.
type quietPebble struct{}

func (quietPebble) Infof(string, ...any) {}
func (quietPebble) Errorf(format string, args ...any) {
	slog.Error("pebble", "format", format, "args", args)
}
func (quietPebble) Fatalf(format string, args ...any) { panic(format) }
