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
)

// Options configures a Store. The zero value is valid.
type Options struct {
	// ExtentBytesMax is the size in bytes at which an extent is sealed. A chunk that
	// is larger gets an extent of its own. Zero means 256 MiB. Small extents free
	// space sooner and cost a file descriptor and two fsyncs each.
	ExtentBytesMax int64
	// SliceBytes is the payload covered by one CRC, in bytes, 512 to 65536. Zero
	// means 64 KiB. A read touches whole slices: small ones make short reads
	// cheaper and large ones dearer. It applies to new chunks; old ones keep theirs.
	SliceBytes int
	// Rand draws the incarnation of each extent file, 8 bytes. Nil means
	// crypto/rand. A source that repeats itself lets leftovers of a removed file
	// pass for records of a new one.
	Rand io.Reader
	// Registerer receives antipode_extent_bytes, _chunks and _sync_seconds; Close
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
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	return o
}
