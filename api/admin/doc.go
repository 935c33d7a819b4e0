// Package admin serves the admin ports: metrics, health, and the calls of operators, which server/operator carries out.
// client/admin has its documents and its only client; docs/admin.md describes it.
//
// Invariant: a port scoped to a location shows and changes that location only, and
// every answer is either the requested document or one error: what happened, to what,
// and what to do. No web page of another site gets an answer (hosts), and keys and
// changes need the token of the port's file (TokenFile).
//
// Handler makes the http.Handler of one port from a Process and a registry; Limit
// gives its server the limits that a port needs. Status and metrics are shown, without
// encryption, to everyone who reaches a port: it belongs on a loopback or a management
// network.
package admin
