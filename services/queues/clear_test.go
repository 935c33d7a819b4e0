package queues_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/services"
	"antipode/services/queues"
	"antipode/stamp/kv"
)

// preceded calls a function before each write, whose error is that of the write.
type preceded struct {
	services.Writer
	by func(w services.Write) error
}

func (p preceded) Write(ctx context.Context, w services.Write) error {
	if err := p.by(w); err != nil {
		return err
	}
	return p.Writer.Write(ctx, w)
}

func (r *rig) precededBy(f func(w services.Write) error) *queues.Service {
	return queues.New(queues.Options{Stamp: r.stamp, Writer: preceded{r.write, f}, Clock: r.clock})
}

// A Clear that finds the dictionary changed by another one clears what that one has made, too.
func TestQ15ClearGoesOnBehindAnotherChange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(t, "a")
	changed := false
	end := r.precededBy(func(w services.Write) error {
		if _, is := w.(*queues.ChangeDictionary); is && !changed {
			changed = true
			r.change(t, add(7))
			put := &queues.Put{Command: r.at(7), PutOptions: queues.PutOptions{Text: []byte("b"), TTL: -1}}
			require.NoError(t, r.do(put))
		}
		return nil
	})
	require.NoError(t, end.Clear(t.Context(), r.queue))
	require.True(t, changed)
	require.Zero(t, r.count(t))
	require.Empty(t, r.get(t, 32, time.Hour))
}

// A Clear that cannot close what it has replaced never reports that nothing happened.
func TestQ15ClearThatFailsBehindItsChange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(t, "a")
	end := r.precededBy(func(w services.Write) error {
		if _, is := w.(*queues.SetState); is {
			return kv.ErrBusy
		}
		return nil
	})
	err := end.Clear(t.Context(), r.queue)
	require.ErrorIs(t, err, kv.ErrUnknown)
	require.NotErrorIs(t, err, kv.ErrBusy)
	require.Zero(t, r.count(t), "it did")
}

// A Clear whose process ends behind its change of the dictionary is finished by a keeper. A front end that knows the
// dictionary of before puts into what is cleared, for as long as it uses it, and not after that.
func TestQ15ClearWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.put(t, "before")
	end := queues.New(queues.Options{Stamp: k.stamp, Writer: &dying{Writer: k.write, left: 1}, Clock: k.clock})
	require.ErrorIs(t, end.Clear(t.Context(), k.queue), kv.ErrUnknown)
	require.Len(t, k.states(t), 2)
	k.put(t, "at once")
	k.clock.pass(time.Second)
	k.put(t, "a second later")
	k.keep(3 * time.Second)
	require.Equal(t, []queues.State{queues.StateAll}, k.states(t))
	require.Equal(t, []string{"a second later"}, k.get(t, 32, time.Hour, 1))
	require.Equal(t, 2, k.cleared)
}

// A Clear of a queue whose dictionary is full, since nothing was collected, changes nothing.
func TestClearOfAFullDictionary(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(t, "a")
	d := r.dictionary(t)
	for id := range queues.SubqueueID(999) {
		d.Subqueues = append(d.Subqueues, queues.Entry{ID: id + 1, Schema: 1, State: queues.StateToBeDeleted})
	}
	require.NoError(t, r.do(&queues.ChangeDictionary{Queue: r.queue, To: d}))
	require.ErrorIs(t, r.another().Clear(t.Context(), r.queue), kv.ErrBusy)
	require.Equal(t, map[byte]int{1: 1, 2: 1, 4: 1}, r.rows(t))
	require.Equal(t, []string{"a"}, r.get(t, 32, time.Hour))
}

// A Clear is taken while the disk is nearly full (R2): all of its commands are deletions.
func TestClearOnlyDeletes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(t, "a")
	commands := 0
	end := r.precededBy(func(w services.Write) error {
		commands++
		d, is := w.(services.Deletion)
		require.True(t, is && d.Deletes(), "%T", w)
		return nil
	})
	require.NoError(t, end.Clear(t.Context(), r.queue))
	require.Greater(t, commands, 3)
}
