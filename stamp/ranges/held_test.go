package ranges

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/state"
)

// A row is what the newest operation on it says, whether operations are held back or not. A map is the twin.
func TestHeldTwin(t *testing.T) {
	store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	rng := rand.New(rand.NewPCG(1, 2))
	want := map[string]string{}
	var h held
	for i := range 200 {
		h.on = i%4 > 0
		batch := store.NewBatch()
		for range rng.IntN(60) {
			key := fmt.Sprintf("k%02d", rng.IntN(16))
			op := change.Op{Delete: rng.IntN(4) == 0, Value: fmt.Append(nil, rng.Uint32())}
			require.NoError(t, h.apply(batch, []byte(key), op))
			if delete(want, key); !op.Delete {
				want[key] = string(op.Value)
			}
		}
		require.NoError(t, h.write(batch))
		require.Empty(t, h.rows)
		require.NoError(t, store.Commit(batch))
		require.NoError(t, batch.Close())
		for i := range 16 {
			key := fmt.Sprintf("k%02d", i)
			value, ok, err := store.Get([]byte(key))
			require.NoError(t, err)
			require.Equal(t, want[key], string(value))
			require.Equal(t, want[key] != "", ok)
		}
	}
}

// The rows of a queue are held, and of no other service: one group of many commands on a subqueue gives its batch the
// head once, and the rows in the order of their keys.
func TestHeldOfQueues(t *testing.T) {
	for _, service := range []geo.Service{geo.Queue, geo.Table, geo.Blob} {
		store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
		require.NoError(t, err)
		m, err := OpenMachine(geo.FirstRange(service), store, func(Applied) {})
		require.NoError(t, err)
		batch := store.NewBatch()
		for i := range 10 {
			rec := &change.Record{Partition: []byte("p"), Ops: []change.Op{
				{Row: fmt.Append(nil, "message", (i+5)%10), Value: []byte("text")}, {Row: []byte("head"), Value: []byte{byte(i)}},
			}}
			require.NoError(t, m.setOps(batch, rec))
		}
		if service == geo.Queue {
			require.Len(t, m.held.rows, 20)
			rows := m.held.last()
			require.Len(t, rows, 11)
			require.True(t, slices.IsSortedFunc(rows, func(a, b heldRow) int { return bytes.Compare(m.held.key(a), m.held.key(b)) }))
			require.Equal(t, "phead", string(m.held.key(rows[0])))
			require.Equal(t, []byte{9}, rows[0].value)
			m.held.rows = rows
		} else {
			require.Empty(t, m.held.rows)
		}
		require.NoError(t, m.held.write(batch))
		require.NoError(t, store.Commit(batch))
		value, _, err := store.Get([]byte("phead"))
		require.NoError(t, err)
		require.Equal(t, []byte{9}, value)
		require.NoError(t, batch.Close())
		require.NoError(t, store.Close())
	}
}

// What an Apply that failed had held is not written with the state that takes its place.
func TestHeldIsDroppedWithTheState(t *testing.T) {
	store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	m, err := OpenMachine(geo.FirstRange(geo.Queue), store, func(Applied) {})
	require.NoError(t, err)
	batch := store.NewBatch()
	require.NoError(t, m.setOps(batch, &change.Record{Partition: []byte("p"), Ops: []change.Op{{Row: []byte("row"), Value: []byte("v")}}}))
	require.NoError(t, batch.Close())
	require.NotEmpty(t, m.held.rows)
	require.NoError(t, m.load())
	require.Empty(t, m.held.rows)
	require.True(t, m.held.on)
}
