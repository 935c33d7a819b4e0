// Package bootstrap copies an account to a new secondary (R17), at either end: counts, images and
// their pace at the primary; at the secondary, what only the former copy has is kept before it is
// deleted.
//
// Invariant (R17): an account is complete only once the other location has applied the images of
// all ranges; no row that only a copy has is deleted before it is in the lost-and-found.
package bootstrap
