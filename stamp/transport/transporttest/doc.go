// Package transporttest is the conformance suite of node.Transport: what every way
// between the nodes of a stamp must do, in memory or over a network.
package transporttest
