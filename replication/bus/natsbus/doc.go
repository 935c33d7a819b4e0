// Package natsbus is the bus on NATS JetStream, in the receiving location (R15): a
// server embedded in the process, or an outside cluster by URL.
//
// Invariant: JetStream may lose everything at any moment, and the loss is reported. The
// open Consumer creates a deleted stream or durable consumer again, and every message
// of the new one carries a later Incarnation. An ack given for one
// incarnation never touches another.
//
// There is one JetStream stream per source location, GEO_<source>, with the
// subjects geo.<source>.>, and one durable consumer on it. Retention is by
// interest: a message is gone once the consumer acknowledged it. A store that is
// full discards new messages. The stream takes none before its consumer exists.
// A server may keep running but store nothing (its files were deleted, its disk was
// full once). A Consumer that got nothing for a while detects this and creates the stream
// again.
//
// In each node of the receiving location, with the stream in the servers of three:
//
//	srv, err := natsbus.OpenServer(ctx, natsbus.ServerOptions{
//		Dir: data + "/nats", Name: "west-1", Listen: ":10222", TLS: publishers,
//		Cluster: &natsbus.ClusterOptions{Name: "west", Listen: ":10200", Routes: others, TLS: nodes},
//	})
//
// in the one node that receives, over its own server or over URLs of an outside cluster:
//
//	o := natsbus.Options{Source: "east", Replicas: 3}
//	conn, err := natsbus.Connect(natsbus.ConnOptions{Server: srv})
//	q, err := natsbus.OpenConsumer(conn, o)
//
// and in each node of the source location, with a Conn to all those servers:
//
//	conn, err := natsbus.Connect(natsbus.ConnOptions{URLs: pair, TLS: publisher})
//	p, err := natsbus.OpenPublisher(conn, o)
//
// A node alone leaves Cluster and Replicas out. With three servers any one may stop:
// elections of JetStream take up to 9 s where its server was killed, and milliseconds
// where it was closed.
//
// Goroutines: a Publisher owns two (one passes messages to the connection, one
// calls done), a Consumer two (one fetches ahead, one ends that fetch when the
// connection is lost). Their Close waits for them.
package natsbus
