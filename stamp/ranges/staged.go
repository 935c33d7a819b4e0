package ranges

import (
	"slices"

	"antipode/geo"
)

// staged is the keys of the overlay in their order, so that Tx.Rows need not sort them all for each command. The range
// of the queue service alone has it, where every dequeue walks; other ranges walk seldom, and pay nothing for it.
//
// Invariant: every key of the overlay is in it. It may have others, which groups that ended or were taken back have
// staged: they are dropped once they are more than half.
type staged struct{ keys []string }

// stagedSlack is how many keys beside twice those of the overlay are kept.
const stagedSlack = 64

// newStaged returns the order of an empty overlay; nil for a range that has none.
func newStaged(s geo.Service) *staged {
	if s != geo.Queue {
		return nil
	}
	return &staged{}
}

func (s *staged) add(k string) {
	if i, found := slices.BinarySearch(s.keys, k); !found {
		s.keys = slices.Insert(s.keys, i, k)
	}
}

// within returns the keys of [from, end), and those that the overlay does not have any more.
func (s *staged) within(from, end string) []string {
	i, _ := slices.BinarySearch(s.keys, from)
	n, _ := slices.BinarySearch(s.keys[i:], end)
	return s.keys[i : i+n]
}

// prune drops keys that the overlay does not have, if there are many.
func (s *staged) prune(overlay map[string]overlayValue) {
	if len(s.keys) <= 2*len(overlay)+stagedSlack {
		return
	}
	s.keys = slices.DeleteFunc(s.keys, func(k string) bool {
		_, kept := overlay[k]
		return !kept
	})
}

// overlay stages the value of a key over the applied state.
func (tx *Tx) overlay(k string, v overlayValue) {
	was, had := tx.r.overlay[k]
	tx.saved = append(tx.saved, undo{key: k, was: was, had: had})
	v.group = tx.g.id
	tx.r.overlay[k] = v
	tx.g.keys = append(tx.g.keys, k)
	if tx.r.staged != nil {
		tx.r.staged.add(k)
	}
}
