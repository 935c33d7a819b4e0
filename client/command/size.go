package command

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

const units = "KMGTPE"

// Size is a number of bytes.
type Size uint64

// String prints it with a unit, such as "64.0 MiB".
func (s Size) String() string {
	const unit = 1024
	if s < unit {
		return fmt.Sprintf("%d B", uint64(s))
	}
	v, i := float64(s)/unit, 0
	for ; v >= unit && i < len(units)-1; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.1f %ciB", v, units[i])
}

// ParseSize is the inverse of String, and takes bytes without a unit, too: 1000, 64MiB, "1.5 GiB".
func ParseSize(text string) (Size, error) {
	wrong := fmt.Errorf("%q is no size: give bytes, or a number with KiB, MiB, GiB or TiB", text)
	number, unit := strings.TrimSuffix(text, "B"), uint64(1)
	for i := range units {
		if n, is := strings.CutSuffix(text, units[i:i+1]+"iB"); is {
			number, unit = n, 1<<(10*(i+1))
		}
	}
	number = strings.TrimSpace(number)
	if n, err := strconv.ParseUint(number, 10, 64); err == nil {
		if over, product := bits.Mul64(n, unit); over == 0 {
			return Size(product), nil
		}
		return 0, wrong
	}
	v, err := strconv.ParseFloat(number, 64)
	if v *= float64(unit); err != nil || unit == 1 || !(v >= 0 && v < math.MaxUint64) {
		return 0, wrong
	}
	return Size(v), nil
}

// Flag is a flag that takes a Size: a Value of package pflag. Without one it is 0, and has no default in its help.
type Flag struct{ Bytes *uint64 }

// String implements the Value interface.
func (f Flag) String() string {
	if f.Bytes == nil || *f.Bytes == 0 {
		return ""
	}
	return Size(*f.Bytes).String()
}

// Type implements the Value interface.
func (Flag) Type() string { return "size" }

// Set implements the Value interface.
func (f Flag) Set(text string) error {
	s, err := ParseSize(text)
	if err == nil {
		*f.Bytes = uint64(s)
	}
	return err
}
