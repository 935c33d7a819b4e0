// Package starved starts antipode dev on a machine that has no time for it: every processor
// has two neighbours that never rest, the disk has others that sync without end, and the
// server itself runs on one processor at a lower priority. A start must come up whatever
// that costs, on a new folder and on one that a killed server left.
//
//	make starved ROUNDS=10
package starved
