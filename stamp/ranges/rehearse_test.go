package ranges_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
	"antipode/stamp/state"
)

// coldRow is how long a row of these tests is: its block has nothing else.
const coldRow = 20_000

// coldFS is a disk whose reads of such rows the test watches, and holds up.
type coldFS struct {
	vfs.FS
	read *atomic.Pointer[func()]
}

func (fs coldFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, o...)
	if err == nil && strings.HasSuffix(name, ".sst") {
		f = coldFile{f, fs.read}
	}
	return f, err
}

type coldFile struct {
	vfs.File
	read *atomic.Pointer[func()]
}

func (f coldFile) ReadAt(p []byte, off int64) (int, error) {
	if read := f.read.Load(); read != nil && len(p) >= coldRow {
		(*read)()
	}
	return f.File.ReadAt(p, off)
}

func coldPartition(i int) keys.Partition {
	return keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: fmt.Sprintf("p%03d", i)}
}

var errNoRow = errors.New("the row is missing")

// shorten is a command that reads a large row and writes a short one.
type shorten struct {
	i    int
	done *[]int
}

func (c shorten) Evaluate(tx *ranges.Tx) error {
	p := coldPartition(c.i)
	v, ok, err := tx.Get(append(p.Append(nil), 'r'))
	if err != nil || !ok {
		return errors.Join(err, errNoRow)
	}
	if c.done != nil {
		*c.done = append(*c.done, c.i)
	}
	return tx.Change(p, change.Record{
		CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("r"), Value: v[:1]}},
	})
}

// rehearsed is shorten for a caller that may read the row first.
type rehearsed struct{ shorten }

func (rehearsed) Rehearses() (always bool) { return false }

// coldRows is a stamp with rows that fill a block of a table each, and are in no cache.
func coldRows(t *testing.T, c clock.Clock, n int) (*stamp.Stamp, *atomic.Pointer[func()]) {
	t.Helper()
	fs := coldFS{vfs.NewMem(), new(atomic.Pointer[func()])}
	shared := state.NewShared(64<<20, 256)
	t.Cleanup(shared.Close)
	s := stamptest.NewOn(t, state.Options{FS: fs, Shared: shared}, c, "north", geo.Table, geo.Blob)
	gate := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true}
	for _, id := range []geo.RangeID{geo.FirstRange(geo.Table), geo.FirstRange(geo.Blob)} {
		stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: gate})
	}
	for i := range n {
		ops := []change.Op{{Row: []byte("r"), Value: []byte(strings.Repeat("x", coldRow))}}
		stamptest.Submit(t, s, geo.FirstRange(geo.Table), stamptest.Change{Partition: coldPartition(i), Record: change.Record{Ops: ops}})
	}
	for _, id := range s.Nodes() {
		require.NoError(t, s.Node(id).State().Flush())
		_, _, err := s.Node(id).State().Get(append(coldPartition(0).Append(nil), 'r')) // Beside other rows of the range.
		require.NoError(t, err)
	}
	return s, fs.read
}

// goesOn requires that the scheduler of a stamp's leader works: a range of it takes a write.
func goesOn(t *testing.T, s *stamp.Stamp, service geo.Service) {
	t.Helper()
	p := keys.Partition{Service: service, Account: "acct", Container: "t", Object: "new"}
	ops := []change.Op{{Row: []byte("r"), Value: []byte("x")}}
	stamptest.Submit(t, s, geo.FirstRange(service), stamptest.Change{Partition: p, Record: change.Record{Ops: ops}})
}

// Commands whose rows are on a slow disk hold the scheduler for evaluateMax and one command, in each pass. They are evaluated in
// their order, all of them.
//
// Capability: Storage on a node: One range on a slow disk does not hold the others of its node.
func TestColdCommandsShareThePasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rows, slow = 40, 4 * time.Millisecond
		var c clock.Shifted
		s, read := coldRows(t, &c, rows)
		lead := s.Leader(geo.FirstRange(geo.Table))

		// The first command stands until the others wait.
		waits, begin, once := make(chan struct{}), make(chan struct{}), sync.Once{}
		reads := 0 // Of the scheduler, which is the only reader.
		var order []int
		slowly := func() {
			once.Do(func() { close(waits); <-begin })
			reads++
			c.Shift(time.Duration(reads) * slow)
		}
		read.Store(&slowly)
		answers := make(chan error, rows)
		submit := func(i int) { lead.Submit(shorten{i, &order}, func(err error) { answers <- err }) }
		before := lead.Machine.AppliedState().Index
		submit(1)
		<-waits
		for i := 2; i < rows; i++ {
			submit(i)
		}
		close(begin)
		for range rows - 1 {
			require.NoError(t, <-answers)
		}
		read.Store(nil)
		require.Len(t, order, rows-1)
		for i, of := range order {
			require.Equal(t, i+1, of)
		}
		require.Equal(t, rows-1, reads, "each row is read once")
		const perPass = int(ranges.EvaluateMax/slow) + 1
		require.GreaterOrEqual(t, int(lead.Machine.AppliedState().Index-before), (rows-1)/perPass, "a group is of one pass")
		goesOn(t, s, geo.Table)
	})
}

// Once it is found that rows come from a slow disk, commands that wait go back and read their rows on the goroutines
// of their callers: however long that takes, the node goes on. A caller that gives up gets its answer.
//
// Capability: Storage on a node: One range on a slow disk does not hold the others of its node.
func TestColdCommandsAreRehearsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rows = 30
		var c clock.Shifted
		s, read := coldRows(t, &c, rows)
		lead := s.Leader(geo.FirstRange(geo.Table))
		first, begin, gate := make(chan struct{}), make(chan struct{}), make(chan struct{})
		release, open := sync.OnceFunc(func() { close(begin) }), sync.OnceFunc(func() { close(gate) })
		defer release() // Nothing waits for a test that failed.
		defer open()
		var reads atomic.Int64
		slowly := func() {
			if reads.Add(1) > 1 {
				<-gate
				return
			}
			close(first)
			<-begin
			c.Shift(ranges.EvaluateMax)
		}
		lead.Warm()
		read.Store(&slowly)
		answers := make(chan error, rows)
		do := func(i int) { answers <- lead.Do(t.Context(), rehearsed{shorten{i, nil}}) }
		go do(1)
		<-first // The scheduler stands.
		for i := 2; i < rows; i++ {
			go do(i)
		}
		require.Eventually(t, func() bool { return lead.Queued() == rows-2 }, time.Minute, time.Millisecond)
		release()
		require.NoError(t, <-answers)
		require.Eventually(t, func() bool { return reads.Load() > 2 }, time.Minute, time.Millisecond, "more than one at once")
		for range 3 {
			goesOn(t, s, geo.Table)
			goesOn(t, s, geo.Blob)
		}
		require.Zero(t, lead.Queued())
		require.Empty(t, answers)
		open()
		for range rows - 2 {
			require.NoError(t, <-answers)
		}
		require.EqualValues(t, rows-1, reads.Load(), "each row was read once, and but for the first not by the scheduler")
		read.Store(nil)
	})
}

// Commands that one caller submits together go back to it all the same, but for those that were evaluated, and are all
// answered, each with its own error.
//
// Capability: Storage on a node: One range on a slow disk does not hold the others of its node.
func TestColdCommandsOfOneCallerAreRehearsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rows = 30
		var c clock.Shifted
		s, read := coldRows(t, &c, rows)
		lead := s.Leader(geo.FirstRange(geo.Table))
		gate := make(chan struct{})
		open := sync.OnceFunc(func() { close(gate) })
		defer open()
		var reads atomic.Int64
		slowly := func() {
			if reads.Add(1) > 1 {
				<-gate
				return
			}
			c.Shift(ranges.EvaluateMax)
		}
		lead.Warm()
		read.Store(&slowly)
		var cmds []ranges.Command
		for i := 1; i < rows; i++ {
			cmds = append(cmds, rehearsed{shorten{i, nil}})
		}
		cmds = append(cmds, rehearsed{shorten{rows + 1, nil}}) // There is no such row.
		answers := make(chan []error, 1)
		go func() { answers <- lead.DoAll(t.Context(), cmds) }()
		require.Eventually(t, func() bool { return reads.Load() > 2 }, time.Minute, time.Millisecond, "more than one at once")
		for range 3 {
			goesOn(t, s, geo.Table)
			goesOn(t, s, geo.Blob)
		}
		require.Zero(t, lead.Queued())
		require.Empty(t, answers)
		open()
		errs := <-answers
		for i, err := range errs[:rows-1] {
			require.NoError(t, err, i)
		}
		require.ErrorIs(t, errs[rows-1], errNoRow)

		// The range is cold still: who is gone before the rehearsal has changed nothing, and is answered so.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, err := range lead.DoAll(ctx, cmds) {
			require.ErrorIs(t, err, kv.ErrBusy)
		}
		read.Store(nil)
	})
}

// 256 commands that one caller submits together, which is as many as a batch of blobs has, have one group, where they take the
// range less time than a pass has.
func TestCommandsOfOneCallerAreOneGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // Where no time passes while commands are evaluated.
		s, _ := coldRows(t, &clock.Shifted{}, 256)
		lead := s.Leader(geo.FirstRange(geo.Table))
		for _, together := range []bool{true, false} {
			var cmds []ranges.Command
			for i := range 256 {
				cmds = append(cmds, shorten{i, nil})
			}
			before := lead.Machine.AppliedState().Index
			if together {
				require.Equal(t, make([]error, 256), lead.DoAll(t.Context(), cmds))
				require.Equal(t, before+1, lead.Machine.AppliedState().Index)
				continue
			}
			for _, cmd := range cmds {
				require.NoError(t, lead.Do(t.Context(), cmd))
			}
			require.Equal(t, before+256, lead.Machine.AppliedState().Index)
		}
	})
}
