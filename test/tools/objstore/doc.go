// Package objstore runs the acceptance test of Thanos' object stores by its provider of Azure. It is a module apart, so
// that the server requires nothing of Thanos. Invariant: what the test asks of every store holds of the server's blobs.
package objstore
