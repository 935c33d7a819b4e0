//go:build !steppedclock

package main

import (
	"antipode/internal/clock"
	"antipode/server/config"
)

// nodeClock is the clock of a node: the machine's.
func nodeClock(config.Node) clock.Clock { return clock.System{} }
