package linear

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// leaseAt is an operation of one moment, in seconds, that was done or refused.
func leaseAt(seconds float64, done bool, op LeaseOp) porcupine.Operation {
	op.Call = int64(seconds * float64(time.Second))
	out := LeaseResult{Done: done, Return: op.Call + 1}
	return porcupine.Operation{Input: op, Call: op.Call, Output: out, Return: out.Return}
}

// looked is a read at a moment.
func looked(seconds float64, value string, locked bool) porcupine.Operation {
	o := leaseAt(seconds, true, LeaseOp{Verb: Look})
	o.Output = LeaseResult{Done: true, Value: value, Locked: locked, Return: o.Return}
	return o
}

// lostAt is an operation that began at a moment and has no answer.
func lostAt(seconds float64, op LeaseOp) porcupine.Operation {
	o := leaseAt(seconds, false, op)
	o.Return, o.Output = ever, LeaseResult{Unknown: true, Return: ever}
	return o
}

// The model refuses a history with two holders at a time, a write of another one while a lease is held, and a lease that
// ends before its time or after, and takes what leases allow (protocol/blob.md 17.3, 17.4).
func TestLeaseModel(t *testing.T) {
	put := func(id, value string) LeaseOp { return LeaseOp{Verb: Write, ID: id, Value: value} }
	timed := func(id string) LeaseOp { return LeaseOp{Verb: Acquire, ID: id, Seconds: leaseSeconds} }
	endless := func(id string) LeaseOp { return LeaseOp{Verb: Acquire, ID: id, Seconds: -1} }
	renew, release := LeaseOp{Verb: Renew, ID: "a"}, LeaseOp{Verb: Release, ID: "a"}
	stop := func(seconds int) LeaseOp { return LeaseOp{Verb: Break, Seconds: seconds} }
	type history []porcupine.Operation
	for name, tt := range map[string]struct {
		history history
		good    bool
	}{
		"held and released":        {history{leaseAt(1, true, endless("a")), leaseAt(2, true, release), leaseAt(3, true, endless("b"))}, true},
		"two holders":              {history{leaseAt(1, true, endless("a")), leaseAt(2, true, endless("b"))}, false},
		"two holders of a time":    {history{leaseAt(1, true, timed("a")), leaseAt(15.2, true, timed("b"))}, false},
		"after its end":            {history{leaseAt(1, true, timed("a")), leaseAt(16.5, true, timed("b"))}, true},
		"renewed, so not its end":  {history{leaseAt(1, true, timed("a")), leaseAt(9, true, renew), leaseAt(17, true, timed("b"))}, false},
		"after its renewed end":    {history{leaseAt(1, true, timed("a")), leaseAt(9, true, renew), leaseAt(25, true, timed("b"))}, true},
		"held beyond its end":      {history{leaseAt(1, true, timed("a")), leaseAt(17, false, timed("b"))}, false},
		"refused before its end":   {history{leaseAt(1, true, timed("a")), leaseAt(15, false, timed("b"))}, true},
		"write without it":         {history{leaseAt(1, true, endless("a")), leaseAt(2, true, put("", "1"))}, false},
		"refused without it":       {history{leaseAt(1, true, endless("a")), leaseAt(2, false, put("", "1")), looked(3, "0", true)}, true},
		"write with it":            {history{leaseAt(1, true, endless("a")), leaseAt(2, true, put("a", "1")), looked(3, "1", true)}, true},
		"refused with it":          {history{leaseAt(1, true, endless("a")), leaseAt(2, false, put("a", "1"))}, false},
		"refused, and written":     {history{leaseAt(1, true, endless("a")), leaseAt(2, false, put("", "1")), looked(3, "1", true)}, false},
		"write of another":         {history{leaseAt(1, true, endless("a")), leaseAt(2, true, put("b", "1"))}, false},
		"write with an ended one":  {history{leaseAt(1, true, timed("a")), leaseAt(17, true, put("a", "1"))}, false},
		"write after it":           {history{leaseAt(1, true, timed("a")), leaseAt(17, true, put("", "1")), leaseAt(18, false, renew)}, true},
		"renewed after a write":    {history{leaseAt(1, true, timed("a")), leaseAt(17, true, put("", "1")), leaseAt(18, true, renew)}, false},
		"renewed after its end":    {history{leaseAt(1, true, timed("a")), leaseAt(17, true, renew), leaseAt(18, true, timed("b"))}, false},
		"broken at once":           {history{leaseAt(1, true, endless("a")), leaseAt(2, true, stop(0)), leaseAt(2.1, true, timed("b"))}, true},
		"write after a break":      {history{leaseAt(1, true, endless("a")), leaseAt(2, true, stop(0)), leaseAt(3, true, put("a", "1"))}, false},
		"acquired while breaking":  {history{leaseAt(1, true, endless("a")), leaseAt(2, true, stop(2)), leaseAt(3, true, timed("b"))}, false},
		"acquired when broken":     {history{leaseAt(1, true, endless("a")), leaseAt(2, true, stop(2)), leaseAt(4.5, true, timed("b"))}, true},
		"written while breaking":   {history{leaseAt(1, true, endless("a")), leaseAt(2, true, stop(2)), leaseAt(3, true, put("a", "1"))}, true},
		"renewed while breaking":   {history{leaseAt(1, true, endless("a")), leaseAt(2, true, stop(2)), leaseAt(3, true, renew)}, false},
		"broken without a lease":   {history{leaseAt(1, true, stop(0))}, false},
		"a lease that is not seen": {history{leaseAt(1, true, endless("a")), looked(2, "0", false)}, false},
		"seen after its release":   {history{leaseAt(1, true, endless("a")), leaseAt(2, true, release), looked(3, "0", true)}, false},
		"ended, then held":         {history{leaseAt(1, true, timed("a")), looked(15.9, "0", false), looked(16.5, "0", true)}, false},
		"no answer, and taken":     {history{lostAt(1, endless("a")), leaseAt(2, false, endless("b")), leaseAt(3, true, put("a", "1"))}, true},
		"no answer, not taken":     {history{lostAt(1, endless("a")), leaseAt(2, true, endless("b"))}, true},
		"no answer, both taken":    {history{lostAt(1, endless("a")), leaseAt(2, true, endless("b")), leaseAt(3, true, put("a", "1"))}, false},
		"no answer to a release":   {history{leaseAt(1, true, endless("a")), lostAt(2, release), leaseAt(3, true, endless("b"))}, true},
	} {
		all := append(history{leaseAt(0.1, false, timed("a")), leaseAt(0.2, true, put("", "0"))}, tt.history...)
		require.Equal(t, tt.good, porcupine.CheckOperations(leaseModel(), all), name)
	}
}
