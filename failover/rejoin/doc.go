// Package rejoin makes the former primary of an account its secondary, after a failover and after a
// recovery with loss: it adopts the record of the present primary, keeps what it alone has (lost
// changes), and is rewound by the present primary where it has diverged.
//
// Invariant (R22): nothing that a former primary acknowledged is replaced or deleted before it is
// kept in its lost-and-found, or the range claims that it cannot know all of it.
package rejoin
