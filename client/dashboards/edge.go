package dashboards

// edge is the screen of what stands before the locations: gateways and name servers.
func edge() Dashboard {
	return Dashboard{
		UID: "antipode-edge", Title: "Antipode: gateways and names",
		About: "What gateways forward and refuse, and what name servers answer and pass on.",
		Rows: []Row{
			{"Gateways", []Panel{
				lines("Requests", PerSecond, `sum by (service, status) (rate(antipode_gateway_requests_total[$rate]))`, "{{service}} {{status}}",
					"As clients saw them."),
				lines("p99", Seconds, `histogram_quantile(0.99, sum by (service, le) (rate(antipode_gateway_request_seconds_bucket[$rate])))`, "{{service}}",
					"From a request's header to the end of its answer."),
				lines("Bytes of bodies", BytesPerSecond, `sum by (service, direction) (rate(antipode_gateway_bytes_total[$rate]))`, "{{service}} {{direction}}", "In and out."),
				lines("Attempts to forward", PerSecond, `sum by (to, outcome) (rate(antipode_gateway_forwards_total[$rate]))`, "{{outcome}}, to {{to}}",
					"An attempt that found no node goes on at another one."),
				lines("Errors of the gateway itself", PerSecond, `sum by (code) (rate(antipode_gateway_errors_total[$rate]))`+
					` or label_replace(0 * sum(antipode_gateway_forwards_total), "code", "none", "", "")`, "{{code}}",
					"Answers that no location made: ServerBusy is a 503 since none could be reached. No line: no gateway is scraped."),
				lines("Requests that failed", Share, failedShare("service", `antipode_gateway_requests_total{status=~"5.."}`,
					`antipode_gateway_requests_total`)+` or label_replace(0 * sum(antipode_gateway_forwards_total), "service", "none", "", "")`,
					"{{service}}", "Answered with a status of 500 or more, as clients saw it: by locations and by gateways."),
			}},
			{"Names", []Panel{
				lines("Answers", PerSecond, `sum by (code, type) (rate(antipode_dns_answers_total[$rate]))`, "{{type}} {{code}}", "By type and code."),
				steps("Accounts", Count, `antipode_dns_accounts`, "name server {{instance}}", "That the server answers for."),
				lines("Since a location has said where accounts are", Seconds, `antipode_dns_source_age_seconds`, "{{location}}, at {{instance}}",
					"What is answered is no older than that, as far as this location knows."),
				lines("Records that may be older at other servers", Count, `max by (server) (antipode_dns_waiting_accounts)`+
					` or label_replace(0 * sum(antipode_dns_accounts), "server", "none", "", "")`, "{{server}}",
					"Accounts whose update has not been taken by a server of RFC 2136."),
			}},
		},
	}
}
