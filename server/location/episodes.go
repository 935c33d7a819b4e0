package location

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/stamp/node"
)

// Kinds of events about the replication of an account's service.
const (
	// ServiceUnavailable: the service has no Last Sync Time; the event has the reason.
	ServiceUnavailable node.EventKind = "unavailable"
	// ServiceLive: it has one again.
	ServiceLive node.EventKind = "live"
)

// serviceKey is a service of an account.
type serviceKey struct {
	account geo.Account
	service geo.Service
}

func (k serviceKey) compare(o serviceKey) int {
	return cmp.Or(cmp.Compare(k.account, o.account), cmp.Compare(k.service, o.service))
}

// episodes turn samples of the services into events: one where an episode begins, one where its reason
// changes and one where it ends, however many samples it lasts. What one sample alone shows is no
// episode: a new account has no Last Sync Time for a moment. A service that is sampled for the first
// time counts as well until then.
type episodes struct {
	begins, ends node.EventKind
	of           map[serviceKey]*episode
}

// episode is what is known of one service. The empty reason means that all is well.
type episode struct{ reported, before string }

// episodeEventsMax bounds the events of one step, so that one cause does not push everything else
// out of the event log. The last event then has the number of the services left out.
const episodeEventsMax = 100

func newEpisodes(begins, ends node.EventKind) *episodes {
	return &episodes{begins: begins, ends: ends, of: map[serviceKey]*episode{}}
}

// step takes the reasons of all services that are sampled, empty where all is well. Services that are
// missing are forgotten: they were deleted, or another process samples them.
func (e *episodes) step(sample map[serviceKey]string) []wire.Event {
	maps.DeleteFunc(e.of, func(k serviceKey, _ *episode) bool {
		_, sampled := sample[k]
		return !sampled
	})
	var changed []serviceKey
	for k, now := range sample {
		at := e.of[k]
		if at == nil {
			at = &episode{}
			e.of[k] = at
		}
		if now != at.reported && at.before != at.reported {
			changed = append(changed, k)
			at.reported = now
		}
		at.before = now
	}
	slices.SortFunc(changed, serviceKey.compare)
	var out []wire.Event
	left := 0
	for _, k := range changed {
		now := sample[k]
		if len(out) == episodeEventsMax {
			left++
			continue
		}
		ev := wire.Event{Kind: string(e.begins), Account: k.account, Service: k.service.String(), Reason: now}
		if now == "" {
			ev.Kind = string(e.ends)
		}
		out = append(out, ev)
	}
	if left > 0 {
		out = append(out, wire.Event{Kind: string(e.begins), Reason: fmt.Sprintf("%d more services changed: antipodectl status shows them", left)})
	}
	return out
}
