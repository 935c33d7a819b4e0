// Package slowlink runs two locations of real processes over a line between them that is too narrow,
// cut in whole or in half, or shared with large payload, and over one range at the secondary that has
// no quorum. It checks what the link promises meanwhile: writers do not notice, memory stays flat, Last
// Sync Time is true and goes on, and all of it arrives.
//
// `make slowlink` runs it for as long as the promises say; `make test` for seconds.
package slowlink
