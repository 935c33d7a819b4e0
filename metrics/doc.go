// Package metrics has the metrics that operators watch, under the names that
// Names lists and a golden file freezes. Rooms that measure something of their own
// take a prometheus.Registerer and never import this package.
//
// Invariant: what is not known is not reported. Gauges are read from a Source at
// the scrape, so none outlives its truth; a service without a last sync time, and a
// range without a leader, have no series.
//
// Every constructor takes a prometheus.Registerer; nil changes nothing else. The
// instruments may be used concurrently, and a nil one does nothing.
package metrics
