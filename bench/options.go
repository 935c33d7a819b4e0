package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// developmentKey is the key of devstoreaccount1 that every emulator knows.
const developmentKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

// concurrencyMax bounds the connections of one run.
const concurrencyMax = 4096

// Options selects what to measure; parse describes each field at its flag.
type Options struct {
	Workload, Endpoint, Account, Key string
	Concurrency, Partitions, Rows    int
	ReadBack, PID                    int
	Duration, Warmup                 time.Duration
	Admin, Dir, Etcd                 string
	Server, StopLocation             string
	// Bytes ends the measurement when so many were moved; zero is no limit.
	Bytes byteSize
	// Size is the bytes of each blob, where the workload leaves that open.
	Size        byteSize
	ScrubPeriod time.Duration
	CopyRate    byteSize
	Pairs       int
	// Queue is an existing queue, or a new one; Depth is how many messages it has at first, or how many entities
	// a table has beside those of the run.
	Queue string
	Depth int
	// Table is an existing table, or the name of a new one.
	Table string
	// Rest is how long to wait at most until the server has done what loading the rows left to do, zero not at all.
	Rest time.Duration
	JSON bool
	// arriveWait bounds how long -secondary may take to show the last write. Zero
	// means two minutes.
	arriveWait time.Duration
	// durationGiven means that a Duration of zero is not the default.
	durationGiven bool
}

// How long a run takes by default: with a number of bytes it is a limit.
const (
	durationDefault = 30 * time.Second
	bytesDuration   = 10 * time.Minute
)

// withDefaults fills in the endpoint, the duration and the bytes that fit the workload.
func (o Options) withDefaults() Options {
	if !o.durationGiven {
		switch {
		case o.Workload == workloadScrub:
			o.Duration = scrubDuration
		case o.Workload == workloadCopy:
			o.Duration = copyDuration
		case o.Bytes > 0:
			o.Duration = bytesDuration
		default:
			o.Duration = durationDefault
		}
	}
	if o.Bytes == 0 {
		o.Bytes = map[string]byteSize{workloadRecover: recoverBytes, workloadScrub: scrubBytes, workloadCopy: copyBytes}[o.Workload]
	}
	if o.Size == 0 {
		o.Size = sizes()[o.Workload]
	}
	if o.Endpoint == "" {
		port := 10002 - portsBelowTables(o.Workload)
		o.Endpoint = fmt.Sprintf("http://127.0.0.1:%d/%s", port, o.Account)
	}
	o.Endpoint = strings.TrimRight(o.Endpoint, "/")
	if o.arriveWait == 0 {
		o.arriveWait = 2 * time.Minute
	}
	return o
}

// sizes has the size of blobs by default, of each workload that takes another one.
func sizes() map[string]byteSize {
	return map[string]byteSize{
		workloadBlobCopy: copySourceBytes, workloadPutBlocks: blocksBytes, workloadGetBlocks: blocksBytes,
	}
}

// portsBelowTables is how far the port of the workload's service is below that of tables.
func portsBelowTables(workload string) int {
	switch k := workloads()[workload]; {
	case k.blob:
		return 2
	case k.steps != nil:
		return 1
	}
	return 0
}

// Validate reports every bad field.
func (o Options) Validate() error {
	var errs []error
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	_, known := workloads()[o.Workload]
	bad(!known && wholeRuns()[o.Workload] == nil, "--workload %q is unknown: give one of %s", o.Workload, workloadNames())
	u, err := url.Parse(o.Endpoint)
	bad(err != nil || u.Scheme != "http" || u.Host == "" || len(u.Path) < 2,
		"--endpoint %q is no path-style http endpoint: give one such as http://127.0.0.1:10002/devstoreaccount1", o.Endpoint)
	_, err = base64.StdEncoding.DecodeString(o.Key)
	bad(err != nil || o.Key == "", "--key is not Base64")
	bad(o.Concurrency < 1 || o.Concurrency > concurrencyMax, "--concurrency %d: give 1 to %d", o.Concurrency, concurrencyMax)
	bad(o.Duration <= 0, "--duration %v: give a positive one", o.Duration)
	bad(o.Warmup < 0, "--warmup %v: give zero or more", o.Warmup)
	bad(o.Partitions < 1, "--partitions %d: give 1 or more", o.Partitions)
	bad(o.Depth < 0, "--depth %d: give zero or more", o.Depth)
	bad(o.Depth > 0 && (o.Workload == workloadBatch || workloads()[o.Workload].blob), "--depth is of queues and of tables but for batch")
	bad(o.Table != "" && portsBelowTables(o.Workload) != 0, "--table is of the workloads of tables")
	bad(o.Rest < 0, "--rest %v: give zero or more", o.Rest)
	bad(o.Rows < 1, "--rows %d: give 1 or more", o.Rows)
	bad(o.ReadBack < 0, "--read-back %d: give zero or more", o.ReadBack)
	bad(o.Workload == workloadRecover && o.Bytes < 2*blobBytes, "--bytes %v: give 8MiB or more", o.Bytes)
	bad((o.Workload == workloadScrub || o.Workload == workloadCopy) && o.Server == "", "--server is needed: %s starts it", o.Workload)
	bad(o.Workload == workloadDelete && o.Rows < batchDeletes*o.Concurrency,
		"--rows %d: give %d or more for each connection", o.Rows, batchDeletes)
	bad(o.Bytes > 0 && (o.Workload == workloadRenew || o.Workload == workloadBlobCopy),
		"--bytes: %s moves none", o.Workload)
	bad(o.Size > 0 && sizes()[o.Workload] == 0, "--size is of blob-copy, blob-put-blocks and blob-get-blocks")
	bad(o.Size > blocksMax*blobBytes, "--size %v: give %v or less", o.Size, byteSize(blocksMax*blobBytes))
	bad(o.Pairs < 1, "--pairs %d: give 1 or more", o.Pairs)
	bad(o.ScrubPeriod <= 0, "--scrub-period %v: give a positive one", o.ScrubPeriod)
	bad(o.StopLocation != "" && o.Server == "", "--stop-location stops one of the server that --server starts")
	return errors.Join(errs...)
}
