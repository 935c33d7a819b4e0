package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// backlogSlack is how many seconds of writes the backlog may differ by between
// two quarters without counting as growth.
const backlogSlack = 0.5

// result is one run in figures, in the units of their names.
type result struct {
	Workload     string         `json:"workload"`
	Concurrency  int            `json:"concurrency"`
	Partitions   int            `json:"partitions"`
	Size         int64          `json:"size,omitempty"`
	Seconds      float64        `json:"seconds"`
	Ops          int            `json:"ops"`
	OpsPerSecond float64        `json:"ops_per_second"`
	MBPerSecond  float64        `json:"mb_per_second"`
	P50Ms        float64        `json:"p50_ms"`
	P99Ms        float64        `json:"p99_ms"`
	MaxMs        float64        `json:"max_ms"`
	Errors       map[string]int `json:"errors"`
	ClientCPUus  float64        `json:"client_cpu_us_per_op"`
	ServerCPUus  *float64       `json:"server_cpu_us_per_op,omitempty"`
	ServerCores  *float64       `json:"server_cores,omitempty"`
	// ServerPeakBytes is the most it had resident since it began.
	ServerPeakBytes int64     `json:"server_peak_bytes,omitempty"`
	LagP50Seconds   *float64  `json:"geo_lag_p50_seconds,omitempty"`
	LagMaxSeconds   *float64  `json:"geo_lag_max_seconds,omitempty"`
	LagUnknown      int       `json:"geo_lag_unknown_samples"`
	BacklogMax      *int64    `json:"backlog_max_records,omitempty"`
	BacklogThird    int64     `json:"backlog_third_quarter"`
	BacklogLast     int64     `json:"backlog_last_quarter"`
	ReadBack        readCount `json:"read_back"`
	// Queue is of the workloads of queues, which have no ReadBack.
	Queue *queueResult `json:"queue,omitempty"`
	// ItemsPerSecond counts the Items, entities, blobs or deletes, of operations on many.
	ItemsPerSecond float64 `json:"items_per_second,omitempty"`
	Items          string  `json:"items,omitempty"`
	// Void lists why the figures must not be used.
	Void []string `json:"void,omitempty"`
}

func newResult(o Options, r *recorder, u usage, lag lagSamples) result {
	seconds := o.Duration.Seconds()
	out := result{
		Workload: o.Workload, Concurrency: o.Concurrency, Partitions: o.Partitions, Size: int64(o.Size), Seconds: seconds,
		Ops: r.ops, OpsPerSecond: float64(r.ops) / seconds, MBPerSecond: float64(r.bytes) / 1e6 / seconds,
		P50Ms: ms(r.percentile(0.5)), P99Ms: ms(r.percentile(0.99)), MaxMs: ms(r.max), Errors: r.errors,
		ClientCPUus: perOp(u.client, r.ops), LagUnknown: lag.unknown,
	}
	if u.server >= 0 {
		cpu, cores := perOp(u.server, r.ops), u.server.Seconds()/seconds
		out.ServerCPUus, out.ServerCores = &cpu, &cores
	}
	if len(lag.lag) > 0 {
		slices.Sort(lag.lag)
		p50, most := lag.lag[len(lag.lag)/2].Seconds(), lag.lag[len(lag.lag)-1].Seconds()
		out.LagP50Seconds, out.LagMaxSeconds = &p50, &most
	}
	if len(lag.backlog) > 0 {
		most := slices.Max(lag.backlog)
		out.BacklogMax = &most
	}
	if k := workloads()[o.Workload]; k.items > 0 {
		out.ItemsPerSecond, out.Items = out.OpsPerSecond*float64(k.items), "entities"
		switch {
		case k.counted != "":
			out.Items = k.counted
		case k.blob:
			out.Items = "blobs"
		}
	}
	var grew bool
	out.BacklogThird, out.BacklogLast, grew = lag.grows(int64(backlogSlack * out.OpsPerSecond))
	if grew {
		out.Void = append(out.Void, fmt.Sprintf("backlog grew from %d to %d records in the second half", out.BacklogThird, out.BacklogLast))
	}
	if r.ops == 0 {
		out.Void = append(out.Void, "no operation succeeded")
	}
	if r.bytes < int64(o.Bytes) {
		out.Void = append(out.Void, fmt.Sprintf("%v of %v were moved before --duration ended", byteSize(r.bytes), o.Bytes))
	}
	if n := r.errors[wrongValue]; n > 0 {
		out.Void = append(out.Void, fmt.Sprintf("%d reads answered with a wrong value", n))
	}
	return out
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func perOp(d time.Duration, ops int) float64 {
	if ops == 0 {
		return 0
	}
	return float64(d.Microseconds()) / float64(ops)
}

// print writes the result for people, or as one line of JSON.
func (r result) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(r)
	}
	var b strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) }
	where := fmt.Sprintf("%d partitions", r.Partitions)
	switch {
	case r.Queue != nil:
		where = "one queue"
	case r.Size > 0:
		where = fmt.Sprintf("blobs of %v", byteSize(r.Size))
	}
	line("%s: %d connections, %s, %.0f s", r.Workload, r.Concurrency, where, r.Seconds)
	digits := 0
	if r.OpsPerSecond < 10 {
		digits = 2
	}
	line("  rate      %.*f ops/s, %.1f MB/s (%d operations)", digits, r.OpsPerSecond, r.MBPerSecond, r.Ops)
	if r.ServerPeakBytes > 0 {
		line("  memory    server %.0f MiB resident at most", float64(r.ServerPeakBytes)/(1<<20))
	}
	if r.Items != "" {
		line("  items     %.0f %s/s", r.ItemsPerSecond, r.Items)
	}
	line("  latency   p50 %.2f ms, p99 %.2f ms, max %.1f ms", r.P50Ms, r.P99Ms, r.MaxMs)
	line("  errors    %s", errorText(r.Errors))
	if r.ServerCPUus != nil {
		line("  CPU       server %.0f us/op (%.2f cores), client %.0f us/op", *r.ServerCPUus, *r.ServerCores, r.ClientCPUus)
	} else {
		line("  CPU       server unknown, client %.0f us/op", r.ClientCPUus)
	}
	if r.LagP50Seconds != nil {
		line("  geo lag   p50 %.2f s, max %.2f s, unknown in %d samples", *r.LagP50Seconds, *r.LagMaxSeconds, r.LagUnknown)
	} else {
		line("  geo lag   unknown in %d samples", r.LagUnknown)
	}
	if r.BacklogMax != nil {
		line("  backlog   max %d records, third quarter %d, last quarter %d", *r.BacklogMax, r.BacklogThird, r.BacklogLast)
	}
	if r.Queue != nil {
		r.Queue.print(line, workloads()[r.Workload].steps)
	} else {
		line("  read back %d at the primary, %d at -secondary, of %d written", r.ReadBack.Primary, r.ReadBack.Secondary, r.ReadBack.Written)
	}
	for _, why := range r.Void {
		line("  VOID: %s", why)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func errorText(errors map[string]int) string {
	var parts []string
	for what, n := range errors {
		parts = append(parts, fmt.Sprintf("%d x %s", n, what))
	}
	if len(parts) == 0 {
		return "none"
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
