package blobs

import (
	"fmt"

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

// headOf reads a blob without its payload, of one that does not exist the zero value.
func headOf(get kv.Getter, n Name) (Blob, error) {
	v, ok, err := get.Get(n.key())
	if err != nil || !ok {
		return Blob{}, err
	}
	b, _, err := parseHead(v)
	if err != nil {
		return Blob{}, fmt.Errorf("blob %q in container %q of %s: %w", n.Blob, n.Container, n.Account, err)
	}
	return b, nil
}
