package extent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/internal/clock"
)

const (
	extentBytesDefault = 256 << 20
	sliceBytesMin      = 512
	sliceBytesMax      = 64 << 10
	pagedBytesDefault  = 256 << 10
	sparesDefault      = 2
	garbageDefault     = 50
)

// Base has chunks that a store does not hold itself: see Store.Durable and Store.Read. Another Store is one.
type Base interface {
	Durable(id ChunkID) bool
	Read(ref Ref, off int64, p []byte) (int, error)
}

// Options configures a Store. The zero value is valid.
type Options struct {
	// ExtentBytesMax is the size in bytes at which an extent is sealed. A chunk that
	// is larger gets an extent to itself. Zero means 256 MiB. Small extents free
	// space sooner and cost a file descriptor and two fsyncs each.
	ExtentBytesMax int64
	// SliceBytes is the payload covered by one CRC, in bytes, 512 to 65536. Zero
	// means 64 KiB. A read touches whole slices: small ones make short reads
	// cheaper and large ones dearer. It applies to new chunks; old ones keep theirs.
	SliceBytes int
	// PagedBytesMin is the length in bytes from which a chunk is laid out in whole pages
	// and, on a disk, written past the page cache. Zero means 256 KiB. Below that a page
	// for the header, and the device's answer to each write, cost more than the copy.
	PagedBytesMin int
	// SparesMax is how many files of dead chunks are kept to be used again, which
	// spares the new ones all writing of metadata. Zero means 2; below zero none is. Each
	// takes up to ExtentBytesMax on the disk.
	SparesMax int
	// GarbagePercent is the share of a sealed extent, in percent of its bytes, from
	// which on Compact copies what lives in it. Zero means 50. A lower one copies more
	// often: at 10, ten bytes for each freed.
	GarbagePercent int
	// Base has further chunks, which Read and Durable find where the store holds none of the id: those of before a
	// clone. Nothing else sees them. Nil means none.
	Base Base
	// Rand draws the random half of each extent's incarnation, 4 bytes, against
	// payloads that imitate records; one call at a time. Nil means crypto/rand.
	Rand io.Reader
	// Registerer receives antipode_extent_bytes, _chunks, _freed_bytes_total and _sync_seconds; Close
	// takes them back; OpenReadOnly leaves it alone. Nil means no metrics and changes
	// nothing else.
	Registerer prometheus.Registerer
	// Clock measures _sync_seconds and nothing else. Nil means the machine's clock.
	Clock clock.Clock
}

// Validate reports every bad field.
func (o Options) Validate() error {
	var errs []error
	if o.ExtentBytesMax < 0 {
		errs = append(errs, fmt.Errorf("ExtentBytesMax %d is negative", o.ExtentBytesMax))
	}
	if o.SliceBytes != 0 && (o.SliceBytes < sliceBytesMin || o.SliceBytes > sliceBytesMax) {
		errs = append(errs, fmt.Errorf("SliceBytes %d is outside %d to %d",
			o.SliceBytes, sliceBytesMin, sliceBytesMax))
	}
	if o.PagedBytesMin < 0 {
		errs = append(errs, fmt.Errorf("PagedBytesMin %d is negative", o.PagedBytesMin))
	}
	if o.GarbagePercent < 0 || o.GarbagePercent > 100 {
		errs = append(errs, fmt.Errorf("GarbagePercent %d is outside 0 to 100", o.GarbagePercent))
	}
	return errors.Join(errs...)
}

// withDefaults returns a copy in which every zero field has its meaning.
func (o Options) withDefaults() Options {
	if o.ExtentBytesMax == 0 {
		o.ExtentBytesMax = extentBytesDefault
	}
	if o.SliceBytes == 0 {
		o.SliceBytes = sliceBytesMax
	}
	if o.PagedBytesMin == 0 {
		o.PagedBytesMin = pagedBytesDefault
	}
	if o.SparesMax == 0 {
		o.SparesMax = sparesDefault
	}
	if o.GarbagePercent == 0 {
		o.GarbagePercent = garbageDefault
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	return o
}
