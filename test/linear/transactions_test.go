package linear

import (
	"math"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// The partition refuses a transaction that is half visible, or that failed and is seen all the same, one that names
// another step than the first that could not be done, and a query at -secondary that mixes two moments.
func TestPartitionRefuses(t *testing.T) {
	at := func(call, ret int64, in Transaction, out Outcome) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: ret, Input: in, Output: out}
	}
	read := func(call, ret int64, values ...string) porcupine.Operation {
		var out Outcome
		copy(out.Rows[:], values)
		return at(call, ret, Transaction{}, out)
	}
	two := Transaction{Steps: []Step{{Verb: Insert, Row: 0, Value: "a"}, {Verb: Put, Row: 1, Value: "a"}}}
	more := Transaction{Steps: []Step{{Verb: Put, Row: 1, Value: "b"}, {Verb: Swap, Row: 0, Expect: "a", Value: "b"}}}
	gone := Transaction{Steps: []Step{{Verb: Put, Row: 2, Value: "c"}, {Verb: Delete, Row: 3}, {Verb: Insert, Row: 0}}}
	done := Outcome{Failed: -1}
	first, second := at(0, 10, two, done), at(20, 30, more, done)
	for name, tc := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"all":                  {[]porcupine.Operation{first, read(20, 30, "a", "a")}, true},
		"half":                 {[]porcupine.Operation{first, read(20, 30, "a", "")}, false},
		"half beside it":       {[]porcupine.Operation{first, read(5, 30, "", "a")}, false},
		"none beside it":       {[]porcupine.Operation{first, read(5, 30, "", "")}, true},
		"two":                  {[]porcupine.Operation{first, second, read(40, 50, "b", "b")}, true},
		"mixed":                {[]porcupine.Operation{first, second, read(0, 50, "a", "b")}, false},
		"old, set back":        {[]porcupine.Operation{first, second, read(0, 50, "a", "a")}, true},
		"failed":               {[]porcupine.Operation{first, at(20, 30, gone, Outcome{Failed: 1}), read(40, 50, "a", "a")}, true},
		"failed, and seen":     {[]porcupine.Operation{first, at(20, 30, gone, Outcome{Failed: 1}), read(40, 50, "a", "a", "c")}, false},
		"failed at another":    {[]porcupine.Operation{first, at(20, 30, gone, Outcome{Failed: 2})}, false},
		"failed for no reason": {[]porcupine.Operation{at(0, 10, two, Outcome{Failed: 0})}, false},
		"done, and impossible": {[]porcupine.Operation{first, at(20, 30, two, done)}, false},
		"unknown, and half":    {[]porcupine.Operation{at(0, math.MaxInt64, two, Outcome{Unknown: true}), read(20, 30, "a", "")}, false},
		"unknown, seen late": {[]porcupine.Operation{
			at(0, math.MaxInt64, two, Outcome{Unknown: true}), read(20, 30, "", ""), read(40, 50, "a", "a"),
		}, true},
	} {
		require.Equal(t, tc.want, porcupine.CheckOperations(partition(), tc.history), name)
	}
}
