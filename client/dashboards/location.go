package dashboards

// location is the screen of what one location does: its requests, replicas, disks and processes.
func location() Dashboard {
	return Dashboard{
		UID: "antipode-location", Title: "Antipode: a location",
		About: "Requests and their times, replicas and leaders, disks and payload, scrub, and the processes.",
		Rows:  []Row{requests(), replicas(), disks(), processes()},
	}
}

func requests() Row {
	return Row{"Requests", []Panel{
		lines("Requests by operation", PerSecond, `sum by (location, operation) (rate(antipode_requests_total{location=~"$location"}[$rate]))`,
			"{{operation}}, at {{location}}", "Answered, by operation of the protocol."),
		lines("p99 by operation", Seconds, `histogram_quantile(0.99, sum by (location, operation, le) (rate(antipode_request_seconds_bucket{location=~"$location"}[$rate])))`,
			"{{operation}}, at {{location}}", "From a request's header to the end of its answer."),
		lines("p50 by operation", Seconds, `histogram_quantile(0.5, sum by (location, operation, le) (rate(antipode_request_seconds_bucket{location=~"$location"}[$rate])))`,
			"{{operation}}, at {{location}}", "The same for half of them."),
		lines("Answers that are errors", PerSecond, `sum by (location, status) (rate(antipode_requests_total{location=~"$location",status=~"[45].."}[$rate]))`+atRest,
			"{{location}} {{status}}", "Of 400 and above. 404, 409 and 412 are in a day's work; 500 and 503 are ours."),
		lines("Errors by code", PerSecond, `sum by (location, service, code) (rate(antipode_request_errors_total{location=~"$location"}[$rate]))`+atRest,
			"{{location}} {{service}} {{code}}", "The protocol's code: what clients see as the reason."),
		lines("p99 of commits", Seconds, `histogram_quantile(0.99, sum by (location, service, le) (rate(antipode_commit_seconds_bucket{location=~"$location"}[$rate])))`,
			"{{service}}, at {{location}}", "From a write's proposal until each replica in sync has it on its disk."),
	}}
}

func replicas() Row {
	in := steps("Replicas in sync", Count, `min by (location, service) (antipode_in_sync_replicas{location=~"$location"})`+
		` or 0 * max by (location, service) (antipode_range_leader_known{location=~"$location"}) or 0 * `+missing, "{{location}} {{service}}",
		"Least over the service's ranges that have a leader. 0: none of them has one, or nobody scrapes the location.")
	in.Queries = append(in.Queries, Query{`max by (location) (` + replicasWanted + `)`, "{{location}}, as it should be"})
	return Row{"Replicas", []Panel{
		in,
		steps("Ranges whose leader is known", Count, `sum by (location) (max by (location, range) (antipode_range_leader_known{location=~"$location"}))`, "{{location}}",
			"By any process: fewer than the ranges means that one has no leader."),
		steps("In sync, by node", Count, `sum by (location, node) (max by (location, node, range) (antipode_replica_in_sync{location=~"$location"}))`, "node {{node}}, at {{location}}",
			"Ranges whose leader counts the node's replica."),
		steps("Nodes out of service", Count, `sum by (location, node, reason) (antipode_node_out_of_service{location=~"$location"})`+atRest,
			"{{location}} {{node}} {{reason}}", "A store that failed, or a version that does not know what a later one wrote."),
		lines("Writers slowed for a replica", Share, `max by (location, range) (antipode_writes_slowed{location=~"$location"})`+atRest,
			"{{location}} {{range}}", "By range, while it is rebuilt by a snapshot: 1 is as far as it goes."),
		steps("Ranges that take no writes until they were compared", Count, `max by (location, service) (antipode_uncompared_ranges{location=~"$location"})`,
			"{{service}}, at {{location}}", "After a recovery with loss."),
		lines("Messages to other nodes", BytesPerSecond, `sum by (location, node) (rate(antipode_peer_sent_bytes_total{location=~"$location"}[$rate]))`,
			"node {{node}}, at {{location}}", "What the replicas of a location cost its network."),
		lines("Messages that wait", Bytes, `sum by (location, node) (antipode_peer_queue_bytes{location=~"$location"})`, "node {{node}}, at {{location}}",
			"For nodes that are slow."),
		steps("Connections between nodes", Count, `sum by (location, node) (antipode_peer_connected{location=~"$location"})`, "node {{node}}, at {{location}}",
			"Two of each of three nodes when all is well."),
		lines("Clocks against the others'", Seconds, `max by (location, node) (abs(antipode_clock_offset_seconds{location=~"$location"}))`,
			"node {{node}}, at {{location}}", "How far the wall clock is from that of any other node of the location."),
	}}
}

func disks() Row {
	return Row{"Disks and payload", []Panel{
		lines("Disk that is free", Share, `antipode_disk_free_bytes{location=~"$location"} / antipode_disk_size_bytes{location=~"$location"}`,
			"node {{node}}, at {{location}}", "Below the reserve of its node.yaml a node takes no writes."),
		lines("Payload held", Bytes, `antipode_extent_bytes{location=~"$location"}`, "node {{node}}, at {{location}}",
			"In extents, one copy for each node."),
		lines("p99 of syncs of payload", Seconds, `histogram_quantile(0.99, sum by (location, node, le) (rate(antipode_extent_sync_seconds_bucket{location=~"$location"}[$rate])))`,
			"node {{node}}, at {{location}}", "Of one grouped fdatasync: the first thing a bad disk shows."),
		lines("Scrub", BytesPerSecond, `sum by (location, node) (rate(antipode_scrub_bytes_total{location=~"$location"}[$rate]))`, "node {{node}}, at {{location}}",
			"Bytes that are read and checked."),
		lines("The scrub's round", Share, `antipode_scrub_round_read_bytes{location=~"$location"} / (antipode_scrub_round_bytes{location=~"$location"} > 0)`,
			"node {{node}}, at {{location}}", "How much of what is there is read in this round, or was in the last one."),
		steps("Damaged chunks", Count, `antipode_damaged_chunks{location=~"$location"}`, "node {{node}}, at {{location}}",
			"Found and not mended yet: zero when all is well."),
		lines("Collected and compacted", BytesPerSecond, `sum by (location) (rate(antipode_collected_bytes_total{location=~"$location"}[$rate]) + `+
			`rate(antipode_compacted_bytes_total{location=~"$location"}[$rate]))`, "at {{location}}", "Payload that nobody names any more is given back."),
		lines("Outboxes, of their budget", Bytes, `antipode_outbox_budget_bytes{location=~"$location"}`, "node {{node}}, at {{location}}",
			"What each node may keep for a secondary that does not take it."),
	}}
}

func processes() Row {
	return Row{"Processes", []Panel{
		lines("Processor, of one core", Share, `rate(process_cpu_seconds_total{job=~"antipode.*"}[$rate])`, "{{job}} {{instance}}", "100 % is one core in use."),
		lines("Memory", Bytes, `process_resident_memory_bytes{job=~"antipode.*"}`, "{{job}} {{instance}}", "Resident."),
		lines("Goroutines", Count, `go_goroutines{job=~"antipode.*"}`, "{{job}} {{instance}}", "A line that only climbs is a leak."),
		lines("Certificates end in", Seconds, `min by (job, instance) (antipode_certificate_not_after_timestamp_seconds) - time()`, "{{job}} {{instance}}",
			"The first of the process's certificates."),
		lines("Cache of the state store", Bytes, `antipode_state_cache_bytes`, "{{job}} {{instance}}", "Of cache_bytes."),
	}}
}
