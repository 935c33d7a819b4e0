package receive

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/bus"
)

// Alarm reasons of the receiving side.
const (
	AlarmGap         = "gap"               // records are missing in the stream and are pulled
	AlarmFork        = "fork"              // this location holds another record under a number
	AlarmLost        = "lost_acknowledged" // this location lost records that it had acknowledged
	AlarmPoison      = "poison"            // a record cannot be decoded or evaluated; its stream is stopped
	AlarmVersion     = "version"           // a record of a later version; its stream is stopped
	AlarmBudget      = "behind_outbox"     // the source deleted what was not acknowledged; the copy has to be rebuilt
	AlarmChecksum    = "bad_crc"           // a frame or record does not fit its CRC32C, or cannot be decoded
	AlarmEpoch       = "epoch"             // a record of a lower epoch or another origin was refused
	AlarmIncarnation = "incarnation"       // the stream was deleted and made again
	AlarmStands      = "range_stands"      // one range commits nothing while others do; it is pulled later
	AlarmSilence     = "silence"           // no contact with a range for longer than it may be silent
	AlarmUnavailable = "unavailable"       // the bus did not answer for as long
	AlarmClock       = "clock"             // times of the source are ahead of the clock here and wait
)

// Options configures a Receiver.
type Options struct {
	// Origin is the location the stream comes from.
	Origin   geo.Location
	Ranges   []geo.RangeID
	Consumer bus.Consumer
	Source   Source
	Applier  Applier
	Clock    clock.Clock
	// BatchBytesMax bounds what is committed in one group. Zero means 1 MiB.
	BatchBytesMax int
	// PendingBytesMax bounds what waits for a commit, per range: see window. Zero means 4 MiB.
	PendingBytesMax int
	// WindowBytesMax bounds what waits in all ranges together: none has more than an equal share of
	// it. Zero means 16 MiB. A share below some frames commits in small groups.
	WindowBytesMax int
	// PullBytesMax bounds what pulls ask for and hold until it is committed, of all ranges together: none
	// has more than an equal share of it. Zero means 8 MiB. Below 256 KiB for each range it costs calls.
	PullBytesMax int
	// ChunkBytesMax bounds the payload that pulls fetch and that is not on the replicas here yet. Zero
	// means 8 MiB. Below four chunks a pull waits for one after the other.
	ChunkBytesMax int
	// UnackedMax is how many messages may wait behind one whose range stands. Zero means 512. It
	// has to be below the AckPendingMax of the bus, which otherwise delivers nothing more.
	UnackedMax int
	// StandAfter is how long a range may commit nothing of what waits before it counts as
	// standing: several commits of a busy node, since what it holds then crosses the link again. Zero means 2 s.
	StandAfter time.Duration
	// BehindGrace is how long a stream may stand below a closed head, while this process
	// runs, before its records are pulled. Zero means 500 ms.
	BehindGrace time.Duration
	// RetryAfter is the pause after a failed pull, push or commit. Zero means 200 ms.
	RetryAfter time.Duration
	// AckEvery is how often cursors that moved are sent to the source. Zero means 20 ms.
	AckEvery time.Duration
	// ReconcileEvery is how often the cursors of every stream are read and sent. Zero means 5 min.
	// A short time costs traffic that grows with the number of streams.
	ReconcileEvery time.Duration
	// Incarnation is the value that OnIncarnation got last, perhaps before a restart. Zero means
	// that none is known.
	Incarnation time.Time
	// OnIncarnation gets the incarnation of the stream when it differs from the known one. May be
	// nil.
	OnIncarnation func(time.Time)
	// SilenceAfter is how long a range may send nothing, or the bus may not answer, while this
	// process runs. Zero turns these alarms off.
	SilenceAfter time.Duration
	Logger       *slog.Logger
	Alarm        func(reason string)
	Wake         func()
}

func (o Options) withDefaults() Options {
	setDefault(&o.BatchBytesMax, 1<<20)
	setDefault(&o.PendingBytesMax, 4<<20)
	setDefault(&o.WindowBytesMax, 16<<20)
	setDefault(&o.PullBytesMax, 8<<20)
	setDefault(&o.ChunkBytesMax, 8<<20)
	setDefault(&o.UnackedMax, 512)
	setDefault(&o.StandAfter, 2*time.Second)
	setDefault(&o.BehindGrace, 500*time.Millisecond)
	setDefault(&o.RetryAfter, 200*time.Millisecond)
	setDefault(&o.AckEvery, 20*time.Millisecond)
	setDefault(&o.ReconcileEvery, 5*time.Minute)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Alarm == nil {
		o.Alarm = func(string) {}
	}
	if o.OnIncarnation == nil {
		o.OnIncarnation = func(time.Time) {}
	}
	return o
}

// Validate reports every field that cannot be used.
func (o Options) Validate() error {
	return errors.Join(
		atLeastZero("bytes", []option[int]{
			{"BatchBytesMax", o.BatchBytesMax},
			{"PendingBytesMax", o.PendingBytesMax},
			{"WindowBytesMax", o.WindowBytesMax},
			{"PullBytesMax", o.PullBytesMax},
			{"ChunkBytesMax", o.ChunkBytesMax},
		}),
		atLeastZero("a number", []option[int]{{"UnackedMax", o.UnackedMax}}),
		atLeastZero("a time", []option[time.Duration]{
			{"StandAfter", o.StandAfter},
			{"BehindGrace", o.BehindGrace},
			{"RetryAfter", o.RetryAfter},
			{"AckEvery", o.AckEvery},
			{"ReconcileEvery", o.ReconcileEvery},
			{"SilenceAfter", o.SilenceAfter},
		}),
	)
}

type option[T any] struct {
	name  string
	value T
}

func atLeastZero[T int | time.Duration](what string, fields []option[T]) error {
	var errs []error
	for _, f := range fields {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("receive: %s is %v: want %s above zero, or zero for the default", f.name, f.value, what))
		}
	}
	return errors.Join(errs...)
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}
