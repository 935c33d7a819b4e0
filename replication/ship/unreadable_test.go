package ship

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// plant is a command that sets a row of the outbox, at every replica, as an account without streams would.
type plant struct{ key, value []byte }

func (c plant) Evaluate(tx *ranges.Tx) error {
	n := len(c.key) - 1
	rec := change.Record{CommitTime: tx.Timestamp(0), Partition: c.key[:n], Ops: []change.Op{{Row: c.key[n:], Value: c.value}}}
	return tx.Change(keys.Partition{Service: geo.Table, Account: "stranger"}, rec)
}

// spoil changes record n of the stream of p in the outbox.
func (r *rig) spoil(n geo.Seq, how func(row []byte) []byte) {
	r.t.Helper()
	key := keys.Outbox(geo.FirstRange(geo.Table), testStream("p"), n)
	row, ok, err := r.leader().State().Get(key)
	require.NoError(r.t, err)
	require.True(r.t, ok)
	stamptest.Submit(r.t, r.stamp, geo.FirstRange(geo.Table), plant{key, how(row)})
}

// spoiled are the ways in which a row of the outbox is no record, and the reason of the stop. A row begins
// with 16 bytes before the record.
var spoiled = map[string]struct {
	how  func([]byte) []byte
	want change.StopReason
}{
	"no row":  {func(b []byte) []byte { return b[:3] }, change.StopPoison},
	"version": {func(b []byte) []byte { b[16] ^= 0x80; return b }, change.StopPoison},
	"body":    {func(b []byte) []byte { b[len(b)-8] ^= 1; return b }, change.StopPoison},
	"later release": {func(b []byte) []byte {
		b[16]++
		n := len(b) - 4
		binary.LittleEndian.PutUint32(b[n:], crc.Of(b[16:n]))
		return b
	}, change.StopVersion},
}

// R11: a record that the source itself cannot decode stops its own stream, with the reason, as soon as it is to
// be sent, without a word of the other location. The other streams of the range are sent and trimmed, and
// how much waits is known.
func TestR11UnreadableRecordStopsItsStream(t *testing.T) {
	t.Parallel()
	for name, s := range spoiled {
		for _, n := range []geo.Seq{1, 3} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, "p", "p", "p", "q", "q")
				if n == 3 { // What was before is partly trimmed.
					stamptest.Submit(t, r.stamp, geo.FirstRange(geo.Table), trimCommand{{Stream: testStream("p"), Head: geo.Head{Seq: 1}}})
				}
				r.spoil(n, s.how)
				r.start()
				r.steps()
				require.Contains(t, r.out.String(), "q#2")
				r.requireReason(s.want)
				require.Eventually(t, func() bool { return len(r.alarms()) == 1 }, time.Minute, time.Millisecond)
				require.Equal(t, s.want.String(), r.alarms()[0])
				r.requireOthersTrimmed(n)
			})
		}
	}
}

// R11: so does the cursor of a receiver that stands before the record, while the source has nothing to send:
// no other cursor of the same acknowledgement waits for it.
func TestR11CursorBeforeAnUnreadableRecord(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"no row", "version"} {
		r := newRig(t, "p", "p", "p", "q", "q")
		r.start()
		before, ok, err := r.leader().Machine.OutboxAt(testStream("p"), 1)
		require.NoError(t, err)
		require.True(t, ok)
		r.spoil(2, spoiled[name].how)
		r.requireStopped(StreamCursor{Stream: testStream("p"), Head: before.Head}, change.StopPoison)
		r.requireOthersTrimmed(2)
	}
}

// requireReason waits until the stream of p alone is stopped.
func (r *rig) requireReason(want change.StopReason) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		why, ok := r.leader().Machine.Stopped(testStream("p"))
		return ok && why.Reason == want
	}, time.Minute, time.Millisecond)
	require.Len(r.t, r.leader().Machine.Stops(), 1)
}

// requireOthersTrimmed acknowledges all of q, and of p what stands before record n, and requires that q alone
// leaves the outbox.
func (r *rig) requireOthersTrimmed(n geo.Seq) {
	r.t.Helper()
	q := testStream("q")
	got, err := r.ship.Acknowledge(Acknowledgement{Cursors: []StreamCursor{
		{Stream: testStream("p"), Head: geo.Head{Seq: n - 1}}, {Stream: q, Head: r.leader().Machine.Head(q)},
	}})
	require.NoError(r.t, err)
	require.Len(r.t, got, 1)
	require.True(r.t, got[0].Stopped)
	for now := range 5 {
		r.ship.Step(time.Minute + time.Duration(now)*time.Second)
	}
	left := 3 - r.leader().Machine.Trimmed(testStream("p"))
	require.Equal(r.t, fmt.Sprintf("%d records", left), r.outbox())
	require.EqualValues(r.t, 2, r.leader().Machine.Trimmed(q))
}

// R11: a trim that ends right before such a record, which has the hash of the one before, leaves that one too, and does
// not fail for the others.
func TestR11TrimBeforeAnUnreadableRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, "p", "p", "p", "q", "q")
	r.spoil(3, spoiled["version"].how)
	cmd := trimCommand{{Stream: testStream("p"), Head: geo.Head{Seq: 2}}, {Stream: testStream("q"), Head: geo.Head{Seq: 1}}}
	stamptest.Submit(t, r.stamp, geo.FirstRange(geo.Table), cmd)
	require.EqualValues(t, 1, r.leader().Machine.Trimmed(testStream("p")))
	require.EqualValues(t, 1, r.leader().Machine.Trimmed(testStream("q")))
}
