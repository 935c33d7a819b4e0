// Package tables is the front end of the table service: it turns requests into the
// commands and queries of services/tables and their results into OData documents.
//
// Invariant: a request that is refused has changed nothing, and a success is
// written only after the command is on every in-sync replica.
package tables
