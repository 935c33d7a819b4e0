package main

import (
	"context"
	"fmt"
	"net/http"
)

// workloadRenew measures Renew Lease: each connection holds a lease of a blob of 1 KiB.
const workloadRenew = "lease-renew"

// leaseSeconds is longer than it takes to read back what a run did.
const leaseSeconds = 60

// leases are objects that are each a blob under a lease, one for each connection.
type leases struct{ blobs }

func newLeases(_ Options, b blobs) operation { return &leases{b} }

func (l *leases) ready(ctx context.Context, w *worker) error {
	o := object{w.id, 0}
	for _, c := range []*call{l.blobs.write(o), l.acquire(o)} {
		c.status = http.StatusCreated
		if _, _, err := w.exactly(ctx, c); err != nil {
			return err
		}
	}
	w.next = 1
	return nil
}

func (l *leases) perform(ctx context.Context, w *worker) (took span, moved int, err error) {
	_, took, err = w.exactly(ctx, l.write(object{w.id, 0}))
	return took, 0, err
}

// id is the lease of an object's blob.
func (l *leases) id(o object) string { return fmt.Sprintf("0e0a0d8c-6fb5-4b0e-8a5e-%012d", o.worker) }

func (l *leases) acquire(o object) *call {
	const format = "x-ms-lease-action:acquire\nx-ms-lease-duration:%d\nx-ms-proposed-lease-id:%s\n"
	return l.lease(o, fmt.Sprintf(format, leaseSeconds, l.id(o)))
}

// write renews the lease.
func (l *leases) write(o object) *call {
	c := l.lease(o, "x-ms-lease-action:renew\nx-ms-lease-id:"+l.id(o)+"\n")
	c.status = http.StatusOK
	return c
}

func (l *leases) lease(o object, signed string) *call {
	return &call{
		method: http.MethodPut, path: l.path(o), query: "comp=lease", canonical: "\ncomp:lease",
		signedLast: signed, blob: true,
	}
}

// read reads the blob under its lease: where the blob has none, or another one, the server refuses that.
func (l *leases) read(o object) *call {
	c := l.blobs.read(o)
	c.signedLast, c.status = "x-ms-lease-id:"+l.id(o)+"\n", http.StatusOK
	return c
}
