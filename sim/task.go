package sim

import (
	"errors"
	"iter"
	"slices"
	"time"

	"antipode/stamp/kv"
)

// errGone: the node that a task belongs to died.
var errGone = errors.New("sim: the node is gone")

// task is what a node does beside its scheduler, such as sending a range snapshot. It
// runs while the run waits for it, from one pause to the next, so that whatever it does
// happens in one order.
type task struct {
	m     *member
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	// gone means that its node died: every pause ends at once.
	gone, ended bool
}

// begin takes f as a task of the node: see node.Options.Go.
func (m *member) begin(f func()) {
	t := &task{m: m}
	t.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		f()
	})
	m.tasks = append(m.tasks, t)
	m.l.s.after(0, t.goOn)
}

// goOn runs the task up to its next pause.
func (t *task) goOn() {
	if t.ended {
		return
	}
	s := t.m.l.s
	outer := s.task
	s.task = t
	_, more := t.next()
	s.task = outer
	if t.ended = !more; t.ended {
		t.m.tasks = slices.DeleteFunc(t.m.tasks, func(other *task) bool { return other == t })
	}
	t.m.dirty = true
}

// pause lets d go by.
func (t *task) pause(d time.Duration) error {
	if t.gone {
		return errGone
	}
	t.m.l.s.after(d, t.goOn)
	t.yield(struct{}{})
	if t.gone {
		return errGone
	}
	return nil
}

// await waits in a task until done is called, at most for d: kv.ErrUnknown after that.
// A node that stands still goes on later.
func (t *task) await(d time.Duration, begin func(done func(error))) error {
	if t.gone {
		return errGone
	}
	s := t.m.l.s
	err, waits := kv.ErrUnknown, true
	goOn := func() {
		if waits {
			waits = false
			t.m.whenAwake(t.goOn)
		}
	}
	answered := false
	begin(func(answer error) {
		if !answered && waits {
			answered, err = true, answer
			s.after(0, goOn) // It may be called in the middle of a pass.
		}
	})
	s.after(d, goOn)
	t.yield(struct{}{})
	waits = false
	if t.gone {
		return errGone
	}
	return err
}

// rest lets d go by.
func (t *task) rest(d time.Duration) error {
	if err := t.await(d, func(func(error)) {}); !errors.Is(err, kv.ErrUnknown) {
		return err
	}
	return nil
}

// endTasks ends what the node does beside its scheduler, and what others send it.
func (m *member) endTasks() {
	for _, tr := range slices.Clone(m.l.net.transfers) {
		if tr.to == m.id && !tr.task.ended {
			tr.broken = true
			tr.task.goOn()
		}
	}
	for _, t := range slices.Clone(m.tasks) {
		t.gone = true
		for !t.ended {
			t.goOn()
		}
	}
}
