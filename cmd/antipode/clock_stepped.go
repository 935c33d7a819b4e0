//go:build steppedclock

package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"antipode/internal/clock"
	"antipode/server/config"
)

// offsetFile is beside the data folder of a node. A test writes into it by how much the wall clock of the node is wrong.
const (
	offsetFile = "clock-offset"
	offsetPoll = 10 * time.Millisecond
)

// nodeClock is the clock of a node in builds for package test/clocks alone, which sets it wrong while the process runs.
func nodeClock(c config.Node) clock.Clock {
	var out clock.Shifted
	file := filepath.Join(filepath.Dir(c.Data), offsetFile)
	go func() { // Until the process ends.
		for range time.Tick(offsetPoll) {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // Nothing was written yet.
			}
			off, err := time.ParseDuration(strings.TrimSpace(string(text)))
			if err != nil {
				panic("clock-offset: " + err.Error())
			}
			out.Shift(off)
		}
	}()
	return &out
}
