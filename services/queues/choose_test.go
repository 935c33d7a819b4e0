package queues

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/stamp/keys"
)

func chosen(t *testing.T, c *chooser, d *Dictionary) (puts map[SubqueueID]int, firsts map[SubqueueID]int, order []Subqueue) {
	puts, firsts = map[SubqueueID]int{}, map[SubqueueID]int{}
	for range 200 {
		at, err := c.forPut(goldenQueue(), d)
		require.NoError(t, err)
		puts[at.ID]++
		order, err = c.forGet(goldenQueue(), d)
		require.NoError(t, err)
		firsts[order[0].ID]++
	}
	return puts, firsts, order
}

// Q25: messages are put into subqueues of the newest schema alone, and got from those of the oldest first; from no
// subqueue that is disabled or to be deleted (protocol/queue.md 20, 25).
func TestQ25SchemasDrain(t *testing.T) {
	t.Parallel()
	c := &chooser{random: rand.Reader}
	d := &Dictionary{Subqueues: []Entry{
		{ID: 1, Schema: 1, State: StateAll},
		{ID: 2, Schema: 2, State: StateAll},
		{ID: 3, Schema: 2, State: StateAll},
		{ID: 4, Schema: 2, State: StateAllExceptPut},
		{ID: 5, Schema: 1, State: StateAllExceptPut},
		{ID: 6, Schema: 1, State: StateDisabled},
		{ID: 7, Schema: 3, State: StateToBeDeleted},
	}}
	puts, firsts, order := chosen(t, c, d)
	require.Len(t, puts, 2)
	require.Positive(t, puts[2]*puts[3], "both of the newest schema")
	require.Len(t, firsts, 2)
	require.Positive(t, firsts[1]*firsts[5], "both of the oldest schema")
	require.Len(t, order, 5)
	for i, at := range order {
		require.Equal(t, i < 2, at.ID == 1 || at.ID == 5, "the oldest schema first")
	}
}

// A put goes to the emptier of two subqueues, and a get takes from the fuller one, as far as that is known. A
// subqueue of which nothing is known is used, so that it becomes known (protocol/queue.md 20).
func TestChoiceKeepsSubqueuesEven(t *testing.T) {
	t.Parallel()
	c := &chooser{random: rand.Reader}
	d := &Dictionary{Subqueues: []Entry{{ID: 1, Schema: 1, State: StateAll}, {ID: 2, Schema: 1, State: StateAll}}}
	c.known.learn(goldenQueue(), d, time.Second)
	c.known.used(Subqueue{goldenQueue(), 1}, 10)
	puts, firsts, _ := chosen(t, c, d)
	require.Equal(t, map[SubqueueID]int{2: 200}, puts)
	require.Equal(t, map[SubqueueID]int{2: 200}, firsts)
	c.known.used(Subqueue{goldenQueue(), 2}, 5)
	puts, firsts, _ = chosen(t, c, d)
	require.Equal(t, map[SubqueueID]int{2: 200}, puts)
	require.Equal(t, map[SubqueueID]int{1: 200}, firsts)
}

// A dictionary is used for a moment alone; of two reads that which began later counts.
func TestKnowledge(t *testing.T) {
	t.Parallel()
	var k knowledge
	q, d := goldenQueue(), first()
	k.learn(q, d, 10)
	newer := &Dictionary{Number: 1, Subqueues: d.Subqueues}
	k.learn(q, newer, 12)
	k.learn(q, d, 11)
	got, ok := k.dictionary(q, 11)
	require.True(t, ok)
	require.Equal(t, newer, got)
	_, ok = k.dictionary(q, 12)
	require.False(t, ok)
	k.forget(q)
	_, ok = k.dictionary(q, 0)
	require.False(t, ok)
}

// The dictionaries that are kept are bounded in bytes, however many subqueues they have, and a forgotten one is read
// again.
func TestKnowledgeIsBounded(t *testing.T) {
	var before, after runtime.MemStats
	for _, subqueues := range []int{1, entriesMax} {
		runtime.GC()
		runtime.ReadMemStats(&before)
		var k knowledge
		most := 0
		for i := range 2*dictionariesBytesMax/(queueBytes+entryBytes*subqueues) + 2 {
			q := Queue{Account: "acct", Name: fmt.Sprintf("%063d", i), Generation: keys.Generation{Epoch: 1, Created: 2}}
			d := &Dictionary{Subqueues: make([]Entry, subqueues)}
			for e := range d.Subqueues {
				d.Subqueues[e].ID = SubqueueID(e + 1)
			}
			k.learn(q, d, 1)
			k.learn(q, d, 2) // Again: it counts once.
			for _, e := range d.Subqueues {
				k.used(Subqueue{q, e.ID}, 7)
			}
			if most = max(most, len(k.queues)); i == dictionariesBytesMax/d.bytes()-1 {
				runtime.GC()
				runtime.ReadMemStats(&after)
				require.Len(t, k.queues, i+1, "as many as there is room for")
				require.LessOrEqual(t, int(after.HeapAlloc)-int(before.HeapAlloc), dictionariesBytesMax)
			}
			require.Equal(t, len(k.queues)*d.bytes(), k.held)
			require.LessOrEqual(t, k.held, dictionariesBytesMax)
		}
		require.Less(t, len(k.queues), most, "all were forgotten")
		for q := range k.queues {
			k.forget(q)
		}
		require.Zero(t, k.held)
	}
}
