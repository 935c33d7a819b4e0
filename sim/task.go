package sim

import (
	"errors"
	"iter"
	"slices"
	"time"
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
