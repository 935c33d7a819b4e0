package receive

import (
	"time"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
)

// A stream that is stopped since its next record is of a later version goes on by itself once this location knows the
// version (R11). That is safe: nothing of the record was applied, the source keeps it and what follows, and the stop has
// its hash. So a receiver, when it begins, asks the source for that record and, if it can decode the very bytes, ends the
// stop here. The source ends its own once the cursor has passed the record. If the node that evaluates is of an earlier
// version still, it stops the stream again, and that is tried less and less often.

const (
	// againLeast is how long a stream that was stopped again is left so, which doubles up to againMost.
	againLeast = time.Minute
	againMost  = time.Hour
	// againAsked bounds the records that are asked for at once.
	againAsked = 16
)

// again is what was tried with the stream of a stop.
type again struct {
	// at is when it may be tried, pause how long it waited for that.
	at, pause time.Duration
	asking    bool
	// unknown: this program cannot decode the record of this hash. At first zero, which is that of a stop for no record: the
	// source stopped the stream for a reason of a later version, and an operator lets it go on (mismatch).
	unknown geo.Hash
}

// tryAgain asks for the records of stops that this program may know. Those that the receiver begins with come first: the
// stops that it sees later are of programs that run now.
func (rr *rangeReceiver) tryAgain(stops []cursor.StreamStop, begins bool, now time.Duration) {
	asking := 0
	for st, a := range rr.again {
		if a.asking {
			asking++
		} else if _, stopped := rr.stopped[st]; !stopped && now >= a.at+againMost {
			delete(rr.again, st)
		}
	}
	for _, s := range stops {
		if s.Reason != change.StopVersion {
			continue
		}
		a := rr.again[s.Stream]
		if a == nil {
			a = &again{at: now}
			if !begins {
				a.at, a.pause = now+againLeast, againLeast
			}
			rr.again[s.Stream] = a
		}
		if a.asking || now < a.at || a.unknown == s.There.Hash || asking == againAsked {
			continue
		}
		asking++
		a.asking = true
		rr.r.o.Source.Records(s.Stream, s.There.Seq, 1, func(records [][]byte, err error) {
			rr.r.post(func(now time.Duration) {
				a.asking = false
				switch {
				case err != nil: // The next load asks again.
				case len(records) == 0 || change.HashOf(records[0]) != s.There.Hash:
					a.at = now + againLeast
				default:
					rr.goOn(s, a, records[0], now)
				}
			})
		})
	}
}

// goOn ends a stop if its record can be decoded.
func (rr *rangeReceiver) goOn(s cursor.StreamStop, a *again, record []byte, now time.Duration) {
	if _, err := change.ParseRecord(record); err != nil {
		a.unknown = s.There.Hash
		return
	}
	a.pause = min(max(2*a.pause, againLeast), againMost)
	a.at = now + a.pause
	rr.r.o.Applier.Resume(s.Stream, func(err error) {
		rr.r.post(func(now time.Duration) {
			if err != nil {
				a.at = now + rr.r.o.RetryAfter
				return
			}
			rr.r.o.Logger.Info("stream goes on: its next record was of a later version, which this one knows", "stream", s.Stream, "seq", s.There.Seq)
			rr.mirror.reload()
		})
	})
}
