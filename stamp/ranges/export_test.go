package ranges

// What tests in ranges_test see of a range beside its exported methods.
const EvaluateMax = evaluateMax

// Queued is how many commands wait for their evaluation.
func (r *Range) Queued() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue)
}

// Warm ends rehearsals: on a busy machine a row may seem to come from a disk.
func (r *Range) Warm() { r.coldUntil.Store(0) }
