package main

import (
	"math/bits"
	"time"
)

// Latencies are counted in buckets of 1/32 of a power of two, so a percentile is
// off by 3 % at most.
const (
	subBuckets  = 32
	bucketCount = 64 * subBuckets
)

// recorder counts what one worker saw; merge adds recorders up. It is not safe
// for concurrent use.
type recorder struct {
	buckets [bucketCount]uint32
	ops     int
	bytes   int64
	max     time.Duration
	// errors counts failed operations by "status code" or what went wrong.
	errors map[string]int
}

func newRecorder() *recorder { return &recorder{errors: map[string]int{}} }

// ok counts one operation that succeeded.
func (r *recorder) ok(d time.Duration, bytes int) {
	r.ops++
	r.bytes += int64(bytes)
	r.max = max(r.max, d)
	r.buckets[bucketOf(d)]++
}

func (r *recorder) fail(what string) { r.errors[what]++ }

func (r *recorder) merge(o *recorder) {
	for i, n := range o.buckets {
		r.buckets[i] += n
	}
	r.ops += o.ops
	r.bytes += o.bytes
	r.max = max(r.max, o.max)
	for what, n := range o.errors {
		r.errors[what] += n
	}
}

// percentile returns the latency that the share p of the operations did not pass.
func (r *recorder) percentile(p float64) time.Duration {
	want := int(p*float64(r.ops) + 0.5)
	for i, n := range r.buckets {
		if want -= int(n); want <= 0 && r.ops > 0 {
			return min(bucketEnd(i), r.max)
		}
	}
	return r.max
}

func bucketOf(d time.Duration) int {
	n := uint64(max(d, 0))
	if n < subBuckets {
		return int(n)
	}
	shift := bits.Len64(n) - bits.Len64(subBuckets-1) - 1
	return (shift+1)*subBuckets + int(n>>shift) - subBuckets
}

// bucketEnd is the greatest duration of a bucket.
func bucketEnd(i int) time.Duration {
	if i < subBuckets {
		return time.Duration(i)
	}
	shift := i/subBuckets - 1
	return time.Duration((uint64(i%subBuckets+subBuckets)+1)<<shift - 1)
}
