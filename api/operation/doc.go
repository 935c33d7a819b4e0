// Package operation is the table of the operations of the storage protocol: one row for
// each, built or not, with every fact of it that more than one place needs.
//
// A request is looked up once, before it is authorized. Routing, the answers to a verb
// that does not fit, the rule of `-secondary`, the choice of the range's leader, whether a
// lost request is sent again, the limits of time and body, and the names in metrics read
// the row; nothing else knows. The handlers are bound to the rows by name, in the package
// of each service.
//
// Invariant: whether a request may be sent again, and whether it is served through
// `-secondary`, follows from its row alone. An HTTP method decides neither: Get Messages is
// a GET that changes what the next one answers. A request that is none of the operations is
// treated as a write.
//
// The rows follow the tables of docs/protocol, and TestReference compares them.
package operation
