package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// The names. Dashboards and alerts use them: add, and rename only together with former.
const (
	nameRequests        = "antipode_requests_total"
	nameRequestSeconds  = "antipode_request_seconds"
	nameCommitSeconds   = "antipode_commit_seconds"
	nameInSync          = "antipode_in_sync_replicas"
	nameUncompared      = "antipode_uncompared_ranges"
	nameBacklogRecords  = "antipode_stream_backlog_records"
	nameBacklogBytes    = "antipode_stream_backlog_bytes"
	nameBacklogAge      = "antipode_stream_backlog_age_seconds"
	nameBacklogPayload  = "antipode_stream_backlog_payload_bytes"
	nameFellOut         = "antipode_outbox_fell_out_accounts"
	nameBudget          = "antipode_outbox_budget_bytes"
	nameCopyRows        = "antipode_bootstrap_copied_rows"
	nameCopyBytes       = "antipode_bootstrap_copied_bytes"
	nameCopyAllRows     = "antipode_bootstrap_counted_rows"
	nameCopyAllBytes    = "antipode_bootstrap_counted_bytes"
	nameCopySpeed       = "antipode_bootstrap_bytes_per_second"
	nameCopyLeft        = "antipode_bootstrap_left_seconds"
	nameCopyWaiting     = "antipode_bootstrap_waiting_bytes"
	nameSyncTime        = "antipode_sync_timestamp_seconds"
	nameLastSyncTime    = "antipode_last_sync_timestamp_seconds"
	nameUnavailable     = "antipode_replication_unavailable"
	nameAlarms          = "antipode_stream_alarms_total"
	nameHeld            = "antipode_held_writes_total"
	nameScaled          = "antipode_queue_scalings_total"
	nameCollected       = "antipode_queue_collected_messages_total"
	nameCache           = "antipode_state_cache_bytes"
	nameAbandoned       = "antipode_abandoned_payload_bytes_total"
	nameReplicaInSync   = "antipode_replica_in_sync"
	nameEvents          = "antipode_events_total"
	nameGatewayRequests = "antipode_gateway_requests_total"
	nameGatewaySeconds  = "antipode_gateway_request_seconds"
	nameGatewayBytes    = "antipode_gateway_bytes_total"
	nameGatewayErrors   = "antipode_gateway_errors_total"
	nameGatewayForwards = "antipode_gateway_forwards_total"
	nameDNSAnswers      = "antipode_dns_answers_total"
	nameDNSAccounts     = "antipode_dns_accounts"
	nameDNSAge          = "antipode_dns_source_age_seconds"
	nameDNSUnsaved      = "antipode_dns_save_failures_total"
	nameDNSUpdates      = "antipode_dns_updates_total"
	nameDNSWaiting      = "antipode_dns_waiting_accounts"
	nameWitnessRequests = "antipode_witness_requests_total"
	nameWitnessLease    = "antipode_witness_lease_seconds"
	nameWitnessRenewal  = "antipode_witness_since_renewal_seconds"
	nameWitnessClaims   = "antipode_witness_claims"
	nameWitnessUnsaved  = "antipode_witness_save_failures_total"
	nameRequestErrors   = "antipode_request_errors_total"
	nameLeader          = "antipode_range_leader_known"
	nameReplicas        = "antipode_range_replicas"
	nameStopped         = "antipode_stopped_streams"
	nameDiskSize        = "antipode_disk_size_bytes"
	nameDiskFree        = "antipode_disk_free_bytes"
	nameDiskReserve     = "antipode_disk_reserve_bytes"
	nameOut             = "antipode_node_out_of_service"
	nameRunning         = "antipode_location_running"
	nameConfirmed       = "antipode_epochs_confirmed"
	nameRefused         = "antipode_epochs_refused_accounts"
	nameLinkCut         = "antipode_link_cut"
	nameBusConnected    = "antipode_bus_connected"
	nameAccounts        = "antipode_accounts"
	nameOperations      = "antipode_account_operations"
	nameLastFailover    = "antipode_last_failover_timestamp_seconds"
	nameCertificate     = "antipode_certificate_not_after_timestamp_seconds"
	nameBuild           = "antipode_build_info"
)

// The labels.
const (
	labelLocation  = "location"
	labelService   = "service"
	labelOperation = "operation"
	labelStatus    = "status"
	labelAccount   = "account"
	labelReason    = "reason"
	labelKind      = "kind"
	labelRange     = "range"
	labelNode      = "node"
	labelDirection = "direction"
	labelCode      = "code"
	labelTo        = "to"
	labelOutcome   = "outcome"
	labelHow       = "how"
	labelTransport = "transport"
	labelType      = "type"
	labelServer    = "server"
	labelBus       = "bus"
	labelPhase     = "phase"
	labelVersion   = "version"
	labelRevision  = "revision"
	labelGoVersion = "go_version"

	labelRedundancy = "redundancy"
)

// Names lists the metrics of this package, in the order of docs/metrics.md.
func Names() []string {
	return []string{
		nameRequests, nameRequestSeconds, nameCommitSeconds, nameInSync, nameUncompared,
		nameBacklogRecords, nameBacklogBytes, nameBacklogAge, nameBacklogPayload, nameFellOut, nameBudget,
		nameCopyRows, nameCopyBytes, nameCopyAllRows, nameCopyAllBytes, nameCopySpeed, nameCopyLeft, nameCopyWaiting,
		nameSyncTime, nameLastSyncTime, nameUnavailable, nameAlarms, nameHeld, nameAbandoned, nameCache, nameReplicaInSync, nameEvents,
		nameGatewayRequests, nameGatewaySeconds, nameGatewayBytes, nameGatewayErrors, nameGatewayForwards,
		nameDNSAnswers, nameDNSAccounts, nameDNSAge, nameDNSUnsaved, nameDNSUpdates, nameDNSWaiting,
		nameWitnessRequests, nameWitnessLease, nameWitnessRenewal, nameWitnessClaims, nameWitnessUnsaved,
		nameRequestErrors, nameLeader, nameReplicas, nameStopped, nameDiskSize, nameDiskFree, nameDiskReserve,
		nameOut, nameRunning, nameConfirmed, nameRefused, nameLinkCut, nameBusConnected,
		nameAccounts, nameOperations, nameLastFailover, nameCertificate, nameBuild, nameScaled, nameCollected,
	}
}

// NewRegistry returns a registry with the metrics of the build, the Go runtime and the process.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewBuildInfoCollector(),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	registerBuild(r)
	return r
}

// register adds all of cs to reg or none.
func register(reg prometheus.Registerer, cs ...prometheus.Collector) error {
	if reg == nil {
		return nil
	}
	for i, c := range cs {
		if err := reg.Register(c); err != nil {
			for _, done := range cs[:i] {
				reg.Unregister(done)
			}
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}
