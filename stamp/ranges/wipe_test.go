package ranges

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/state"
)

// bench is a range without a replica: groups are evaluated as Range.propose does, and each takes effect, or
// does not, when the test says so.
type bench struct {
	t       *testing.T
	fs      *vfs.MemFS
	store   *state.Store
	r       *Range
	number  uint64
	entries []*pb.Entry // the log: every entry that was applied
	waiting [][]byte    // entries of the groups in flight
	holds   bool        // rows are held back, as in a range of queues
}

const benchRange = geo.RangeID(geo.Table)

func newBench(t *testing.T) *bench {
	b := &bench{t: t, fs: vfs.NewCrashableMem()}
	b.open()
	t.Cleanup(func() { require.NoError(t, b.store.Close()) })
	return b
}

func (b *bench) open() {
	var err error
	b.store, err = state.Open("state", state.Options{FS: b.fs})
	require.NoError(b.t, err)
	b.r, err = New(Options{Location: "north", Range: benchRange, State: b.store})
	require.NoError(b.t, err)
	b.r.term = 1
	b.r.Machine.held.on = b.holds
}

// propose evaluates one command in each function, all in one group, and returns their errors.
func (b *bench) propose(commands ...func(tx *Tx) error) (errs []error) {
	b.number++
	g := &group{id: change.GroupID{Term: 1, Number: b.number}}
	tx := &Tx{r: b.r, g: g, now: time.Unix(1_700_000_000, 0)}
	for _, evaluate := range commands {
		tx.begin(&waiter{})
		err := evaluate(tx)
		if err != nil {
			tx.undo()
		}
		errs = append(errs, err)
	}
	if tx.b.Count() == 0 {
		b.number--
		return errs
	}
	b.waiting = append(b.waiting, tx.b.Finish(g.id, b.r.pred, 0))
	b.r.pred = g.id
	b.r.inflight = append(b.r.inflight, g)
	return errs
}

func (b *bench) applyAt(term uint64, data []byte) {
	e := &pb.Entry{Index: proto.Uint64(uint64(len(b.entries)) + 1), Term: proto.Uint64(term), Data: data}
	b.entries = append(b.entries, e)
	require.NoError(b.t, b.r.Machine.Apply([]*pb.Entry{e}))
}

// apply lets the oldest group in flight take effect.
func (b *bench) apply() {
	b.applyAt(1, b.waiting[0])
	b.waiting = b.waiting[1:]
}

func (b *bench) applyAll() {
	for len(b.waiting) > 0 {
		b.apply()
	}
}

// kill has the oldest group in flight take no effect, and with it all the others (R1).
func (b *bench) kill() {
	b.applyAt(2, b.waiting[0])
	b.waiting = nil
}

// crash opens what a crash of the machine would leave, and applies the log above it.
func (b *bench) crash(rng *rand.Rand) {
	clone := b.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
	require.NoError(b.t, b.store.Close())
	b.fs, b.waiting = clone, nil
	b.open()
	for _, e := range b.entries[b.r.Machine.AppliedState().Index:] {
		require.NoError(b.t, b.r.Machine.Apply([]*pb.Entry{e}))
	}
	b.r.resetOverlay()
}

// rows are the rows of clients in a state store.
func rows(t *testing.T, s *state.Store) map[string]string {
	out := map[string]string{}
	span := Spans(benchRange)[1]
	it, err := s.Scan(span.Lower, span.Upper)
	require.NoError(t, err)
	for it.Next() {
		out[string(it.Key())] = string(it.Value())
	}
	require.NoError(t, it.Close())
	return out
}

// replace gives a replica that has every group but the last n a snapshot of the state, as a snapshot of the range
// is installed, and returns its store.
func (b *bench) replace(n int) *state.Store {
	fs := vfs.NewMem()
	store, err := state.Open("state", state.Options{FS: fs})
	require.NoError(b.t, err)
	m, err := OpenMachine(benchRange, store, func(Applied) {})
	require.NoError(b.t, err)
	require.NoError(b.t, m.Apply(b.entries[:len(b.entries)-n]))

	require.NoError(b.t, fs.MkdirAll("snap", 0o755))
	staging, err := store.NewStaging("snap", Spans(benchRange))
	require.NoError(b.t, err)
	snap := b.store.NewSnapshot()
	for _, span := range Spans(benchRange) {
		it, err := snap.Scan(span.Lower, span.Upper)
		require.NoError(b.t, err)
		for it.Next() {
			require.NoError(b.t, staging.Add(it.Key(), it.Value()))
		}
		require.NoError(b.t, it.Close())
	}
	require.NoError(b.t, errors.Join(snap.Close(), staging.Finish()))
	require.NoError(b.t, m.Replace(func() error { return store.Ingest(staging) }))
	return store
}

func wipedPartition(generation, object int) keys.Partition {
	return keys.Partition{
		Service: geo.Table, Account: "acct", Container: "t", Object: fmt.Sprint(object),
		Generation: keys.Generation{Epoch: 1, Created: geo.Timestamp(generation)},
	}
}

// sets stages one change of a partition: each row set to value, or deleted if value is empty.
func sets(p keys.Partition, value string, rows ...string) func(tx *Tx) error {
	return func(tx *Tx) error {
		rec := change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil)}
		for _, row := range rows {
			rec.Ops = append(rec.Ops, change.Op{Row: []byte(row), Value: []byte(value), Delete: value == ""})
		}
		return tx.Change(p, rec)
	}
}

func wipes(lower, upper []byte) func(tx *Tx) error {
	return func(tx *Tx) error { return tx.Wipe(state.Span{Lower: lower, Upper: upper}) }
}

// A wipe is as if every row of its span had been deleted: seen at once by commands of the same group, of later groups
// before it takes effect and after; taken back with a command that fails and with groups that die; there after a
// crash of the machine and after a snapshot of the range was installed over older rows; and it moves the version of
// the data. Rows that are written again after it stay (R1; invariants 1 and 6). A map is the twin. In every other run the
// rows of a group are held back.
//
// Capability: Storage on a node: Deleted tables and containers are swept.
func TestWipeTwin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seeds := 40
		if testing.Short() {
			seeds = 4
		}
		for seed := range uint64(seeds) {
			rng := rand.New(rand.NewPCG(seed, 1))
			b := newBench(t)
			b.holds = seed%2 == 1
			b.r.Machine.held.on = b.holds
			applied, staged := map[string]string{}, map[string]string{}
			var after []map[string]string // what each group in flight leaves
			key := func() (keys.Partition, string) {
				return wipedPartition(rng.IntN(3), rng.IntN(3)), fmt.Sprint(rng.IntN(3))
			}
			full := func() []byte {
				p, row := key()
				return append(p.Append(nil), row...)
			}
			requireSeen := func(tx *Tx) {
				for g := range 3 {
					for o := range 3 {
						for row := range 3 {
							k := append(wipedPartition(g, o).Append(nil), fmt.Sprint(row)...)
							v, ok, err := tx.Get(k)
							require.NoError(t, err)
							want, has := staged[string(k)]
							require.Equal(t, has, ok, "seed %d", seed)
							require.Equal(t, want, string(v), "seed %d", seed)
						}
					}
				}
			}
			command := func(tx *Tx) error {
				before := maps.Clone(staged)
				for range 1 + rng.IntN(3) {
					if lower, upper := full(), full(); rng.IntN(3) == 0 && string(lower) < string(upper) {
						require.NoError(t, wipes(lower, upper)(tx))
						maps.DeleteFunc(staged, func(k, _ string) bool { return k >= string(lower) && k < string(upper) })
					} else {
						p, row := key()
						value := []string{"", fmt.Sprint(rng.Uint32())}[rng.IntN(2)]
						require.NoError(t, sets(p, value, row)(tx))
						delete(staged, string(append(p.Append(nil), row...)))
						if value != "" {
							staged[string(append(p.Append(nil), row...))] = value
						}
					}
					requireSeen(tx)
				}
				if rng.IntN(4) == 0 {
					staged = before
					return errors.New("refused")
				}
				return nil
			}
			for range 100 {
				switch rng.IntN(8) {
				default:
					before := len(b.waiting)
					b.propose(command, command)
					if len(b.waiting) > before {
						after = append(after, maps.Clone(staged))
					}
				case 0, 1, 2, 3:
					if len(b.waiting) > 0 {
						version := b.r.Machine.version.Load()
						b.apply()
						require.NotEqual(t, version, b.r.Machine.version.Load())
						applied, after = after[0], after[1:]
					}
				case 4:
					if len(b.waiting) > 0 {
						b.kill()
						staged, after = maps.Clone(applied), nil
					}
				case 5:
					if rng.IntN(2) == 0 {
						require.NoError(t, b.store.Flush())
						break
					}
					b.crash(rng)
					staged, after = maps.Clone(applied), nil
				}
				require.Equal(t, applied, rows(t, b.store), "seed %d", seed)
				b.propose(func(tx *Tx) error { requireSeen(tx); return nil })
			}
			other := b.replace(rng.IntN(min(5, len(b.entries)+1)))
			require.Equal(t, applied, rows(t, other), "seed %d", seed)
			require.NoError(t, other.Close())
			b.applyAll()
			require.Empty(t, b.r.wipes)
			require.Empty(t, b.r.overlay)
		}
	})
}

// A wipe alone changes data: the version moves, so that nobody serves what it remembers of the state before
// (kv.Versioned).
//
// Capability: Storage on a node: Deleted tables and containers are swept.
func TestWipeMovesVersion(t *testing.T) {
	b := newBench(t)
	b.propose(sets(wipedPartition(1, 1), "v", "r"))
	b.applyAll()
	before := b.r.Machine.version.Load()
	prefix := keys.AppendAccount(nil, geo.Table, "acct")
	require.Equal(t, []error{nil}, b.propose(wipes(prefix, keys.PrefixEnd(prefix))))
	b.applyAll()
	require.Greater(t, b.r.Machine.version.Load(), before)
	require.Empty(t, rows(t, b.store))
	worked, err := b.store.Reclaim(t.Context())
	require.NoError(t, err)
	require.True(t, worked, "its room can be reclaimed")
}

// Only rows of one account of the range's service are wiped, and where the account is primary with an open gate only
// those of a generation that is closed, in the same group at the earliest (R7, R8). What is refused stages nothing.
func TestR8WipeRefused(t *testing.T) {
	generation := keys.AppendContainer(nil, geo.Table, "acct", "t", keys.Generation{Epoch: 1, Created: 7})
	other := keys.AppendContainer(nil, geo.Table, "acct", "t", keys.Generation{Epoch: 1, Created: 8})
	account := keys.AppendAccount(nil, geo.Table, "acct")
	second := keys.AppendAccount(nil, geo.Table, "zz")
	blobs := keys.AppendAccount(nil, geo.Blob, "acct")
	local := keys.RangeLocal(benchRange)
	within := append(generation, "a\x00\x01"...)
	closing := keys.ClosedGeneration(benchRange, geo.Table, "acct", "t", keys.Generation{Epoch: 1, Created: 7})
	primary := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}
	shut, follows := primary, primary
	shut.Open = false
	follows.Role, follows.Numbered = change.RoleSecondary, false

	for name, c := range map[string]struct {
		gate         change.Gate
		close        bool
		lower, upper []byte
		refused      bool
	}{
		"closed generation at the primary":         {primary, true, generation, keys.PrefixEnd(generation), false},
		"part of one":                              {primary, true, within, keys.PrefixEnd(generation), false},
		"open generation at the primary":           {primary, false, generation, keys.PrefixEnd(generation), true},
		"another generation at the primary":        {primary, true, other, keys.PrefixEnd(other), true},
		"two generations at the primary":           {primary, true, generation, keys.PrefixEnd(other), true},
		"account at the primary":                   {primary, true, account, keys.PrefixEnd(account), true},
		"account behind a closed gate":             {shut, false, account, keys.PrefixEnd(account), false},
		"account at the secondary":                 {follows, false, account, keys.PrefixEnd(account), false},
		"generation at the secondary":              {follows, false, generation, keys.PrefixEnd(generation), false},
		"account without a gate":                   {change.Gate{}, false, account, keys.PrefixEnd(account), false},
		"two accounts":                             {change.Gate{}, false, account, keys.PrefixEnd(second), true},
		"from within the account up to the next":   {change.Gate{}, false, within, second, true},
		"service":                                  {change.Gate{}, false, keys.AppendService(nil, geo.Table), keys.PrefixEnd(second), true},
		"another service":                          {change.Gate{}, false, blobs, keys.PrefixEnd(blobs), true},
		"what belongs to the range":                {change.Gate{}, false, local, keys.PrefixEnd(local), true},
		"no keys":                                  {change.Gate{}, false, account, account, true},
		"backwards":                                {change.Gate{}, false, keys.PrefixEnd(account), account, true},
		"no bounds":                                {change.Gate{}, false, nil, nil, true},
		"a generation of a malformed account name": {change.Gate{}, false, []byte{2, 4, 'a'}, []byte{2, 4, 'b'}, true},
	} {
		b := newBench(t)
		b.propose(func(tx *Tx) error {
			tx.SetGate("acct", change.Gate{Role: change.RoleSecondary, Open: true})
			return nil
		},
			sets(wipedPartition(7, 1), "v", "r"),
			func(tx *Tx) error { tx.SetGate("acct", c.gate); return nil })
		b.applyAll()
		commands := []func(tx *Tx) error{func(*Tx) error { return nil }, wipes(c.lower, c.upper)}
		if c.close {
			commands[0] = func(tx *Tx) error { tx.CloseGeneration(closing); return nil }
		}
		err := b.propose(commands...)[1]
		if !c.refused {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, ErrWipeRefused, name)
		require.Empty(t, b.r.wipes, name)
		b.applyAll()
		require.Len(t, rows(t, b.store), 1, name)
	}
}

// No more than wipesMax wipes are in flight: what a read looks at is bounded (invariant 8). The next one waits until
// one took effect.
func TestWipesMax(t *testing.T) {
	b := newBench(t)
	prefix := keys.AppendAccount(nil, geo.Table, "acct")
	one := wipes(prefix, keys.PrefixEnd(prefix))
	for range wipesMax {
		require.Equal(t, []error{nil}, b.propose(one))
	}
	require.Equal(t, []error{kv.ErrBusy}, b.propose(one))
	b.apply()
	require.Equal(t, []error{nil}, b.propose(one))
}
