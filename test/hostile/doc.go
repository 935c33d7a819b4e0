// Package hostile plays clients that mean harm against a running server, and an honest
// client beside them: [Crowd] runs the hostile ones, [Honest] measures what the honest
// one sees.
//
// The hostile clients have a separate account and its key; some of them know only the
// name of the honest client's account. Each of them runs until it is stopped and connects
// again as soon as the server cuts it off.
//
// Invariant: a hostile client never waits for an honest one, and no load leaves this
// machine.
package hostile
