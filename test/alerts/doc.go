// Package alerts tests what operators read in Prometheus: the files of deploy/prometheus by themselves, and with a real
// Prometheus that scrapes a running `antipode dev`.
//
// Invariant: the rules that a live test loads are made from the files that are shipped, with shorter times alone.
// Without the programs prometheus and promtool the tests that need them are skipped.
package alerts
