// Package metrics has the metrics that operators watch, under the names that Names lists
// and a golden file freezes. Lower packages with metrics take a prometheus.Registerer and
// never import this package.
//
// Invariant: an unknown value is not reported. Gauges are read from a Source at the
// scrape, so none is out of date; a service without a last sync time, and a range without
// a leader, have no series.
//
// Every constructor takes a prometheus.Registerer; nil changes nothing else. The
// instruments may be used concurrently, and a nil one does nothing.
package metrics
