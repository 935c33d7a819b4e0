// Package transporttest is the conformance suite of node.Transport, in memory or over a
// network.
package transporttest
