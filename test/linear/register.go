package linear

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"antipode/geo"
)

// Verb is what a client does with an object.
type Verb int

// The verbs.
const (
	Read Verb = iota
	Put
	Insert // where there is nothing
	Swap   // where the value is still the one that was read
	Delete
	verbs
)

// Op is one operation on an object, an entity or a blob.
type Op struct {
	Verb    Verb
	Service geo.Service
	Key     string
	// Value is written; Expect is what a swap replaces, Tag its ETag.
	Value, Expect, Tag string
}

// Result is what the client knows of it.
type Result struct {
	// Unknown is set if no answer came.
	Unknown bool
	// Done is set where a write took place.
	Done bool
	// Value is what a read found, "" for nothing, and Tag its ETag.
	Value, Tag string
}

// register is an object as one client after the other would see it.
func register() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			return apart(history, func(input any) string { return input.(Op).Key })
		},
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			now, in, out := state.(string), input.(Op), output.(Result)
			does, next := true, in.Value
			switch in.Verb {
			case Read:
				return out.Unknown || out.Value == now, now
			case Put:
			case Insert:
				does = now == ""
			case Swap:
				does = now == in.Expect
			case Delete:
				does, next = now != "", ""
			}
			if !does {
				next = now
			}
			return out.Unknown || out.Done == does, next
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

// apart takes a history apart by the key of each operation.
func apart(history []porcupine.Operation, key func(input any) string) (parts [][]porcupine.Operation) {
	byKey := map[string][]porcupine.Operation{}
	for _, o := range history {
		k := key(o.Input)
		byKey[k] = append(byKey[k], o)
	}
	for _, p := range byKey {
		parts = append(parts, p)
	}
	return parts
}
