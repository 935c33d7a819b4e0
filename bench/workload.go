package main

import (
	"slices"
	"strings"
)

// The workloads. fdatasync measures the disk and is no workload of requests.
const (
	workloadInsert    = "insert"
	workloadGet       = "get"
	workloadFdatasync = "fdatasync"
)

// object is one entity or blob of a run: the n-th of a partition's worker.
type object struct {
	worker, n int
}

// partition is where an object lives: neighbours in number are spread.
func (o object) partition(partitions int) int { return (o.n*31 + o.worker*7919) % partitions }

// objects says how the objects of a run are written and read back. It serves one
// connection, and a call is valid until the next one.
type objects interface {
	// create is the call that makes the table or container of the run.
	create() *call
	write(o object) *call
	read(o object) *call
	// check reports whether the body of a read holds the object's value.
	check(o object, body []byte) error
}

// workload says what the objects are and what the timed operation is.
type workload struct {
	kind
	objects
	// name holds everything of this run: a table or a container.
	name string
}

// kind is a row of the table of workloads.
type kind struct {
	blob bool
	// reads says that the timed operation reads what was written first.
	reads bool
	// size is the bytes of a blob.
	size int
}

func workloads() map[string]kind {
	return map[string]kind{
		workloadInsert: {},
		workloadGet:    {reads: true},
		"blob-put-4k":  {blob: true, size: 4 << 10},
		"blob-get-4k":  {blob: true, size: 4 << 10, reads: true},
		"blob-put-4m":  {blob: true, size: 4 << 20},
		"blob-get-4m":  {blob: true, size: 4 << 20, reads: true},
	}
}

func workloadNames() string {
	names := []string{workloadFdatasync}
	for name := range workloads() {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func newWorkload(o Options, name string) *workload {
	w := &workload{kind: workloads()[o.Workload], name: name}
	if w.blob {
		w.objects = &blobs{name: name, partitions: o.Partitions, size: w.size}
	} else {
		w.objects = &entities{name: name, partitions: o.Partitions}
	}
	return w
}
