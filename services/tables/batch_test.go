package tables

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/services/tables/entity"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// state is the rows of a range by their whole keys.
type state map[string][]byte

func (s state) Get(key []byte) ([]byte, bool, error) {
	v, ok := s[string(key)]
	return v, ok, nil
}

func (s state) apply(p keys.Partition, ops []change.Op) {
	for _, op := range ops {
		key := string(p.Append(nil)) + string(op.Row)
		if op.Delete {
			delete(s, key)
		} else {
			s[key] = op.Value
		}
	}
}

func (s state) clone() state {
	c := state{}
	for k, v := range s {
		c[k] = v
	}
	return c
}

var generation = keys.Generation{Epoch: 1, Created: 7}

func list(t interface{ Fatal(...any) }, pairs ...string) []byte {
	b := entity.Build(nil)
	for i := 0; i < len(pairs); i += 2 {
		if err := b.AddString(pairs[i], pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func write(op Op, rk string, props []byte) *Write {
	return &Write{
		Op: op, Account: "acct", Table: "tbl", Generation: generation, PK: "p", RK: rk,
		Match: Match{Any: true}, Props: props,
	}
}

// A batch has the effect of its writes one after the other, at its one commit time. If one of
// them would fail, it fails with the error and the index of that write, and has no effect
// (protocol/table.md 13.1, 13.6).
func TestBatchTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := state{}
		for _, rk := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 0, 5, rapid.ID).Draw(t, "stored") {
			w := write(Insert, rk, list(t, "old", rk))
			effect, err := w.Evaluate(before, 10)
			require.NoError(t, err)
			before.apply(w.Partition(), effect.Ops)
		}
		after := before.clone()
		var b Batch
		wantIndex, wantErr := -1, error(nil)
		for i, rk := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 1, 5, rapid.ID).Draw(t, "written") {
			w := write(Op(rapid.IntRange(int(Insert), int(Delete)).Draw(t, "op")), rk, list(t, "new", rk))
			if rapid.IntRange(0, 3).Draw(t, "tagged") == 0 {
				w.Match = Match{Tag: geo.Timestamp(rapid.SampledFrom([]int{10, 11}).Draw(t, "tag"))}
			}
			require.NoError(t, b.Add(w))
			if wantErr != nil {
				continue
			}
			alone := *w
			effect, err := alone.Evaluate(after, 20)
			if err != nil {
				wantIndex, wantErr = i, err
				continue
			}
			after.apply(w.Partition(), effect.Ops)
		}
		got := before.clone()
		effect, err := b.Evaluate(got, 20)
		if wantErr != nil {
			var of *BatchError
			require.ErrorAs(t, err, &of)
			require.Equal(t, wantIndex, of.Index)
			require.ErrorIs(t, err, wantErr)
			require.Empty(t, effect.Ops)
			return
		}
		require.NoError(t, err)
		got.apply(b.Partition(), effect.Ops)
		require.Equal(t, after, got)
		for _, w := range b.Writes() {
			require.Equal(t, geo.Timestamp(20), w.Timestamp, "all share the commit time (4.7)")
		}
	})
}

// A batch refuses writes that do not belong to it, and a refused write leaves no trace.
func TestBatchAdd(t *testing.T) {
	var b Batch
	require.NoError(t, b.Add(write(Insert, "0", nil)))
	other := write(Insert, "x", nil)
	other.PK = "P"
	require.ErrorIs(t, b.Add(other), storageerr.BatchPartitionsDiffer)
	other = write(Insert, "x", nil)
	other.Table = "tbl2"
	require.ErrorIs(t, b.Add(other), storageerr.BatchPartitionsDiffer)
	require.ErrorIs(t, b.Add(write(Delete, "0", nil)), storageerr.BatchRowTwice)
	other = write(Insert, "x", nil)
	other.Table = "TBL"
	require.NoError(t, b.Add(other), "a table's name has no case")
	for i := 1; i < BatchMax-1; i++ {
		require.NoError(t, b.Add(write(Insert, fmt.Sprint(i), nil)))
	}
	require.ErrorIs(t, b.Add(write(Insert, "one more", nil)), storageerr.BatchTooLong)
	require.Len(t, b.Writes(), BatchMax)
	require.ErrorIs(t, b.Gone(), storageerr.TableNotFound)
}

// Small merges of large entities write them whole. A batch that fits a change is committed;
// another is refused at the operation that exceeds the limit.
func TestBatchEffect(t *testing.T) {
	stored := state{}
	text := string(bytes.Repeat([]byte{'x'}, entity.StringUnitsMax))
	pairs := []string{}
	for i := range 15 {
		pairs = append(pairs, fmt.Sprintf("s%d", i), text)
	}
	large := list(t, pairs...)
	merges := func(n int) *Batch {
		var b Batch
		for i := range n {
			rk := fmt.Sprint(i)
			w := write(Insert, rk, large)
			effect, err := w.Evaluate(stored, 10)
			if err == nil {
				stored.apply(w.Partition(), effect.Ops)
			}
			require.NoError(t, b.Add(write(Merge, rk, list(t, "n", "1"))))
		}
		return &b
	}
	fit := effectBytesMax / (len(large) + 64)
	b := merges(fit)
	effect, err := b.Evaluate(stored, 20)
	require.NoError(t, err)
	_, err = change.AppendRecord(nil, &change.Record{
		Account: "acct", Partition: append(b.Partition().Append(nil), make([]byte, 4096)...), Ops: effect.Ops,
	})
	require.NoError(t, err, "what a batch may write, a change can hold")
	_, err = merges(fit+1).Evaluate(stored, 20)
	var of *BatchError
	require.True(t, errors.As(err, &of))
	require.Equal(t, fit, of.Index)
	require.ErrorIs(t, err, storageerr.BatchEffectTooLarge)
}
