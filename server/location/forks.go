package location

import (
	"context"
	"fmt"
	"sync"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/route"
)

// forksWait bounds how long Forks waits for a range without a leader.
const forksWait = 2 * time.Second

// Forks returns the streams that may not go on, of those that the location numbers and those that it
// receives, as its ranges keep them (R16). It asks the leader of each range, in whatever process that is.
func (l *Location) Forks(ctx context.Context) (wire.Forks, error) {
	stamp, err := l.Stamp()
	if err != nil {
		return wire.Forks{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, forksWait)
	defer cancel()
	all := l.o.Route.Ranges()
	found, silent := make([][]wire.Fork, len(all)), make([]bool, len(all))
	var asked sync.WaitGroup
	for i, d := range all {
		asked.Go(func() {
			for origin, side := range map[geo.Location]string{l.o.Name: wire.SideSource, l.o.Other: wire.SideReceiver} {
				for _, src := range l.sourcesOf(d, origin) {
					p, err := stamp.Progress(ctx, d.ID, src, cursor.EveryAccount)
					silent[i] = silent[i] || err != nil
					for _, s := range p.Stops {
						found[i] = append(found[i], l.fork(d, side, s))
					}
				}
			}
		})
	}
	asked.Wait()
	var out wire.Forks
	for i, d := range all {
		out.Forks = append(out.Forks, found[i]...)
		if silent[i] {
			out.Silent = append(out.Silent, fmt.Sprintf("the %s range of %s", d.Service, l.o.Name))
		}
	}
	return out, nil
}

func (l *Location) fork(d route.Range, side string, s cursor.StreamStop) wire.Fork {
	head := func(h geo.Head) wire.RecordHead {
		return wire.RecordHead{Number: uint64(h.Seq), Hash: fmt.Sprintf("%016x", uint64(h.Hash))}
	}
	keep := geo.Location("")
	switch {
	case side != wire.SideSource:
	case s.Reason == change.StopTaking:
		keep = l.o.Other
	case s.Reason == change.StopSettling:
		keep = l.o.Name
	}
	return wire.Fork{
		Keep: keep, Stream: s.Stream.String(), Account: s.Stream.Account, Epoch: wire.EpochOf(s.Stream.Epoch), Range: s.Stream.Range, Lane: s.Stream.Lane,
		Service: d.Service.String(), Location: l.o.Name, Side: side, Reason: s.Reason.String(),
		Here: head(s.Here), There: head(s.There), Since: wire.Time{Time: s.At.Time()},
	}
}
