package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// CopySample is how far the bootstrap of an account's copy is, as its primary knows it. Bytes include payload. What is
// not known is nil.
type CopySample struct {
	Location geo.Location
	Account  geo.Account
	// Rows and Bytes are copied, of TotalRows and TotalBytes.
	Rows, Bytes           uint64
	TotalRows, TotalBytes *uint64
	// Waiting is what the secondary has not acknowledged of the account, in bytes.
	Waiting                     uint64
	BytesPerSecond, SecondsLeft *float64
}

// copyDescs are the metrics of bootstraps.
type copyDescs struct {
	rows, bytes, allRows, allBytes, speed, secondsLeft, waiting *prometheus.Desc
}

func newCopyDescs() copyDescs {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{labelLocation, labelAccount}, nil)
	}
	return copyDescs{
		rows:        desc(nameCopyRows, "Rows that the bootstrap of the account has copied; absent without one."),
		bytes:       desc(nameCopyBytes, "Bytes that the bootstrap of the account has copied, payload included; absent without one."),
		allRows:     desc(nameCopyAllRows, "Rows that were counted before the bootstrap; absent until they are."),
		allBytes:    desc(nameCopyAllBytes, "Bytes that were counted before the bootstrap, payload included; absent until they are."),
		speed:       desc(nameCopySpeed, "Bytes that the bootstrap copied per second, payload included, over the last 30 s; absent when unknown."),
		secondsLeft: desc(nameCopyLeft, "Estimate of what time the bootstrap needs for the rest at this speed; absent when unknown."),
		waiting:     desc(nameCopyWaiting, "Bytes of changes and payload of an account in bootstrap that the other location has not acknowledged."),
	}
}

func (d copyDescs) all() []*prometheus.Desc {
	return []*prometheus.Desc{d.rows, d.bytes, d.allRows, d.allBytes, d.speed, d.secondsLeft, d.waiting}
}

// collect puts the metrics of a bootstrap.
func (d copyDescs) collect(s CopySample, put func(*prometheus.Desc, float64, ...string)) {
	one := func(d *prometheus.Desc, v float64) { put(d, v, string(s.Location), string(s.Account)) }
	one(d.rows, float64(s.Rows))
	one(d.bytes, float64(s.Bytes))
	one(d.waiting, float64(s.Waiting))
	if s.TotalRows != nil && s.TotalBytes != nil {
		one(d.allRows, float64(*s.TotalRows))
		one(d.allBytes, float64(*s.TotalBytes))
	}
	if s.BytesPerSecond != nil {
		one(d.speed, *s.BytesPerSecond)
	}
	if s.SecondsLeft != nil {
		one(d.secondsLeft, *s.SecondsLeft)
	}
}

// foldCopies merges bootstraps of one name: amounts and speeds are added, and the longest time is left. A value
// that is unknown for one of them is unknown for all.
func foldCopies(in []CopySample) []CopySample {
	type key struct {
		l geo.Location
		a geo.Account
	}
	var out []CopySample
	at := map[key]int{}
	for _, s := range in {
		k := key{s.Location, s.Account}
		i, again := at[k]
		if !again {
			at[k] = len(out)
			out = append(out, s)
			continue
		}
		o := &out[i]
		o.Rows, o.Bytes, o.Waiting = o.Rows+s.Rows, o.Bytes+s.Bytes, o.Waiting+s.Waiting
		add := func(a, b uint64) uint64 { return a + b }
		o.TotalRows, o.TotalBytes = both(o.TotalRows, s.TotalRows, add), both(o.TotalBytes, s.TotalBytes, add)
		o.BytesPerSecond = both(o.BytesPerSecond, s.BytesPerSecond, func(a, b float64) float64 { return a + b })
		o.SecondsLeft = both(o.SecondsLeft, s.SecondsLeft, func(a, b float64) float64 { return max(a, b) })
	}
	return out
}

// both returns f of two values, nil if one is not known.
func both[T any](a, b *T, f func(a, b T) T) *T {
	if a == nil || b == nil {
		return nil
	}
	v := f(*a, *b)
	return &v
}
