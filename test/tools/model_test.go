package tools

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// verb is what a client does with the locked blob.
type verb int

const (
	acquire verb = iota // an infinite lease with the client's own id
	release
	breakNow // with a period of 0
	read
	write // under the lease
)

// step is one request of a client.
type step struct {
	verb verb
	// id is the lease's: what acquire proposes, and what write and release present.
	id string
	// value is what write stores.
	value string
}

// result is what the client knows of it.
type result struct {
	done  bool
	value string // of read
}

// lockState is the blob as one client after the other would see it.
type lockState struct {
	// id is that of the lease, kept while it is broken; empty while there is none.
	id     string
	broken bool
	value  string
}

// next is the state after a step, and whether the step is done in this one.
func (s lockState) next(in step) (after lockState, done bool) {
	held := s.id != "" && !s.broken
	switch in.verb {
	case acquire:
		return lockState{id: in.id, value: s.value}, !held || s.id == in.id
	case release:
		return lockState{value: s.value}, s.id == in.id
	case breakNow:
		return lockState{id: s.id, broken: true, value: s.value}, s.id != ""
	case write:
		return lockState{id: s.id, value: in.value}, held && s.id == in.id
	}
	return s, true
}

// lockModel checks that no two clients hold the lease at once, that only its holder writes, and that reads find the
// last write. initial is the blob's first value.
func lockModel(initial string) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lockState{value: initial} },
		Step: func(state, input, output any) (bool, any) {
			now, in, out := state.(lockState), input.(step), output.(result)
			after, done := now.next(in)
			if done != out.done || in.verb == read && out.value != now.value {
				return false, now
			}
			if !done {
				return true, now
			}
			return true, after
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}
