// Package nameserver runs the name server of accounts, package failover/dns, over the admin ports of the
// locations (`antipode dns`) or over locations in the same process (`antipode dev`).
package nameserver
