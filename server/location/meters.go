package location

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/metrics"
	"antipode/replication/bus/natsbus"
	"antipode/replication/receive"
	"antipode/replication/ship"
	"antipode/services/queues"
	"antipode/stamp/node"
)

// Meters are the instruments of a process.
type Meters struct {
	Requests *metrics.Requests
	Commits  *metrics.Commits
	Alarms   *metrics.Alarms
	Events   *metrics.Events
	// Abandoned counts payload of failed uploads.
	Abandoned *metrics.Abandoned
	// Held counts writes of accounts whose changes are late.
	Held *metrics.Held
	// Queues counts what is done with queues.
	Queues *metrics.Queues
}

// NewMeters registers the instruments. Counters of the given locations begin at zero.
func NewMeters(reg prometheus.Registerer, locations ...geo.Location) (*Meters, error) {
	var m Meters
	var errs [7]error
	m.Requests, errs[0] = metrics.NewRequests(reg)
	m.Commits, errs[1] = metrics.NewCommits(reg)
	m.Alarms, errs[2] = metrics.NewAlarms(reg)
	m.Abandoned, errs[3] = metrics.NewAbandoned(reg)
	m.Events, errs[4] = metrics.NewEvents(reg)
	m.Held, errs[5] = metrics.NewHeld(reg)
	m.Queues, errs[6] = metrics.NewQueues(reg)
	for _, l := range locations {
		m.Held.Add(l, true, 0)
		m.Held.Add(l, false, 0)
		m.Abandoned.Add(l, 0)
		m.Queues.AddCollected(l, true, 0)
		m.Queues.AddCollected(l, false, 0)
		for _, act := range queues.Acts() {
			m.Queues.AddScaled(l, string(act), 0)
		}
		for _, kind := range append(node.EventKinds(),
			ServiceUnavailable, ServiceLive, ChangesLate, ChangesArrived, AccountFellOut, AccountFollows, EpochsConfirmed, EpochsLost, EpochsPassed,
			LinkCut, LinkDelayed, LinkHealed) {
			m.Events.Add(l, string(kind), 0)
		}
		for _, step := range record.MoveSteps() {
			m.Events.Add(l, string(step), 0)
		}
		for _, reason := range []string{
			receive.AlarmGap, receive.AlarmFork, receive.AlarmChecksum, receive.AlarmEpoch, receive.AlarmIncarnation, receive.AlarmSilence,
			ship.AlarmLost, receive.AlarmPoison, receive.AlarmVersion, receive.AlarmBudget, receive.AlarmStands, receive.AlarmUnavailable, receive.AlarmClock, natsbus.AlarmRolledBack, natsbus.AlarmDamaged, natsbus.AlarmForgot, natsbus.AlarmServers,
		} {
			m.Alarms.Add(l, reason, 0)
		}
	}
	return &m, errors.Join(errs[:]...)
}

// MetricsAccountsMax bounds how many accounts metrics show by their names.
const MetricsAccountsMax = metrics.AccountsMax

// RegisterGauges registers the gauges of the locations of a process. accountsShown: see metrics.RegisterGauges.
func (s Set) RegisterGauges(reg prometheus.Registerer, accountsShown int) error {
	return metrics.RegisterGauges(reg, samples{s}, accountsShown)
}

// Watch makes a location report its commits, alarms and events.
func (m *Meters) Watch(o *Options) {
	o.OnCommit = func(s geo.Service, took time.Duration) { m.Commits.Observe(o.Name, s, took) }
	o.OnAlarm = func(reason string) { m.Alarms.Raise(o.Name, reason, o.Clock.Now()) }
	o.OnHeld = func(refused bool) { m.Held.Add(o.Name, refused, 1) }
	o.Queues.OnScaled = func(act queues.Act) { m.Queues.AddScaled(o.Name, string(act), 1) }
	o.Queues.OnCollected = func(n int, expired bool) { m.Queues.AddCollected(o.Name, expired, uint64(n)) }
	o.OnEvent = func(kind node.EventKind) { m.Events.Add(o.Name, string(kind), 1) }
}
