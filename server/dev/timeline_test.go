package dev

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/bus"
	"antipode/replication/link"
	"antipode/replication/receive"
	"antipode/server/location"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// wallByHand is a clock whose wall time the test sets, while monotonic time, on
// which ticks, leases and timeouts run, goes on, and further with each time that is set, as if the machine had
// been suspended until then: a wall clock that leaps alone is not believed (R6).
type wallByHand struct {
	*clock.Manual
	clock.System
}

func (w wallByHand) Now() time.Time      { return w.Manual.Now() }
func (w wallByHand) Mono() time.Duration { return w.System.Mono() + w.Manual.Mono() }

// holder keeps the frames of the blob range until the test lets one through.
type holder struct {
	bus.Publisher

	mu   sync.Mutex
	held []heldFrame
}

type heldFrame struct {
	frame change.Frame
	send  func() error
}

func (h *holder) Publish(subject string, data []byte, done func(error)) error {
	f, err := change.ParseFrame(data)
	if err != nil || f.Range != geo.FirstRange(geo.Blob) || len(f.Records) == 0 {
		return h.Publisher.Publish(subject, data, done)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = append(h.held, heldFrame{f, func() error { return h.Publisher.Publish(subject, data, done) }})
	return nil
}

// release lets the oldest held frame with a record of the partition through.
func (h *holder) release(t *testing.T, p keys.Partition) {
	t.Helper()
	var found *heldFrame
	eventually(t, "the frame is held", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i, f := range h.held {
			r, err := change.ParseRecord(f.frame.Records[0])
			if err == nil && slices.Equal(r.Partition, p.Append(nil)) {
				found = &h.held[i]
				held := *found
				h.held = slices.Delete(h.held, i, i+1)
				found = &held
				return true
			}
		}
		return false
	})
	require.Len(t, found.frame.Records, 1, "each transaction travels alone in this test")
	require.NoError(t, found.send())
}

// noPulls is a source that never gives records: only the test moves them.
type noPulls struct{ receive.Source }

func (noPulls) Records(_ geo.Stream, _ geo.Seq, _ int, done func([][]byte, error)) {
	done(nil, link.ErrCut)
}

// blobWrite stores a value under a blob's partition. Its row is neither that of a blob nor that of a block, whose values
// are read for the payload that they name.
type blobWrite struct {
	p     keys.Partition
	value string
}

func (w *blobWrite) Partition() keys.Partition { return w.p }
func (w *blobWrite) Gone() error               { return storageerr.ContainerNotFound }

func (w *blobWrite) Evaluate(kv.Getter, geo.Timestamp) (services.Effect, error) {
	return services.Effect{Ops: []change.Op{{Row: []byte{noBlobRow}, Value: []byte(w.value)}}}, nil
}

const noBlobRow = 0x7f

// timeline is two locations whose blob range is replicated by hand.
type timeline struct {
	t            *testing.T
	wall         *clock.Manual
	north, south *location.Location
	hold         *holder
	account      *catalog.Account
}

func startTimeline(t *testing.T) *timeline {
	t.Helper()
	tl := &timeline{t: t, wall: clock.NewManual(at("21:58:00")), hold: &holder{}}
	l := link.New()
	dir := t.TempDir()
	options := func(name, other geo.Location, parity geo.Timestamp) location.Options {
		o := locationOptions(dir, name, other, parity)
		o.Clock, o.Link, o.Tick, o.Logger = wallByHand{Manual: tl.wall}, l, testTick, slog.New(slog.NewTextHandler(io.Discard, nil))
		o.CloseInterval = func(r geo.RangeID) time.Duration {
			if r == geo.FirstRange(geo.Blob) {
				return 0
			}
			return 20 * time.Millisecond
		}
		o.WrapPublisher = func(p bus.Publisher) bus.Publisher {
			tl.hold.Publisher = p
			return tl.hold
		}
		o.WrapSource = func(s receive.Source) receive.Source { return noPulls{s} }
		return o
	}
	tl.north = location.New(options(North, South, 0))
	o := options(South, North, 1)
	o.WrapPublisher = nil
	tl.south = location.New(o)
	join(clock.System{}, l, tl.north, tl.south, direct)
	require.NoError(t, tl.south.Start(t.Context()))
	require.NoError(t, tl.north.Start(t.Context()))
	t.Cleanup(func() {
		require.NoError(t, tl.north.Stop())
		require.NoError(t, tl.south.Stop())
		l.Close()
	})
	var err error
	tl.account, err = tl.north.Directory.Create(t.Context(), "acct", key64, key64)
	require.NoError(t, err)
	return tl
}

func at(hms string) time.Time {
	tm, err := time.Parse("2006-01-02 15:04:05", "2013-10-23 "+hms)
	if err != nil {
		panic(err)
	}
	return tm
}

func (tl *timeline) set(hms string) { tl.wall.Advance(at(hms).Sub(tl.wall.Now())) }

// write retries what was refused before anything happened, as a client does: on a busy machine the other location may not have
// confirmed in time that this one is the primary (R21).
func (tl *timeline) write(p keys.Partition, value string) {
	tl.t.Helper()
	var err error
	eventually(tl.t, "the write is taken", func() bool {
		err = tl.north.Primary.Write(tl.t.Context(), &blobWrite{p, value})
		row, refused := storageerr.Of(err)
		return !refused || row.Code != storageerr.ServerBusy.Code
	})
	require.NoError(tl.t, err)
}

// applied waits until the secondary has applied n records of the partition's stream.
func (tl *timeline) applied(p keys.Partition, n geo.Seq) {
	tl.t.Helper()
	st := geo.Stream{Account: p.Account, Epoch: tl.account.GeoEpoch(), Range: geo.FirstRange(geo.Blob), Lane: p.Lane()}
	eventually(tl.t, "the transaction is applied", func() bool {
		return tl.south.Leader(geo.FirstRange(geo.Blob)).Machine.Cursor(st).Applied.Seq == n
	})
}

// lastSyncTime requires the value, and that it stays so for a while: closed records of the catalog go on, as if somebody looked.
func (tl *timeline) lastSyncTime(hms string) {
	tl.t.Helper()
	value := func() string {
		rep := tl.south.ReplicationNow(tl.account, geo.Blob)
		if !rep.Known() {
			return "absent: " + string(rep.Reason)
		}
		return rep.LastSync.Time().Format("15:04:05")
	}
	eventually(tl.t, "Last Sync Time is "+hms, func() bool {
		if lead := tl.north.Leader(geo.FirstRange(geo.Catalog)); lead != nil && lead.Rests() {
			require.NoError(tl.t, lead.Do(tl.t.Context(), &ranges.Close{}))
		}
		return value() == hms
	})
	for range 20 {
		require.Equal(tl.t, hms, value())
		time.Sleep(5 * time.Millisecond)
	}
}

func (tl *timeline) reads(p keys.Partition, want string) {
	tl.t.Helper()
	got := ""
	require.NoError(tl.t, tl.south.Read(tl.t.Context(), geo.FirstRange(geo.Blob), func(s ranges.State) error {
		v, _, err := s.Get(append(p.Append(nil), noBlobRow))
		got = string(v)
		return err
	}))
	require.Equal(tl.t, want, got)
}

// The worked timeline of protocol/service.md 4, step by step, on a controlled wall clock,
// the replication of each transaction driven by hand (R13, invariant 3). The data
// range has no time-driven closed records; the catalog's go on.
// It holds invariant 2.
// It holds invariant 2.
//
// Capability: Two locations: Last Sync Time is true.
func TestLastSyncTimeTimeline(t *testing.T) {
	t.Parallel()
	tl := startTimeline(t)
	create := &catalog.Create{Service: geo.Blob, Account: "acct", Name: "c"}
	require.NoError(t, tl.north.Primary.Write(t.Context(), create))
	blob := func(name string) keys.Partition {
		return keys.Partition{Service: geo.Blob, Account: "acct", Container: "c", Generation: create.Created.Generation(), Object: name}
	}
	blob1, blob2 := blob("blob1"), blob("blob2")
	require.NotEqual(t, blob1.Lane(), blob2.Lane(), "the two must travel on different lanes")
	require.NoError(t, tl.north.Submit(context.Background(), geo.FirstRange(geo.Blob), &ranges.Close{}))
	tl.lastSyncTime("21:58:00")

	tl.set("22:00:00")
	tl.write(blob1, "Hello") // T1
	tl.lastSyncTime("21:58:00")
	tl.set("22:01:00")
	tl.write(blob2, "Cheers") // T2
	tl.lastSyncTime("21:58:00")
	tl.set("22:02:00")
	tl.lastSyncTime("21:58:00")
	tl.reads(blob1, "")
	tl.reads(blob2, "")
	tl.set("22:03:00")
	tl.hold.release(t, blob2)
	tl.applied(blob2, 1)
	tl.lastSyncTime("21:58:00") // T1 is still missing.
	tl.reads(blob2, "Cheers")
	tl.set("22:04:00")
	tl.write(blob1, "Adios") // T3
	tl.lastSyncTime("21:58:00")
	tl.set("22:05:00")
	tl.lastSyncTime("21:58:00")
	tl.reads(blob1, "")
	tl.reads(blob2, "Cheers")
	tl.set("22:05:30")
	tl.hold.release(t, blob1)
	tl.applied(blob1, 1)
	tl.lastSyncTime("22:01:00") // T3 is the oldest missing.
	tl.set("22:06:00")
	tl.lastSyncTime("22:01:00")
	tl.reads(blob1, "Hello")
	tl.set("22:07:00")
	tl.hold.release(t, blob1)
	tl.applied(blob1, 2)
	tl.lastSyncTime("22:04:00")
	tl.set("22:08:00")
	tl.lastSyncTime("22:04:00")
	tl.reads(blob1, "Adios")
}
