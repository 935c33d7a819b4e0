package sim

import (
	"fmt"
	"strconv"
	"strings"

	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// numbered adds its number to a write: lastRow of the partition names the write that changed it
// last, and the one before. So every record names its write, and every state of a partition names
// its last write.
type numbered struct {
	services.Write
	id int
	// refusal is the error of the last evaluation, nil for none; saw is the write whose state
	// of the partition it was evaluated on, -1 for none.
	refusal error
	saw     int
	// at is the commit time that the last evaluation was given, and now what the leader's clock showed.
	at, now geo.Timestamp
}

// lastRow stands between the rows of production code, which finds no payload in it: behind
// the row of a blob, before every row of a table.
const lastRow = "\x02last"

// lastRowOf is where lastRow stands in the partitions of a service. In those of a queue it is behind the messages.
func lastRowOf(s geo.Service) string {
	if s == geo.Queue {
		return "\x7flast"
	}
	return lastRow
}

// Evaluate implements services.Write.
func (w *numbered) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	prev, err := lastWrite(get, w.Partition())
	if err != nil {
		return services.Effect{}, err
	}
	effect, err := w.Write.Evaluate(get, at)
	w.refusal, w.saw, w.at = err, prev, at
	if err != nil {
		return services.Effect{}, err
	}
	effect.Ops = append(effect.Ops, change.Op{Row: []byte(lastRowOf(w.Partition().Service)), Value: []byte(fmt.Sprintf("%d %d", w.id, prev))})
	return effect, nil
}

// InEpoch implements services.Founder, for writes that are one.
func (w *numbered) InEpoch(e geo.EpochNumber) {
	if f, begins := w.Write.(services.Founder); begins {
		f.InEpoch(e)
	}
}

// InTime implements services.Timed, for writes that are one.
func (w *numbered) InTime(now geo.Timestamp) {
	w.now = now
	if t, timed := w.Write.(services.Timed); timed {
		t.InTime(now)
	}
}

// lastWrite is the write that changed a partition last, -1 for none.
func lastWrite(get kv.Getter, p keys.Partition) (int, error) {
	v, ok, err := get.Get(append(p.Append(nil), lastRowOf(p.Service)...))
	if err != nil || !ok {
		return -1, err
	}
	id, _, err := parseLast(string(v))
	return id, err
}

// parseLast reads the value of lastRow: a write and the one before it.
func parseLast(v string) (id, prev int, err error) {
	_, err = fmt.Sscanf(v, "%d %d", &id, &prev)
	return id, prev, err
}

// write changes one row: sets it, deletes it, or sets it unless it is there.
type write struct {
	id        int
	partition keys.Partition
	row       string
	kind      int
	pad       string
}

const (
	setRow = iota
	deleteRow
	insertRow
	writeKinds
)

// Partition implements services.Write.
func (w *write) Partition() keys.Partition { return w.partition }

// Gone implements services.Write.
func (w *write) Gone() error { return storageerr.TableNotFound }

// Evaluate implements services.Write.
func (w *write) Evaluate(get kv.Getter, _ geo.Timestamp) (services.Effect, error) {
	_, exists, err := get.Get(append(w.partition.Append(nil), w.row...))
	switch {
	case err != nil:
		return services.Effect{}, err
	case w.kind == insertRow && exists:
		return services.Effect{}, storageerr.EntityAlreadyExists
	case w.kind == deleteRow:
		return services.Effect{Ops: []change.Op{{Row: []byte(w.row), Delete: true}}}, nil
	}
	return services.Effect{Ops: []change.Op{{Row: []byte(w.row), Value: []byte(strconv.Itoa(w.id) + " " + w.pad)}}}, nil
}

// partitionsOf is how many partitions of one table take single writes; singlePrefix
// begins their keys.
const (
	partitionsOf = 5
	singlePrefix = "p"
)

func (s *Sim) drawWrite(a *account) *write {
	return &write{
		id: len(s.ops), partition: s.drawContainer(a, geo.Table).partition(singlePrefix + strconv.Itoa(s.rng.IntN(partitionsOf))),
		row: "row" + strconv.Itoa(s.rng.IntN(3)), kind: s.rng.IntN(writeKinds), pad: strings.Repeat("x", s.rng.IntN(100)),
	}
}
