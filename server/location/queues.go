package location

import (
	"time"

	"antipode/services/queues"
	"antipode/stamp"
)

// Queueing configures how a location keeps its queues. The zero value is that of production.
type Queueing struct {
	// Scale is when a queue gets another subqueue or loses one.
	Scale queues.ScaleOptions
	// KeepEvery is the pause between two rounds over all queues. Zero means 10 s.
	KeepEvery time.Duration
	// OnScaled is called for each change of a queue's subqueues, OnCollected with how many messages were deleted since they
	// had expired, or since their queue was cleared. Either may be nil.
	OnScaled    func(queues.Act)
	OnCollected func(messages int, expired bool)
}

// queueing is the queue service of a location.
type queueing struct {
	l *Location
	// messages counts the commands that come through it, by which queues are scaled.
	messages *queues.Service
}

func newQueueing(l *Location) queueing {
	return queueing{l, queues.New(queues.Options{
		Stamp: l, Writer: l.Primary, Clock: l.o.Clock, Collected: l.o.Queues.OnCollected,
	})}
}

// Messages is the queue service of the location. All front ends of the process use this one: what others did would not be
// counted.
func (l *Location) Messages() *queues.Service { return l.queueing.messages }

// keeper returns the keeper of the queues in ranges that this process leads.
func (q queueing) keeper(s *stamp.Stamp) *queues.Keeper {
	o := q.l.o
	return queues.NewKeeper(q.messages, queues.KeeperOptions{
		Leader: s.Leader, Scale: o.Queues.Scale, Every: o.Queues.KeepEvery, Scaled: o.Queues.OnScaled,
		Logger: o.Logger.With("location", o.Name),
	})
}
