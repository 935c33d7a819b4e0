// Package dev runs two whole locations and a gateway in one process: `antipode dev`, and tests
// of whole locations.
//
// Invariant: the two locations reach each other through one link.Link only. Besides it they
// share caches, the metrics registry and the queue of scans.
package dev
