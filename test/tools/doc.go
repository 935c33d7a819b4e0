// Package tools drives programs that others wrote against the built server: rclone, restic, azcopy, OpenTofu, pgBackRest,
// the object store of Thanos, and clients that lock a blob as the azurerm backend of Terraform does.
//
// Invariant: a program that ends badly fails its test, unless the server answered it 501; such a request is named at
// the end. `make tools` installs the programs and runs the tests, which are skipped without -tools.
package tools
