// Package queues is the front end of the queue service (protocol/queue.md): it turns requests into the commands
// and queries of services/queues and their results into XML.
//
// Invariant: a request that is refused has changed nothing, and a success is written only after the command is on
// every in-sync replica. Get Messages, a GET that hides what it returns, is run once for each request.
package queues
