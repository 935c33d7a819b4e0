// Package operation is the table of the operations of the storage protocol: what each of
// them may change.
//
// Invariant: whether a request may be sent again, and whether it is served through
// `-secondary`, follows from its operation alone. An HTTP method says nothing about it:
// Get Messages is a GET that changes what the next one answers. An operation that this
// table does not name is taken for one that writes.
package operation
