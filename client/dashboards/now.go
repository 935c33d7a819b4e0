package dashboards

// now is what an operator looks at first. A number has a value for each location, and a bad one for a location of which
// nothing is known: green means that it was measured.
func now() Row {
	atLocations := failedShare("location", `antipode_requests_total{location=~"$location",status=~"5.."}`,
		`antipode_requests_total{location=~"$location"}`)
	atGateways := failedShare("", `antipode_gateway_requests_total{status=~"5.."}`, `antipode_gateway_requests_total`)
	return Row{"Now", []Panel{
		number("Furthest behind", Seconds, `max by (location) (`+behind("antipode_last_sync_timestamp_seconds")+`)`+
			` or NaN * group by (location) (antipode_replication_unavailable{location=~"$location"})`+
			` or NaN * `+missing+nothingToCopy+` or on () vector(NaN)`,
			"{{location}}", 30,
			"At each location the service of an account whose secondary is furthest behind, by Last Sync Time at the scrape. "+
				"Not known: no service there has one, or nobody scrapes the location. 0 where no account has a secondary."),
		number("Services unavailable", Count, `sum by (location) (max by (location, account, service, reason) `+
			`(antipode_replication_unavailable{location=~"$location"}))`+atRest+notKnown, "{{location}}", 1,
			"Services of accounts whose geo-replication stands: an operator looks at each."),
		number("Oldest change that waits", Seconds,
			`max by (location) (antipode_stream_backlog_age_seconds{location=~"$location"})`+notKnown, "{{location}}", 30,
			"The oldest change that the other location has not acknowledged."),
		below(number("Replicas in sync, least", Share,
			`min by (location) ((`+inSync+`) / (`+replicasWanted+` > 0)) or 0 * `+missing+` or on () vector(0)`, "{{location}}", 1,
			"Of those that a range should have, where that is least; 0 without a leader, and where nobody scrapes the "+
				"location. With one of three missing a failure costs writes.")),
		number("Alarms of streams", Count,
			`round(sum by (location) (increase(antipode_stream_alarms_total{location=~"$location"}[15m])))`+
				unlessMissing+notKnown, "{{location}}", 1, "In the last 15 minutes, of all reasons."),
		number("Requests that failed", Share, atLocations+unlessMissing+` or label_replace(`+atGateways+
			` or 0 * sum(antipode_gateway_forwards_total), "location", "gateways", "", "")`+atRest+notKnown,
			"{{location}}", 0.01, "Answered with a status of 500 or more, of all: by each location, and by the gateways as "+
				"clients saw it, their own 503s included. What did not come to any of them is not in it."),
		number("Processes that do not answer", Count,
			`count(up{job=~"antipode.*"} == 0) or on () 0 * count(up{job=~"antipode.*"}) or on () vector(NaN)`, "", 1,
			"Nodes, gateways, name servers and witnesses whose scrape fails. Not known: none is scraped."),
		number("Alerts that fire", Count, `count(ALERTS{alertname=~"Antipode.*",alertstate="firing"})`+
			` or on () 0 * (antipode:last_sync_time_target_seconds or on () vector(NaN))`, "", 1,
			"Of deploy/prometheus/alerts.yaml. Not known: this Prometheus does not evaluate the rules."),
	}}
}

// alerting is which processes do not answer, and which alerts fire.
func alerting() Row {
	return Row{"Alerts and processes", []Panel{
		steps("Alerts that fire, by name", Count,
			`count by (alertname, location, severity) (ALERTS{alertname=~"Antipode.*",alertstate="firing"})`+
				` or label_replace(0 * antipode:last_sync_time_target_seconds, "alertname", "none", "", "")`,
			"{{alertname}} {{location}} {{severity}}",
			"Their runbooks are in docs/runbooks. No line: this Prometheus does not evaluate the rules of deploy/prometheus."),
		steps("Processes that do not answer, by name", Count, `count by (job, instance) (up{job=~"antipode.*"} == 0)`+
			` or label_replace(0 * count(up{job=~"antipode.*"}), "job", "none", "", "")`, "{{job}} {{instance}}",
			"1 while the scrape of a process fails."),
		steps("Processes that answer, by role", Count, `sum by (job) (up{job=~"antipode.*"})`, "{{job}}",
			"Nodes are antipode, the others antipode-gateway, antipode-dns and antipode-witness."),
		steps("Nodes that run, by location", Count, running+` or 0 * `+missing, "{{location}}",
			"Processes that run the location. 0: it is stopped, or nobody scrapes it and no process of the other location "+
				"reaches its bus."),
	}}
}

const (
	// running is how many processes run each location.
	running = `sum by (location) (antipode_location_running{location=~"$location"})`
	// missing has the locations that nothing is known of: no process that is scraped runs them, and one names them. The
	// processes of the other location do whose bus they cannot reach, so that a dead location does not fall out of the tiles
	// with its series; one whose bus is reached is scraped by another Prometheus.
	missing = `(group by (location) (antipode_location_running{location=~"$location"} or ` +
		`label_join(max by (bus) (antipode_bus_connected{bus=~"$location"}) == 0, "location", "", "bus"))` +
		` unless ` + running + ` > 0)`
	// notKnown is NaN for these locations, and for all in one if no location is scraped.
	notKnown = ` or NaN * ` + missing + ` or on () vector(NaN)`
	// unlessMissing leaves these locations out of what is taken over a time: it has values of before a location died.
	unlessMissing = ` unless ` + missing
	// atRest is zero for each location that runs: what is all right shows as zero, and what is not measured does not.
	atRest = ` or 0 * (` + running + ` > 0)`
	// nothingToCopy is one zero where locations run and nothing has a Last Sync Time, nor a reason for having none: no
	// account has a secondary.
	nothingToCopy = ` or on () 0 * group(` + running + ` > 0)`
	// inSync is how many replicas of each range are in sync: none without a leader.
	inSync = `sum by (location, range) (` +
		`max by (location, range, node) (antipode_replica_in_sync{location=~"$location"}))` +
		` or 0 * max by (location, range) (antipode_range_leader_known{location=~"$location"})`
	// replicasWanted is how many replicas each range should have: one at a location of one node.
	replicasWanted = `max by (location, range) (antipode_range_replicas{location=~"$location"})`
)

// behind is how far a time is behind that of its scrape, where it is least. time() in place of timestamp() would add
// the age of the scrape.
func behind(metric string) string {
	of := metric + `{location=~"$location"}`
	return `min by (location, account, service) (clamp_min(timestamp(` + of + `) - ` + of + `, 0))`
}

// failedShare is which share of requests failed, by a label. It is absent without requests.
func failedShare(by, failed, all string) string {
	total := `sum by (` + by + `) (rate(` + all + `[$rate]))`
	return `(sum by (` + by + `) (rate(` + failed + `[$rate])) or 0 * ` + total + `) / (` + total + ` > 0)`
}

// below makes values below the bad one bad.
func below(p Panel) Panel {
	p.BadBelow = true
	return p
}
