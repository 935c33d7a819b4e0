package blobs

import (
	"fmt"

	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
)

// GetBlob reads a blob; BlobNotFound if it does not exist.
func GetBlob(get kv.Getter, n Name) (Blob, error) {
	b, exists, err := lookup(get, n)
	if err == nil && !exists {
		err = storageerr.BlobNotFound
	}
	return b, err
}

func lookup(get kv.Getter, n Name) (b Blob, exists bool, err error) {
	v, ok, err := get.Get(n.key())
	if err != nil || !ok {
		return Blob{}, false, err
	}
	if b, err = parseRow(v); err != nil {
		return Blob{}, false, fmt.Errorf("blob %q in container %q of %s: %w", n.Blob, n.Container, n.Account, err)
	}
	return b, true, nil
}

// leaseOf reads the lease of a blob, of one that does not exist none.
func leaseOf(get kv.Getter, n Name) (lease.Lease, error) {
	v, ok, err := get.Get(n.key())
	if err != nil || !ok {
		return lease.Lease{}, err
	}
	b, _, err := parseHead(v)
	if err != nil {
		return lease.Lease{}, fmt.Errorf("blob %q in container %q of %s: %w", n.Blob, n.Container, n.Account, err)
	}
	return b.Lease, nil
}
