package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"time"
)

// reserveBytesMax is far above any disk, and below what the arithmetic of a node overflows at.
const reserveBytesMax = 1 << 50

// metricsAccountsMax is AccountsMax of package metrics: a scrape of more takes seconds.
const metricsAccountsMax = 10_000

// subqueuesMax is the bound of queues.ScaleOptions.Max; queueRateMax is far above what a location can do.
const (
	subqueuesMax = 256
	queueRateMax = 1_000_000
)

// cacheBytesMin leaves something beside the memtables, which Pebble takes out of the cache's bytes: up to 80 MiB while
// they flush.
const (
	cacheBytesMin = 96 << 20
	cacheBytesMax = 1 << 40
)

// rehydrationMax is far above what any client waits for.
const rehydrationMax = 360 * time.Hour

// validateBounds checks sizes and times. 0 is the default: that is how `cluster start` writes a field that nothing
// set.
func (n Node) validateBounds(w *walker) {
	if n.ReserveBytes > reserveBytesMax {
		w.bad("reserve_bytes", fmt.Sprintf("write a number of bytes from 1 to %d, or leave it out for the default of 512 MiB", uint64(reserveBytesMax)))
	}
	if n.CacheBytes != 0 && (n.CacheBytes < cacheBytesMin || n.CacheBytes > cacheBytesMax) {
		w.bad("cache_bytes", fmt.Sprintf("write a number of bytes from %d to %d, or leave it out for the default of 256 MiB", uint64(cacheBytesMin), uint64(cacheBytesMax)))
	}
	if rest, err := time.ParseDuration(string(n.NameRest)); err != nil || rest < 0 {
		w.bad("name_rest", "write a span of time, such as 40s, or 0s for none")
	}
	if takes, err := time.ParseDuration(string(n.Rehydration)); err != nil || takes < 0 || takes > rehydrationMax {
		w.bad("rehydration", "write a span of time up to 360h, such as 1h, or 0s for none")
	}
	if target, err := time.ParseDuration(string(n.RPOTarget)); err != nil || target <= 0 {
		w.bad("rpo_target", "write a span of time above zero, such as 15m")
	}
	if n.MetricsAccounts < -1 || n.MetricsAccounts > metricsAccountsMax {
		w.bad("metrics_accounts", fmt.Sprintf("write a number of accounts from 1 to %d, or -1 for none, or leave it out for the default of 100", metricsAccountsMax))
	}
	if n.QueueScale.Max > subqueuesMax {
		w.bad("queue_scale.max", fmt.Sprintf("write a number of subqueues from 1 to %d, or leave it out for the default of 64", subqueuesMax))
	}
	if n.QueueScale.UpRate > queueRateMax {
		w.bad("queue_scale.up_rate", fmt.Sprintf("write a number of commands per second from 1 to %d, or leave it out for the default of 1000", queueRateMax))
	}
	w.drain(n.Drain)
	n.validateOutbox(w)
}

// drainMax is above what any request may take, and below what a supervisor that waits for the process would wait.
const drainMax = time.Hour

// drain checks the section drain.
func (w *walker) drain(d Drain) {
	timeout, err := time.ParseDuration(string(d.Timeout))
	if err != nil || timeout <= 0 || timeout > drainMax {
		w.bad("drain.timeout", "write a span of time above zero, and of an hour at most, such as 15s")
		return
	}
	if notice, err := time.ParseDuration(string(d.Notice)); err != nil || notice < 0 || notice >= timeout {
		w.bad("drain.notice", "write a span of time below drain.timeout, such as 1s, or 0s for none")
	}
}

// ValidReceiver reports whether notices can be posted to a URL.
func ValidReceiver(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// notices checks the receiver of events of failovers.
func (w *walker) notices(n Notices) {
	if n.URL != "" && !ValidReceiver(n.URL) {
		w.bad("notices.url", "write the URL of the receiver, such as https://pager.example/antipode")
	}
	if n.KeyFile != "" && !filepath.IsAbs(n.KeyFile) {
		w.bad("notices.key_file", "write the whole path, from /")
	}
	if d, err := time.ParseDuration(string(n.Timeout)); err != nil || d <= 0 {
		w.bad("notices.timeout", "write a span of time above zero, such as 10s")
	}
}

// validateOutbox checks the budget of the outbox, and the rate of a bootstrap.
func (n Node) validateOutbox(w *walker) {
	for _, f := range []struct {
		field string
		value uint64
	}{{"outbox_bytes", n.OutboxBytes}, {"outbox_account_bytes", n.OutboxAccountBytes}, {"bootstrap_bytes_per_second", n.BootstrapBytesPerSecond}} {
		if f.value > reserveBytesMax {
			w.bad(f.field, fmt.Sprintf("write a number of bytes from 1 to %d, or leave it out for the default", uint64(reserveBytesMax)))
		}
	}
	if age, err := time.ParseDuration(string(n.OutboxAge)); err != nil || age <= 0 {
		w.bad("outbox_age", "write a span of time above zero, such as 72h")
	}
}
