// Package oracle remembers, outside the server, what the server promised: for
// each key the value of the last acknowledged write and the values that writes
// with lost answers may have left, and it checks every read against them.
//
// Invariant: a read is found good only if some outcome of the unanswered writes,
// together with every acknowledged one, explains it. So a complaint is always a
// broken promise of the server, never bad luck of the test.
//
// It stays exact because a key has one writer, and because a key with an
// unanswered write takes no other until [Oracle.Resolve] has read, after a
// restart, which way that write went. A [Log] has many writers: there the places of
// the records, which answers and reads give, say which order is good. So have the names of [Copies]: there the commit times do.
package oracle
