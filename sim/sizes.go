package sim

import "antipode/stamp/ranges"

// One seed in largeEvery has stamps of more than three nodes, in which a range other than the
// catalog is on three of them. Such a run takes about a third longer.
const largeEvery = 4

// stampNodes is how many nodes the stamps of the two locations have. It draws nothing: what
// else happens under a seed does not depend on it.
func stampNodes(seed uint64) [2]int {
	if seed%largeEvery != 0 {
		return [...]int{ranges.Replicas, ranges.Replicas}
	}
	large := [...][2]int{{7, 4}, {5, 4}, {3, 7}, {4, 5}, {6, 3}, {5, 5}}
	return large[seed/largeEvery%uint64(len(large))]
}

// One seed in budgetEvery has a small budget of the outbox, so that accounts fall out (R18), and no recovery
// with a loss.
const budgetEvery = 8

// outboxBudget is the budget of a run in bytes, 0 for none. It draws nothing.
func outboxBudget(seed uint64) int64 {
	if seed%budgetEvery != 3 {
		return 0
	}
	return [...]int64{4 << 10, 12 << 10}[seed/budgetEvery%2]
}
