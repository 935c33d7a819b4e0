// Package kv is the view that commands and queries have of a range's state: keys
// and values, read at one moment. It knows nothing of Raft, logs or HTTP.
//
// Invariant: everything read through one Reader is of one state of the range.
package kv

// Getter reads single keys.
type Getter interface {
	// Get returns the value of key; ok is false if the key is absent. The value is
	// the caller's to keep.
	Get(key []byte) (value []byte, ok bool, err error)
}

// Walker is the view of a command that reads rows in their order, too.
type Walker interface {
	Getter
	// Rows calls f for the rows of [from, end) in the order of their keys, until f returns false. f must not keep what
	// it gets beyond the command.
	Rows(from, end []byte, f func(key, value []byte) bool) error
}

// Version names the data of a state: within a process, the same version is the same data, also after a stamp was wiped
// or a range recovered with loss. Zero means that the data is being changed at this moment.
type Version uint64

// Versioned is a Getter of the newest state with the version of its data.
type Versioned interface {
	Getter
	Version() Version
}

// Reader reads a snapshot of a range's state. Close releases it.
type Reader interface {
	Getter
	// Scan returns an iterator over [lower, upper), before its first key.
	Scan(lower, upper []byte) (Iterator, error)
}

// Snapshot is a Reader that holds its state until it is closed.
type Snapshot interface {
	Reader
	Close() error
}

// Iterator walks keys in ascending order.
type Iterator interface {
	// Next moves to the next key and reports whether there is one.
	Next() bool
	// SeekGE moves to the first key at or above key and reports whether there is one.
	SeekGE(key []byte) bool
	// Key and Value are valid until the next move.
	Key() []byte
	Value() []byte
	// Close releases the iterator and returns the error that ended it, if any.
	Close() error
}
