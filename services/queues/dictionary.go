package queues

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// entriesMax bounds the subqueues of a dictionary, those that are to be deleted included.
const entriesMax = 1000

// Dictionary is the subqueues of a queue: its virtual queue row (protocol/queue.md 14).
//
// Invariant: at least one of them is in StateAll (15). A change of a state is committed here before it is in the head
// of the subqueue, so that a caller whom a head refuses finds out why here.
type Dictionary struct {
	Version int `json:"v"`
	// Number is raised by every change; zero for a queue that never had one.
	Number    uint64        `json:"number"`
	Subqueues []Entry       `json:"subqueues"`
	Changed   geo.Timestamp `json:"changed"`
}

// Entry is one subqueue of a dictionary.
type Entry struct {
	ID     SubqueueID    `json:"id"`
	Schema byte          `json:"schema"`
	State  State         `json:"state"`
	Since  geo.Timestamp `json:"since"`
}

const dictionaryFormat = 1

// first is the dictionary of a queue without a row of one.
func first() *Dictionary {
	return &Dictionary{Version: dictionaryFormat, Subqueues: []Entry{{Schema: schemaCurrent, State: StateAll}}}
}

// ParseDictionary decodes a dictionary.
func ParseDictionary(b []byte) (*Dictionary, error) {
	d := &Dictionary{}
	if err := json.Unmarshal(b, d); err != nil {
		return nil, fmt.Errorf("dictionary of a queue: %w", err)
	}
	if d.Version != dictionaryFormat {
		return nil, fmt.Errorf("dictionary of a queue: unknown format version %d", d.Version)
	}
	return d, d.check()
}

// errDictionary: a dictionary breaks its invariants.
var errDictionary = errors.New("queues: malformed dictionary")

func (d *Dictionary) check() error {
	seen, takes := map[SubqueueID]bool{}, false
	for _, e := range d.Subqueues {
		if seen[e.ID] || e.State == 0 || e.State >= stateEnd {
			return fmt.Errorf("%w: subqueue %s twice, or in state %d", errDictionary, e.ID, e.State)
		}
		seen[e.ID] = true
		takes = takes || e.State == StateAll
	}
	if !takes || len(seen) > entriesMax {
		return fmt.Errorf("%w: %d subqueues, of which one takes messages: %t", errDictionary, len(seen), takes)
	}
	return nil
}

// with returns the entries whose states are in a set.
func (d *Dictionary) with(states ...State) (out []Entry) {
	for _, e := range d.Subqueues {
		if slices.Contains(states, e.State) {
			out = append(out, e)
		}
	}
	return out
}

// live are the entries that clients' messages are in.
func (d *Dictionary) live() []Entry { return d.with(StateAll, StateAllExceptPut, StateDisabled) }

func (d *Dictionary) entry(id SubqueueID) (e Entry, known bool) {
	for _, e := range d.Subqueues {
		if e.ID == id {
			return e, true
		}
	}
	return Entry{}, false
}

// mayBecome refuses what would lose messages: what is to be deleted never lives again, and nothing else leaves the
// dictionary (protocol/queue.md 15).
func (d *Dictionary) mayBecome(to *Dictionary) error {
	for _, was := range d.Subqueues {
		e, kept := to.entry(was.ID)
		if was.State == StateToBeDeleted && kept && e.State != StateToBeDeleted || was.State != StateToBeDeleted && !kept {
			return fmt.Errorf("%w: subqueue %s in state %d becomes %d", errDictionary, was.ID, was.State, e.State)
		}
	}
	return nil
}

// clone returns a dictionary that may be changed.
func (d *Dictionary) clone() *Dictionary {
	out := *d
	out.Subqueues = slices.Clone(d.Subqueues)
	return &out
}

// ReadDictionary reads the dictionary of a queue.
func ReadDictionary(get kv.Getter, q Queue) (*Dictionary, error) {
	v, ok, err := get.Get(append(q.DictionaryPartition().Append(nil), rowDictionary))
	if err != nil {
		return nil, err
	}
	if !ok {
		return first(), nil
	}
	return ParseDictionary(v)
}

// ChangeDictionary replaces the dictionary of a queue. ErrStale: it was changed since To was made of it.
type ChangeDictionary struct {
	Queue Queue
	// To has the number of the dictionary that it was made of; the command raises it.
	To *Dictionary
	// Clears: the change frees room.
	Clears bool
}

// Partition implements services.Write.
func (c *ChangeDictionary) Partition() keys.Partition { return c.Queue.DictionaryPartition() }

// Gone implements services.Write.
func (c *ChangeDictionary) Gone() error { return storageerr.QueueNotFound }

// Deletes implements services.Deletion.
func (c *ChangeDictionary) Deletes() bool { return c.Clears }

// Evaluate implements services.Write.
func (c *ChangeDictionary) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	old, err := ReadDictionary(get, c.Queue)
	if err != nil {
		return services.Effect{}, err
	}
	if old.Number != c.To.Number {
		return services.Effect{}, ErrStale
	}
	to := c.To.clone()
	to.Version, to.Number, to.Changed = dictionaryFormat, old.Number+1, at
	for i := range to.Subqueues {
		e := &to.Subqueues[i]
		if was, known := old.entry(e.ID); !known || was.State != e.State {
			e.Since = at
		}
	}
	if err := errors.Join(to.check(), old.mayBecome(to)); err != nil {
		return services.Effect{}, err
	}
	v, err := json.Marshal(to)
	return services.Effect{Ops: []change.Op{{Row: []byte{rowDictionary}, Value: v}}}, err
}
