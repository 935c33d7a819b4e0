package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"antipode/internal/clock"
)

// The workloads. fdatasync measures the disk and is no workload of requests: see wholeRuns.
const (
	workloadInsert    = "insert"
	workloadGet       = "get"
	workloadBatch     = "batch"
	workloadQuery     = "query"
	workloadRange     = "query-range"
	workloadSearch    = "query-search"
	workloadList      = "list"
	workloadFdatasync = "fdatasync"
)

// object is what one request writes: an entity, a transaction of them or a blob, the
// n-th of a worker.
type object struct {
	worker, n int
}

// partition is where an object lives: neighbours in number are spread.
func (o object) partition(partitions int) int { return (o.n*31 + o.worker*7919) % partitions }

// objects defines how the objects of a run are written and read back. It serves one connection,
// and a call is valid until the next one.
type objects interface {
	// create is the call that makes the table or container of the run.
	create() *call
	write(o object) *call
	read(o object) *call
	// check reports whether the body of a read holds the object's value.
	check(o object, body []byte) error
}

// scan is a timed operation that reads many objects, or what many hold, at once.
type scan interface {
	next() *call
	// check reports whether the answer to next is right, and whether the operation goes on with another request.
	check(a answer) (more bool, err error)
}

// workload defines the objects and the timed operation.
type workload struct {
	kind
	objects
	// scan is nil where the timed operation writes or reads one object.
	scan scan
	// operation is nil where the timed operation is one that all workloads share.
	operation operation
	// messages is of the workloads of queues alone, which have no objects and no scan.
	messages *messages
	// preloads is how many objects are written before reads are timed.
	preloads int
	// name holds everything of this run: a table or a container.
	name string
}

// kind is a row of the table of workloads.
type kind struct {
	blob bool
	// reads means that the timed operation reads what was written first.
	reads bool
	// size is the bytes of a blob.
	size int
	// items is how many entities or blobs an operation writes or reads; zero is one.
	items int
	// counted is what items are called in results; empty is blobs or entities.
	counted string
	// begins makes the operation of a connection, for workloads that have one.
	begins func(o Options, b blobs) operation
	// steps are the requests of an operation on a queue.
	steps []string
}

func workloads() map[string]kind {
	return map[string]kind{
		workloadInsert: {},
		workloadGet:    {reads: true},
		workloadBatch:  {items: batchEntities},
		workloadQuery:  {items: scanItems, reads: true},
		workloadRange:  {items: batchEntities, reads: true},
		workloadSearch: {reads: true},
		workloadList:   {items: scanItems, reads: true, blob: true, size: 1 << 10},
		"blob-put-4k":  {blob: true, size: 4 << 10},
		"blob-get-4k":  {blob: true, size: 4 << 10, reads: true},
		"blob-put-4m":  {blob: true, size: 4 << 20},
		"blob-get-4m":  {blob: true, size: 4 << 20, reads: true},

		workloadAppend:    {blob: true, size: 4 << 10, begins: newAppends},
		workloadRenew:     {blob: true, size: 1 << 10, begins: newLeases},
		workloadDelete:    {blob: true, size: 1 << 10, begins: newDeletes, items: batchDeletes, counted: "deletes"},
		workloadSnapshots: {blob: true, size: 1 << 10, begins: newSnapshots},
		workloadBlobCopy:  {blob: true, begins: newCopies},
		workloadPutBlocks: {blob: true, begins: newPutBlocks},
		workloadGetBlocks: {blob: true, begins: newGetBlocks},

		"queue-put":   {steps: []string{stepPut}},
		"queue-cycle": {steps: []string{stepPut, stepGet, stepDelete}},
		// Until the messages that were put first are gone: give --depth.
		"queue-get-delete": {steps: []string{stepGet, stepDelete}},
	}
}

// wholeRuns are the workloads that are no requests to a server: each is a separate run.
func wholeRuns() map[string]func(ctx context.Context, o Options, clk clock.Clock, out io.Writer) error {
	runs := map[string]func(ctx context.Context, o Options, clk clock.Clock, out io.Writer) error{
		workloadFdatasync: probeSync, workloadRecover: measureRecovery, workloadRestart: measureRestart, workloadScrub: measureScrub,
		workloadCopy: measureCopy,
	}
	for name := range committers() {
		runs[name] = measureCommits
	}
	return runs
}

func workloadNames() string {
	var names []string
	for name := range workloads() {
		names = append(names, name)
	}
	for name := range wholeRuns() {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// newWorkload makes the part that the connection of this number has in a run.
func newWorkload(o Options, name string, id int) *workload {
	w := &workload{kind: workloads()[o.Workload], name: name, preloads: (o.Rows + o.Concurrency - 1) / o.Concurrency}
	if of := w.begins; of != nil {
		w.operation = of(o, blobs{name: name, partitions: o.Partitions, size: w.size})
		w.objects = w.operation
		return w
	}
	switch o.Workload {
	case workloadBatch:
		w.objects = newBatches(o, name, 1)
	case workloadQuery, workloadRange, workloadSearch:
		w.objects, w.scan = newBatches(o, name, scanBatches), newScan(o, name, id)
		w.preloads = share(scanUnits(o), id, o.Concurrency) * scanBatches
	case workloadList:
		w.objects, w.scan = newListed(o, name, w.size), &list{name: name, pages: scanUnits(o)}
		w.preloads = share(scanUnits(o)*scanItems, id, o.Concurrency)
	default:
		if w.steps != nil {
			w.messages = newMessages(o, name, id, w.steps)
		} else if w.blob {
			w.objects = &blobs{name: name, partitions: o.Partitions, size: w.size}
		} else {
			w.objects = &entities{name: name, partitions: o.Partitions}
		}
	}
	return w
}

// container is the call that makes the table, container or queue of the run.
func (w *workload) container() *call {
	if w.messages != nil {
		return w.messages.create()
	}
	return w.create()
}

// share is how many of n things dealt out in turn the worker of this number has.
func share(n, id, workers int) int { return (n - id + workers - 1) / workers }
