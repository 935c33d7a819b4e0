package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testAccount geo.Account = "acct"
	testRange   geo.RangeID = 4
)

var (
	testEpoch  = geo.Epoch{Number: 1, Location: "north"}
	generation = keys.Generation{Epoch: 1, Created: 7}
)

func stream(l geo.Lane) geo.Stream {
	return geo.Stream{Account: testAccount, Epoch: testEpoch, Range: testRange, Lane: l}
}

func partition(container, object string) keys.Partition {
	return keys.Partition{Service: geo.Table, Account: testAccount, Container: container, Generation: generation, Object: object}
}

func rowKey(container, object, row string) string {
	return string(keys.AppendString(partition(container, object).Append(nil), row))
}

func containerPrefix(container string) []byte {
	return keys.AppendContainer(nil, geo.Table, testAccount, container, generation)
}

// rows is the state of a location in memory. It is a kv.Snapshot of itself.
type rows map[string]string

func (r rows) Get(key []byte) ([]byte, bool, error) {
	v, ok := r[string(key)]
	return []byte(v), ok, nil
}

func (r rows) Scan(lower, upper []byte) (kv.Iterator, error) {
	it := &iterator{rows: r, at: -1}
	for _, k := range slices.Sorted(maps.Keys(r)) {
		if k >= string(lower) && (upper == nil || k < string(upper)) {
			it.keys = append(it.keys, k)
		}
	}
	return it, nil
}

func (rows) Close() error { return nil }

type iterator struct {
	rows rows
	keys []string
	at   int
}

func (it *iterator) Next() bool {
	it.at++
	return it.at < len(it.keys)
}

func (it *iterator) SeekGE(key []byte) bool {
	it.at, _ = slices.BinarySearch(it.keys, string(key))
	return it.at < len(it.keys)
}
func (it *iterator) Key() []byte   { return []byte(it.keys[it.at]) }
func (it *iterator) Value() []byte { return []byte(it.rows[it.keys[it.at]]) }
func (*iterator) Close() error     { return nil }

// place is a location in memory: a Stamp, and Chunks.
type place struct {
	mu    sync.Mutex
	rows  rows
	lost  map[extent.ChunkID]bool
	bad   map[extent.ChunkID]bool
	opens int
	// before is called with the number of each snapshot, from 1, before it is taken.
	before func(n int) error
}

func newPlace() *place {
	return &place{rows: rows{}, lost: map[extent.ChunkID]bool{}, bad: map[extent.ChunkID]bool{}}
}

func (p *place) Snapshot(context.Context, geo.RangeID) (kv.Snapshot, Chunks, error) {
	p.mu.Lock()
	p.opens++
	n, before := p.opens, p.before
	p.mu.Unlock()
	if before != nil {
		if err := before(n); err != nil {
			return nil, nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.rows), p, nil
}

func (p *place) Durable(id extent.ChunkID) bool { return !p.lost[id] }

func (p *place) Read(ref extent.Ref, off int64, b []byte) (int, error) {
	if p.bad[ref.ID] && off+int64(len(b)) == int64(ref.Length) {
		return 0, extent.ErrCorrupt
	}
	return len(b), nil
}

func (p *place) set(key, value string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows[key] = value
}

// head sets the head of a lane, or its cursor.
func (p *place) head(source bool, l geo.Lane, h geo.Head) {
	if source {
		p.set(string(keys.Head(testRange, stream(l))), string(change.AppendOutboxHead(nil, change.OutboxHead{Head: h})))
		return
	}
	p.set(string(keys.Cursor(testRange, stream(l))), string(change.AppendCursor(nil, &change.Cursor{Applied: h})))
}

// chunkRow is the value of a row that names one chunk.
func chunkRow(n int) string { return fmt.Sprintf("chunk %d", n) }

func chunkID(n int) (id extent.ChunkID) {
	copy(id[:], fmt.Sprint("chunk", n))
	return id
}

func rowChunks(_, value []byte) ([]extent.Ref, error) {
	var n int
	if bytes.HasPrefix(value, []byte("bad row")) {
		return nil, errors.New("no row")
	}
	if _, err := fmt.Sscanf(string(value), "chunk %d", &n); err != nil {
		return nil, nil //nolint:nilerr // It names none.
	}
	return []extent.Ref{{ID: chunkID(n), Length: 3 << 20}}, nil
}

// world is two locations whose lanes all stand at the same records.
type world struct {
	near, far        *place
	source, receiver *Sessions
	remote           *Remote
	c                Comparison
	prefixes         [][]byte
	fail             func() error
	clock            *clock.Manual
	waited           time.Duration
	waitMu           sync.Mutex
	advance          bool
}

func newWorld() *world {
	w := &world{near: newPlace(), far: newPlace(), clock: clock.NewManual(time.Unix(1, 0)), prefixes: [][]byte{containerPrefix("t")}}
	for l := range geo.Lane(geo.LaneCount) {
		w.near.head(true, l, geo.Head{Seq: 5, Hash: 9})
		w.far.head(false, l, geo.Head{Seq: 5, Hash: 9})
	}
	wait := func(ctx context.Context, d time.Duration) error {
		w.waitMu.Lock()
		defer w.waitMu.Unlock()
		w.waited += d
		if w.advance {
			w.clock.Advance(d)
		}
		return ctx.Err()
	}
	w.source = NewSessions(Options{Stamp: w.near, Clock: w.clock, RowChunks: rowChunks, Wait: wait})
	w.receiver = NewSessions(Options{Stamp: w.far, Clock: w.clock, RowChunks: rowChunks, Wait: wait})
	w.remote = &Remote{Call: func(ctx context.Context, r geo.RangeID, q []byte) ([]byte, error) {
		if w.fail != nil {
			if err := w.fail(); err != nil {
				return nil, err
			}
		}
		return w.receiver.Serve(ctx, r, q)
	}}
	w.c = Comparison{
		Account: testAccount, Epoch: testEpoch, Range: testRange, Near: w.source, Far: w.remote, BytesPerSecond: 1 << 40, Wait: wait,
		Prefixes: func(context.Context) ([][]byte, error) { return w.prefixes, nil },
	}
	return w
}

// both sets a row in both locations.
func (w *world) both(key, value string) {
	w.near.set(key, value)
	w.far.set(key, value)
}

// run compares, and checks that no session is left.
func (w *world) run(t require.TestingT) Result {
	out, err := Run(context.Background(), w.c)
	require.NoError(t, err)
	require.Empty(t, w.source.open)
	require.Empty(t, w.receiver.open)
	return out
}

// found are the differences, as kind and key.
func found(out Result) map[string]Kind {
	m := map[string]Kind{}
	for _, d := range out.Differences {
		m[string(d.Key)] = d.Kind
	}
	return m
}
