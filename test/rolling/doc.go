// Package rolling restarts all nodes and gateways of a deployment, one after the other, under clients that write and read.
package rolling
