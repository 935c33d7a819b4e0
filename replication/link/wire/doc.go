// Package wire is what two locations say to each other in calls, generated from
// link.proto by `make proto`.
package wire
