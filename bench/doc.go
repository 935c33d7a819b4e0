// Command bench is the load generator: it measures a running server, or the disk
// under it, and reports whether the measurement is valid.
//
//	go run ./bench --workload insert --concurrency 64 --duration 30s
//	go run ./bench --workload get --partitions 1
//	go run ./bench --workload batch --concurrency 16
//	go run ./bench --workload queue-cycle --concurrency 64 --depth 1000000   # a queue of so many messages
//	go run ./bench --workload batch-delete --rows 40960 --warmup 0s          # until these blobs are gone
//	go run ./bench --workload blob-copy --concurrency 1 --size 1GiB          # of a blob within the account
//	GOMEMLIMIT=2GiB go run ./bench --server bin/antipode --stop-location southcentralus \
//	    --workload blob-put-4m --warmup 0s --bytes 10GiB    # starts a server, and measures its memory
//	go run ./bench --server bin/antipode --workload scrub-cost --scrub-period 10m
//	go run ./bench --workload fdatasync --dir ./antipode-data
//	go run ./bench --workload recover-node --bytes 2GiB     # no server: three nodes, one of which loses its folder
//	go run ./bench --workload restart                       # kill -9, the longest tail of the log that defaults allow
//	go run ./bench --workload restart --bytes 1GiB          # a tail of that length, the state not flushed
//	go run ./bench --workload commit-network --concurrency 64   # no server: three nodes in this process
//
// Requests are bytes written by hand to kept-alive connections and answers are
// read by a minimal reader: Go's http.Client costs more processor time than the
// server it would measure. For the same reason an answer of a thousand entities or
// names is not decoded: it is scanned for what must come next, and none of it may be
// missing, changed, out of order or one too many.
//
// Invariant: a figure is printed only with its validity. Every value written is known from its key; a sample is read
// back at the end, at the primary and at -secondary. A run is void if a value is missing, or if the backlog to the
// other location grew through its second half: such a rate would not last. In queues every text that is got is
// checked, and no message may come twice. Both locations must count as many as were put and not deleted. An append, a
// renewal of a lease, a batch, a copy, a page with snapshots or a block that is answered with another status or body
// than it must have ends the run without figures.
package main
