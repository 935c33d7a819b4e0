// Package link is what joins two locations beside the stream, inside one process:
// direct calls for pulls, acknowledgements and payload, and the switch that cuts or
// delays all of it, the stream's publishes and forwarded HTTP included.
//
// Invariant (DESIGN 2, "two locations in fact"): nothing else joins them. A cut link
// lets nothing through in either direction.
package link
