package metrics

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// Other is the label account of all accounts that are not shown by their names. No account can have this name.
const Other = "(other)"

// Bounds of the number of accounts that are shown by their names.
const (
	// AccountsDefault is the bound where nobody chose one: some 15 series for each account.
	AccountsDefault = 100
	// AccountsMax is the highest one: a scrape of more takes seconds.
	AccountsMax = 10_000
	// NoAccounts shows none.
	NoAccounts = -1
)

// AccountSamples are samples of the replication of the accounts.
type AccountSamples struct {
	// SyncTimes has one entry for each (receiving location, account, range): the least sync time of the account's
	// streams of that range, the catalog's included.
	SyncTimes []SyncSample
	// LastSyncTimes has one entry for each (receiving location, account, service), the same value as in Get Service
	// Stats.
	LastSyncTimes []SyncSample
	// Unavailable has one entry for each (receiving location, account, service) whose replication is unavailable.
	Unavailable []UnavailableSample
	// Copies has one entry for each bootstrap that goes on.
	Copies []CopySample
	// Accounts has one entry for each account whose primary is at a location of the process that leads the catalog
	// there. Operations has one for each operation that is under way at such a location.
	Accounts   []AccountSample
	Operations []OperationSample
}

// SyncSample is a sync time of an account's service at its secondary.
type SyncSample struct {
	Location geo.Location
	Account  geo.Account
	Service  geo.Service
	// Time is zero when unknown.
	Time geo.Timestamp
}

// UnavailableSample is a service of an account without a Last Sync Time.
type UnavailableSample struct {
	Location geo.Location
	Account  geo.Account
	Service  geo.Service
	// Reason is one of a few words: see stats.Reason.
	Reason string
}

// accounts reads what is of accounts, at scrape time. It shows so many accounts by their names, those that are worst off:
// without a Last Sync Time, then by lag. All others are in one series of the label Other, so that what a process
// exposes does not grow with its accounts, and no alert misses one.
type accounts struct {
	src                           Source
	most                          int
	syncTime, lastSyncTime, lacks *prometheus.Desc
	copies                        copyDescs
	held, operations, failover    *prometheus.Desc
}

func newAccounts(src Source, most int) *accounts {
	if most == 0 {
		most = AccountsDefault
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &accounts{
		src: src, most: most, copies: newCopyDescs(),
		syncTime: desc(nameSyncTime,
			"Least sync time of the account's streams in the service's ranges, Unix seconds rounded down; absent when unknown.",
			labelLocation, labelService, labelAccount),
		lastSyncTime: desc(nameLastSyncTime,
			"Last Sync Time: every change committed at or before it is readable here. Unix seconds rounded down; absent when unknown.",
			labelLocation, labelAccount, labelService),
		lacks: desc(nameUnavailable,
			"1 while the replication of an account's service is unavailable for this reason; absent otherwise.",
			labelLocation, labelAccount, labelService, labelReason),
		held: desc(nameAccounts, "Accounts whose primary is here, by redundancy.", labelLocation, labelRedundancy),
		operations: desc(nameOperations, "Accounts that have an operation under way here, by its kind and phase.",
			labelLocation, labelKind, labelPhase),
		failover: desc(nameLastFailover, "When an account became primary here last, Unix seconds; absent if none ever did.", labelLocation),
	}
}

// Describe implements prometheus.Collector.
func (c *accounts) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range append(c.copies.all(), c.syncTime, c.lastSyncTime, c.lacks, c.held, c.operations, c.failover) {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *accounts) Collect(ch chan<- prometheus.Metric) {
	s := c.src.Accounts()
	s.SyncTimes, s.LastSyncTimes = foldSync(s.SyncTimes), foldSync(s.LastSyncTimes)
	s.limit(c.most)
	put := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, t := range foldSync(s.SyncTimes) {
		put(c.syncTime, unixSeconds(t.Time), string(t.Location), t.Service.String(), string(t.Account))
	}
	for _, t := range foldSync(s.LastSyncTimes) {
		put(c.lastSyncTime, unixSeconds(t.Time), string(t.Location), string(t.Account), t.Service.String())
	}
	lacks := map[UnavailableSample]int{}
	for _, u := range s.Unavailable {
		lacks[u]++
	}
	for u, n := range lacks {
		put(c.lacks, float64(n), string(u.Location), string(u.Account), u.Service.String(), u.Reason)
	}
	for _, one := range foldCopies(s.Copies) {
		c.copies.collect(one, put)
	}
	c.collectAll(s, put)
}

// limit replaces the names of all accounts but the most that are worst off.
func (s *AccountSamples) limit(most int) {
	names := s.worst()
	if len(names) <= most {
		return
	}
	shown := map[geo.Account]bool{}
	for _, name := range names[:max(most, 0)] {
		shown[name] = true
	}
	rename := func(a *geo.Account) {
		if !shown[*a] {
			*a = Other
		}
	}
	for _, list := range [][]SyncSample{s.SyncTimes, s.LastSyncTimes} {
		for i := range list {
			rename(&list[i].Account)
		}
	}
	for i := range s.Unavailable {
		rename(&s.Unavailable[i].Account)
	}
	for i := range s.Copies {
		rename(&s.Copies[i].Account)
	}
}

// lagStep is what two lags may differ by and count as equal. Names decide then, so that the accounts that are shown
// stay the same from scrape to scrape while all are well: each new one would be a new series.
const lagStep = 10 * geo.TicksPerSecond

// worst returns the names of all accounts of the samples, the worst off first.
func (s *AccountSamples) worst() []geo.Account {
	var newest geo.Timestamp
	for _, t := range s.LastSyncTimes {
		newest = max(newest, t.Time)
	}
	const without = geo.Timestamp(1) << 62
	lags := map[geo.Account]geo.Timestamp{}
	for _, t := range s.SyncTimes {
		lags[t.Account] = max(lags[t.Account], 0)
	}
	for _, t := range s.LastSyncTimes {
		lags[t.Account] = max(lags[t.Account], (newest-t.Time)/lagStep)
	}
	for _, u := range s.Unavailable {
		lags[u.Account] = without
	}
	for _, one := range s.Copies {
		lags[one.Account] = without
	}
	names := make([]geo.Account, 0, len(lags))
	for name := range lags {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b geo.Account) int {
		return cmp.Or(cmp.Compare(lags[b], lags[a]), cmp.Compare(a, b))
	})
	return names
}

// foldSync merges the samples of one location, account and service into their least time. If any
// of them is unknown, it leaves the service out.
func foldSync(in []SyncSample) []SyncSample {
	least := map[SyncSample]geo.Timestamp{}
	for _, s := range in {
		k := s
		k.Time = 0
		if t, ok := least[k]; ok {
			s.Time = min(t, s.Time) // Unknown is zero, so it wins.
		}
		least[k] = s.Time
	}
	out := make([]SyncSample, 0, len(least))
	for k, t := range least {
		if t != 0 {
			k.Time = t
			out = append(out, k)
		}
	}
	return out
}

// unixSeconds rounds down to milliseconds: a float64 cannot hold 100 ns ticks, and a time rounded
// up would promise changes that are not there.
func unixSeconds(t geo.Timestamp) float64 {
	return float64(t/(geo.TicksPerSecond/1000)) / 1000
}

// AccountSample is an account at its primary.
type AccountSample struct {
	Location   geo.Location
	Redundancy string
	// LastFailover is zero if the account was always primary here.
	LastFailover geo.Timestamp
}

// OperationSample is an operation of an account.
type OperationSample struct {
	Location geo.Location
	// Kind and Phase are one of a few words each. A phase may be empty.
	Kind, Phase string
}

// collectAll counts all accounts, without their names.
func (c *accounts) collectAll(s AccountSamples, put func(*prometheus.Desc, float64, ...string)) {
	held, operations, last := map[[2]string]int{}, map[OperationSample]int{}, map[string]geo.Timestamp{}
	for _, o := range s.Operations {
		operations[o]++
	}
	for _, a := range s.Accounts {
		at := string(a.Location)
		held[[2]string{at, a.Redundancy}]++
		if a.LastFailover > last[at] {
			last[at] = a.LastFailover
		}
	}
	for k, n := range held {
		put(c.held, float64(n), k[:]...)
	}
	for k, n := range operations {
		put(c.operations, float64(n), string(k.Location), k.Kind, k.Phase)
	}
	for at, t := range last {
		put(c.failover, unixSeconds(t), at)
	}
}
