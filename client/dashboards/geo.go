package dashboards

// geo is the screen of both locations: how far the secondaries are, what waits, and what moved.
func geo() Dashboard {
	return Dashboard{
		UID: "antipode-geo", Title: "Antipode: geo-replication",
		About: "Both locations: Last Sync Time, what waits between them, copies under way, and failovers.",
		Rows: []Row{
			now(),
			alerting(),
			{"Last Sync Time", []Panel{
				lines("Last Sync Time behind now", Seconds, behind("antipode_last_sync_timestamp_seconds"),
					"{{account}} {{service}}, at {{location}}",
					"What a reader of -secondary may miss at most, at the time of the scrape. No line: the service has no Last Sync Time, "+
						"or nobody scrapes the location; both are worse than a high one."),
				steps("Services that are unavailable", Count,
					`sum by (location, service, reason) (max by (location, account, service, reason) (antipode_replication_unavailable{location=~"$location"}))`+atRest,
					"{{location}} {{service}} {{reason}}", "By reason; zero when all is well."),
				lines("Least sync time of the streams, behind now", Seconds, behind("antipode_sync_timestamp_seconds"),
					"{{account}} {{service}}, at {{location}}", "The same for the catalog too, measured where the copy is."),
			}},
			{"What waits, where it is written", []Panel{
				lines("Changes", Count, `max by (location, service) (antipode_stream_backlog_records{location=~"$location"})`, "{{service}}, at {{location}}",
					"Changes that the other location has not acknowledged."),
				lines("Bytes of changes and payload", Bytes, `max by (location, service) (antipode_stream_backlog_bytes{location=~"$location"} + `+
					`antipode_stream_backlog_payload_bytes{location=~"$location"})`, "{{service}}, at {{location}}",
					"What the link has to carry before the other location is up to date."),
				lines("Age of the oldest", Seconds, `max by (location, service) (antipode_stream_backlog_age_seconds{location=~"$location"})`, "{{service}}, at {{location}}",
					"Zero when nothing waits."),
			}},
			{"Streams and copies", []Panel{
				lines("Alarms of streams", PerSecond, `sum by (location, reason) (rate(antipode_stream_alarms_total{location=~"$location"}[$rate]))`,
					"{{reason}}, at {{location}}", "Fork, epoch and clock need an operator; the others name a fault of the bus, which mends itself."),
				lines("Writes held back", PerSecond, `sum by (location, how) (rate(antipode_held_writes_total{location=~"$location"}[$rate]))`,
					"{{how}}, at {{location}}", "Writes slowed or refused because the secondary is late, where the account's policy says so."),
				steps("Accounts that fell out of the outbox", Count, `max by (location, service) (antipode_outbox_fell_out_accounts{location=~"$location"})`,
					"{{service}}, at {{location}}", "Their copies have to be made again."),
				steps("Streams that may not go on", Count, `sum by (location, service, reason) (antipode_stopped_streams{location=~"$location"})`+atRest,
					"{{location}} {{service}} {{reason}}", "Zero when all is well; else an operator decides, see the runbook of forks."),
				steps("The bus", Count, `min by (location, bus) (antipode_bus_connected{location=~"$location"})`, "{{location}}, to the bus of {{bus}}",
					"1 while every process is connected to it."),
				lines("Copies under way", Share, `antipode_bootstrap_copied_bytes{location=~"$location"} / antipode_bootstrap_counted_bytes{location=~"$location"}`,
					"{{account}}, from {{location}}", "How much of each bootstrap is done; no line when none is under way."),
				lines("Rate of copies", BytesPerSecond, `antipode_bootstrap_bytes_per_second{location=~"$location"}`, "{{account}}, from {{location}}",
					"Over the last 30 seconds."),
			}},
			{"Failovers", []Panel{
				steps("Accounts by primary", Count, `sum by (location, redundancy) (antipode_accounts{location=~"$location"})`, "{{redundancy}}, at {{location}}",
					"A failover moves an account from one line to the other."),
				steps("Operations of accounts under way", Count, `sum by (location, kind, phase) (antipode_account_operations{location=~"$location"})`+atRest,
					"{{location}} {{kind}} {{phase}}", "Failovers by phase, changes of redundancy, copies; none when all rests."),
				lines("Since an account became primary here", Seconds, `time() - max by (location) (antipode_last_failover_timestamp_seconds{location=~"$location"})`,
					"{{location}}", "The newest failover to each location; no line: there was none."),
				steps("Steps of failovers", Count, `sum by (location, kind) (antipode_events_total{location=~"$location",kind=~"failover-.*"})`,
					"{{kind}}, at {{location}}", "How often each step was made, since the processes began: the event log has each, by account."),
				steps("Epochs are confirmed", Count, `min by (location) (antipode_epochs_confirmed{location=~"$location"})`, "{{location}}",
					"0 while a process may not answer writes of accounts with a copy, since it does not know whether another primary was made."),
				steps("Accounts refused for a higher epoch", Count, `max by (location) (antipode_epochs_refused_accounts{location=~"$location"})`, "{{location}}",
					"Their primary is the other location: clients with an old address come here."),
			}},
			{"Events", []Panel{
				steps("Events of replicas", PerSecond, `sum by (location, kind) (rate(antipode_events_total{location=~"$location",kind!~"failover-.*"}[$rate]))`,
					"{{kind}}, at {{location}}", "Leaders, in-sync sets, damage."),
			}},
		},
	}
}
