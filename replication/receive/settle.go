package receive

import (
	"time"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
)

// settleEvery is how often a mirror is loaded, and the source asked for the end, while a fork is being settled.
const settleEvery = time.Second

// settled is the answer of the source that the settlement from a base has ended, and its head then.
type settled struct {
	base geo.Head
	at   geo.Seq
}

// settlings is what was known when the source was asked: its answer counts for that alone.
type settlings struct {
	cursors map[geo.Stream]Cursor
	of      map[geo.Stream]change.Stop
}

// takeSettling takes the streams whose forks are being settled out of stops. They go on, and their cursors are
// sent again: the source answers once the settlement has ended.
func (rr *rangeReceiver) takeSettling(stops []cursor.StreamStop) (stands []cursor.StreamStop) {
	before := rr.settling
	rr.settling = nil
	for _, s := range stops {
		if !s.Reason.Settles() {
			stands = append(stands, s)
			continue
		}
		if rr.settling == nil {
			rr.settling = map[geo.Stream]change.Stop{}
		}
		rr.settling[s.Stream] = s.Stop
		rr.mirror.moved[s.Stream] = struct{}{}
		if had, did := before[s.Stream]; !did || had.Here != s.Here {
			rr.r.o.Logger.Info("fork is being settled; the stream goes on", "stream", s.Stream, "base", s.Here.Seq)
		}
	}
	return stands
}

// settle handles what the source answered of forks that are being settled: see ranges.Settle. If several answers
// report that a settlement has ended, the head of the first counts. A stream with many writes reaches that head.
func (rr *rangeReceiver) settle(answers []Mismatch, asked settlings) {
	ended := map[geo.Stream]settled{}
	for _, v := range answers {
		switch was, settling := asked.of[v.Stream]; {
		case !v.Reason.Settles():
		case v.Stopped:
			rr.fetchBase(v, asked.cursors[v.Stream].Head)
		case settling:
			end := rr.settled[v.Stream]
			if end.base != was.Here {
				end = settled{was.Here, v.There.Seq}
			}
			ended[v.Stream] = end
			rr.r.o.Applier.Settled(v.Stream, end.base, end.at, rr.reloadAfter(v.Stream))
		}
	}
	for st, end := range rr.settled { // Nothing was asked of them.
		if _, did := asked.cursors[st]; !did && rr.settling[st].Here == end.base {
			ended[st] = end
		}
	}
	rr.settled = ended
}

// fetchBase gets the record that is the base of a stream, and sets the cursor to it.
func (rr *rangeReceiver) fetchBase(v Mismatch, from geo.Head) {
	rr.r.o.Source.Records(v.Stream, v.There.Seq, 1, func(records [][]byte, err error) {
		rr.r.post(func(time.Duration) {
			if err != nil || len(records) == 0 || change.HashOf(records[0]) != v.There.Hash {
				return // The source offers it again.
			}
			rr.r.o.Applier.Rebase(Rebase{Stream: v.Stream, From: from, Record: records[0]}, rr.reloadAfter(v.Stream))
		})
	})
}

// reloadAfter returns what is done after a command that ends or changes the stop of a stream.
func (rr *rangeReceiver) reloadAfter(st geo.Stream) func(error) {
	return func(err error) {
		rr.r.post(func(time.Duration) {
			if err != nil {
				rr.r.o.Logger.Warn("a step of the settlement of a fork failed; it is tried again", "stream", st, "error", err)
				return
			}
			rr.mirror.reload()
		})
	}
}
