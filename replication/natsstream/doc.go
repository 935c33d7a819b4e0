// Package natsstream carries a geo stream on NATS JetStream, which stands in the
// receiving location (R15): a server embedded in the process, or an outside
// cluster by URL.
//
// Invariant: the carrier may lose everything at any moment, and says so. A stream
// or durable consumer that was deleted is made again by the open Consumer, and
// every message of the new one carries a later Incarnation. An ack given for one
// incarnation never touches another.
//
// There is one JetStream stream per source location, GEO_<source>, with the
// subjects geo.<source>.>, and one durable consumer on it. Retention is by
// interest: a message is gone once the consumer acknowledged it. A store that is
// full discards new messages. The stream takes none before its consumer exists.
// A server that goes on running but stores nothing more (its files were deleted,
// its disk was full once) is found out by a Consumer that got nothing for a while,
// which then makes the stream again.
//
// In the receiving location:
//
//	srv, err := natsstream.OpenServer(natsstream.ServerOptions{Dir: dir})
//	conn, err := natsstream.Connect(natsstream.ConnOptions{Server: srv})
//	q, err := natsstream.OpenConsumer(ctx, conn, natsstream.Options{Source: "east"})
//
// and in the source location, with a Conn to the same server:
//
//	p, err := natsstream.OpenPublisher(conn, natsstream.Options{Source: "east"})
//
// Goroutines: a Publisher owns two (one hands messages to the connection, one
// calls done), a Consumer two (one fetches ahead, one ends that fetch when the
// connection is lost). Their Close waits for them.
package natsstream
