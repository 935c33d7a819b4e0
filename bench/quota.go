package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
)

// byteSize is a number of bytes that flags give and results print with a unit.
type byteSize int64

// units are those of a byteSize, greatest first.
func units() [3]struct {
	name  string
	bytes byteSize
} {
	return [...]struct {
		name  string
		bytes byteSize
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
}

// String implements flag.Value: the number in the greatest unit that it reaches.
func (b byteSize) String() string {
	for _, u := range units() {
		if b >= u.bytes {
			return strconv.FormatFloat(float64(b)/float64(u.bytes), 'g', 4, 64) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// Set implements flag.Value.
func (b *byteSize) Set(text string) error {
	unit := byteSize(1)
	number := text
	for _, u := range units() {
		if rest, found := strings.CutSuffix(text, u.name); found {
			number, unit = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n < 0 || n*float64(unit) > 1<<50 {
		return fmt.Errorf("%q is no number of bytes: give one such as 512MiB", text)
	}
	*b = byteSize(n * float64(unit))
	return nil
}

// quota is how much the workers of a run have to move together. Nil is without end. Its
// methods may be called concurrently.
type quota struct{ left atomic.Int64 }

func newQuota(n byteSize) *quota {
	if n == 0 {
		return nil
	}
	q := &quota{}
	q.left.Store(int64(n))
	return q
}

func (q *quota) add(bytes int) {
	if q != nil {
		q.left.Add(-int64(bytes))
	}
}

func (q *quota) met() bool { return q != nil && q.left.Load() <= 0 }
