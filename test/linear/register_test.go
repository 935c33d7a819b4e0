package linear

import (
	"math"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// The register refuses what is not linearizable: a stale read, a lost write, a second
// insert.
func TestRegisterRefuses(t *testing.T) {
	at := func(client int, call, ret int64, in Op, out Result) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Call: call, Return: ret, Input: in, Output: out}
	}
	write := at(1, 0, 10, Op{Verb: Put, Value: "a"}, Result{Done: true})
	lost := at(1, 0, math.MaxInt64, Op{Verb: Put, Value: "a"}, Result{Unknown: true})
	for name, tc := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"stale read":      {[]porcupine.Operation{write, at(2, 20, 30, Op{Verb: Read}, Result{Value: ""})}, false},
		"fresh read":      {[]porcupine.Operation{write, at(2, 20, 30, Op{Verb: Read}, Result{Value: "a"})}, true},
		"read beside it":  {[]porcupine.Operation{write, at(2, 5, 30, Op{Verb: Read}, Result{Value: ""})}, true},
		"second insert":   {[]porcupine.Operation{write, at(2, 20, 30, Op{Verb: Insert, Value: "b"}, Result{Done: true})}, false},
		"refused swap":    {[]porcupine.Operation{write, at(2, 20, 30, Op{Verb: Swap, Expect: "a", Value: "b"}, Result{})}, false},
		"late lost write": {[]porcupine.Operation{lost, at(2, 20, 30, Op{Verb: Read}, Result{}), at(2, 40, 50, Op{Verb: Read}, Result{Value: "a"})}, true},
		"lost write gone": {[]porcupine.Operation{lost, at(2, 20, 30, Op{Verb: Read}, Result{Value: "a"}), at(2, 40, 50, Op{Verb: Read}, Result{})}, false},
	} {
		require.Equal(t, tc.want, porcupine.CheckOperations(register(), tc.history), name)
	}
}
