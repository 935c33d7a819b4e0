// Package dev assembles locations from their rooms: stamp, roles, shipping,
// receiving, statistics and front ends. It is what `antipode dev` runs, and what
// tests of whole locations use.
//
// Invariant: two locations share nothing but a link.Link.
package dev
