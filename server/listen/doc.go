// Package listen runs the HTTP listeners of a process: the front end of a location or a node,
// the gateway, admin ports. They start together and drain together.
package listen
