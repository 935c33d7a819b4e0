package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"antipode/geo"
)

// StatusVersion is the version of the status document. It rises when a field
// changes its meaning or goes away; new fields leave it alone.
const StatusVersion = 1

// State says whether something runs.
type State string

// The states. Starting is for locations: a location runs when its stores are open, and serves when
// its ranges have leaders. Failed is for nodes that took themselves out of service or could
// not be opened. Unreachable is for processes that do not answer: they may run.
const (
	Running     State = "running"
	Starting    State = "starting"
	Stopped     State = "stopped"
	Failed      State = "failed"
	Unreachable State = "unreachable"
)

// LinkState is what an operator made of the link between the locations.
type LinkState string

// The link's states.
const (
	LinkUp      LinkState = "up"
	LinkCut     LinkState = "cut"
	LinkDelayed LinkState = "delayed"
)

// ReplicationStatus is the status of a service's replication, in the words of the
// public service statistics.
type ReplicationStatus string

// The statuses of replication.
const (
	Live        ReplicationStatus = "live"
	Bootstrap   ReplicationStatus = "bootstrap"
	Unavailable ReplicationStatus = "unavailable"
)

// Status is the answer of GET /v1/status.
type Status struct {
	Version   int             `json:"version"`
	Process   Process         `json:"process"`
	Link      Link            `json:"link"`
	Locations []Location      `json:"locations"`
	Accounts  []AccountStatus `json:"accounts"`
	// Alarms counts stream alarms by reason since the process began: the sum of
	// those of Locations, made by the handler.
	Alarms map[string]uint64 `json:"alarms"`
}

// Process is the server process that answered.
type Process struct {
	PID           int     `json:"pid"`
	StartedAt     Time    `json:"started_at"`
	UptimeSeconds float64 `json:"uptime_seconds"`
	// Development is set by antipode dev, whose locations are one process and hold nobody's data.
	Development bool `json:"development,omitempty"`
}

// WarnsOfCatalog begins the warning by which a process shows fewer accounts than there may be.
const WarnsOfCatalog = "the catalog does not answer"

// Link is the link between the two locations.
type Link struct {
	State LinkState `json:"state"`
	// DelaySeconds is added to every message, in each direction; zero unless
	// State is LinkDelayed.
	DelaySeconds float64 `json:"delay_seconds"`
}

// Held is what an operator made of the link, and how to end it; empty while it is up.
func (l Link) Held() string {
	switch l.State {
	case LinkCut:
		return "an operator cut the link: antipodectl link heal"
	case LinkDelayed:
		return fmt.Sprintf("an operator delays the link by %s: antipodectl link heal", l.Delay())
	}
	return ""
}

// Delay is DelaySeconds as a duration.
func (l Link) Delay() time.Duration { return time.Duration(l.DelaySeconds * float64(time.Second)) }

// Location is one location and the stamp in it.
type Location struct {
	Name  geo.Location `json:"name"`
	State State        `json:"state"`
	// Role is a sentence for people, today the same one at every location. Programs read
	// Accounts.
	Role   string  `json:"role"`
	Nodes  []Node  `json:"nodes"`
	Ranges []Range `json:"ranges"`
	// Clones are the open clones of accounts, on nodes that answer. Absent without any.
	Clones []Clone `json:"clones,omitempty"`
	// Peer is the other location of the pair.
	Peer geo.Location `json:"peer,omitempty"`
	// Levels are the feature levels that it has committed; absent where no node runs.
	Levels *Levels `json:"levels,omitempty"`
	// Epochs is absent where the location does not run.
	Epochs *Epochs `json:"epochs,omitempty"`
	// Failover is the failover of all accounts of a location that is under way here: of this one if it is planned, of the other
	// one if it is not. Absent without one, where the catalog does not answer, and from a process of an earlier version.
	Failover *LocationFailover `json:"failover,omitempty"`
	// Alarms counts the stream alarms this location raised, by reason. AlarmsRaised is when the last one was, absent from a
	// process of an earlier version.
	Alarms       map[string]uint64 `json:"alarms"`
	AlarmsRaised map[string]Time   `json:"alarms_raised,omitempty"`
	// Warnings are sentences for people: what a single fault could take, and what the
	// document lacks. Absent without warnings.
	Warnings []string `json:"warnings,omitempty"`
}

// Node is one node. A node that does not run has no Replicas, because its stores are not read.
type Node struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// OutOfService says why a node failed, and what to do, in one line. Absent for any other state.
	OutOfService string `json:"out_of_service,omitempty"`
	// Level is the highest feature level that its program knows; absent if it does not run, or knows of none.
	Level uint32 `json:"level,omitempty"`
	// DiskFull: the node runs but takes no writes, because its disk is full; reads go on. Absent
	// if not so or not known.
	DiskFull bool `json:"disk_full,omitempty"`
	// SetAsideBytes is the size of damaged stores that were set aside in the node's folder. Absent without any.
	SetAsideBytes int64 `json:"set_aside_bytes,omitempty"`
	// ClockOff says by how much the node's wall clock is off, if it keeps the node from taking
	// writes as a leader. Absent otherwise.
	ClockOff string `json:"clock_off,omitempty"`
	// Version is that of the program that runs the node, UptimeSeconds how long its process has run. Both are absent from a
	// process of an earlier version; so are the fields below.
	Version       string  `json:"version,omitempty"`
	UptimeSeconds float64 `json:"uptime_seconds,omitempty"`
	// DiskBytes is the size of the disk of the node's folder, DiskFreeBytes what is free there. Absent if not known.
	DiskBytes     uint64 `json:"disk_bytes,omitempty"`
	DiskFreeBytes uint64 `json:"disk_free_bytes,omitempty"`
	// ClockAheadSeconds is how far its wall clock is ahead of that of the node of the stamp that it differs from most; below
	// zero it is behind. Absent until another clock is measured.
	ClockAheadSeconds *float64 `json:"clock_ahead_seconds,omitempty"`
	// CertificateEnds is when its certificate expires. Absent without one.
	CertificateEnds Time `json:"certificate_ends,omitzero"`
	// LeaseSeconds is for how long its lease from the witness holds, 0 for none. Absent without a witness.
	LeaseSeconds *float64  `json:"lease_seconds,omitempty"`
	Replicas     []Replica `json:"replicas"`
}

// Replica is one range's copy on one node.
type Replica struct {
	Range   geo.RangeID `json:"range"`
	Service string      `json:"service"`
	Leader  bool        `json:"leader"`
	// InSync is the leader's view; false while the range has no leader.
	InSync bool `json:"in_sync"`
	// Lost is why the replica takes no part until it is rebuilt, in one line. Absent if it takes part.
	Lost string `json:"lost,omitempty"`
	// AppliedIndex is the commit index applied, DurableIndex how much of that a
	// crash would leave applied. The log holds the rest.
	AppliedIndex uint64 `json:"applied_index"`
	DurableIndex uint64 `json:"durable_index"`
	LogBytes     uint64 `json:"log_bytes"`
	// ReplayedEntries of the LoggedEntriesAtStart found in the log were applied
	// again when the node started.
	ReplayedEntries      uint64 `json:"replayed_entries"`
	LoggedEntriesAtStart uint64 `json:"logged_entries_at_start"`
}

// Range is one Raft group of the location.
type Range struct {
	Range              geo.RangeID `json:"range"`
	Service            string      `json:"service"`
	ConfiguredReplicas int         `json:"configured_replicas"`
	// Electing reports, while there is no leader, whether one is to be expected: every replica that answers knew one until
	// moments ago, and requests wait. False: they are refused without a wait. Nil, and absent, while there is a leader,
	// where no replica answers, and from a process of an earlier version.
	Electing *bool `json:"electing,omitempty"`
	// LeaderView is nil, and its fields are absent, while there is no leader.
	*LeaderView
}

// LeaderView is what only a range's leader knows.
type LeaderView struct {
	// Leader is the leader's node.
	Leader         string `json:"leader"`
	InSyncReplicas int    `json:"in_sync_replicas"`
	// Standings are all voters as the leader counts them.
	Standings []Standing `json:"standings"`
	// The backlog is what the other location has not acknowledged, its payload that of the chunks that it
	// names. Its age is the age of the oldest record, zero without a record.
	BacklogRecords      int64   `json:"backlog_records"`
	BacklogBytes        int64   `json:"backlog_bytes"`
	BacklogPayloadBytes int64   `json:"backlog_payload_bytes"`
	BacklogAgeSeconds   float64 `json:"backlog_age_seconds"`
}

// Standing is whether a range's leader counts a replica in sync.
type Standing struct {
	Node   string `json:"node"`
	InSync bool   `json:"in_sync"`
	// Since is when that began; at the earliest when the leader began to lead.
	Since Time `json:"since"`
}

// AccountStatus is an account and how far its secondary is.
type AccountStatus struct {
	Account
	// Services is empty where the answering port cannot know: the secondary
	// location computes it, and a port of the primary location alone does not ask.
	Services []ServiceStatus `json:"services"`
	// FormerEpoch is the earlier epoch in which the other location still has the account as its primary and does not know of the
	// present one. Location.Epochs shows whether it takes writes. Absent otherwise, and where a port shows one location alone.
	FormerEpoch *Epoch `json:"former_epoch,omitempty"`
}

// ServiceStatus is the replication of one service of an account.
type ServiceStatus struct {
	Service string            `json:"service"`
	Status  ReplicationStatus `json:"status"`
	// Reason says why Status is Unavailable: forked, lost, poison, version, clock, behind-outbox,
	// bootstrap or not-heard. Absent otherwise.
	Reason string `json:"reason,omitempty"`
	// LastSyncTime: every change committed at or before it is readable at the
	// secondary. Zero, and absent, when unknown. It may stand, as the last value
	// that held, beside Unavailable (R18).
	LastSyncTime Time `json:"last_sync_time,omitzero"`
	// LagSeconds is the age of LastSyncTime when the document was made; absent with it.
	LagSeconds *float64 `json:"lag_seconds,omitempty"`
	// StreamsBehind counts the streams known to hold changes not yet applied.
	StreamsBehind int `json:"streams_behind"`
}

// Readiness is the answer of GET /readyz.
type Readiness struct {
	Ready     bool                `json:"ready"`
	Locations []LocationReadiness `json:"locations"`
}

// LocationReadiness is one location's part of it.
type LocationReadiness struct {
	Name geo.Location `json:"name"`
	// State is that of the location, or of the node whose port is asked.
	State State `json:"state,omitempty"`
	Ready bool  `json:"ready"`
	// Serving: every range has a leader and takes writes. A location that serves is not
	// ready before the statistics of all accounts that have their secondary there are live.
	Serving bool `json:"serving"`
	// Reason says why it is not ready; empty when it is.
	Reason string `json:"reason,omitempty"`
}

// Changed is the answer of the operations that start and stop nodes and locations.
type Changed struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Waiting is what the location still waits for before it serves; empty where it does,
	// and after a stop. The start goes on: see Client.Readiness.
	Waiting string `json:"waiting,omitempty"`
}

// Delay is the body of POST /v1/link/delay.
type Delay struct {
	Seconds float64 `json:"seconds"`
}

// timeLayout has the seven digits of a commit time's 100 ns ticks.
const timeLayout = "2006-01-02T15:04:05.0000000Z"

// Time is an instant written as RFC 3339 in UTC with seven digits of fraction,
// rounded down. Readers take any RFC 3339 time.
type Time struct{ time.Time }

// MarshalJSON writes the instant.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"` + timeLayout + `"`)), nil
}

// NodeName is a node's name in this protocol: location-number.
func NodeName(l geo.Location, id geo.NodeID) string { return fmt.Sprintf("%s-%d", l, id) }

// CodeNoNode is the code of a refusal because there is no such node.
const CodeNoNode = "NodeNotFound"

// NoNode refuses an operation on a node that does not exist.
func NoNode(l geo.Location, id geo.NodeID) *Error {
	return &Error{Status: http.StatusNotFound, Code: CodeNoNode, Message: "could not find node " + NodeName(l, id) +
		": there is none: antipodectl status shows the nodes that there are"}
}

// ParseNodeName is the inverse of NodeName. A location may hold dashes itself.
func ParseNodeName(name string) (geo.Location, geo.NodeID, error) {
	i := strings.LastIndexByte(name, '-')
	if i > 0 {
		id, err := strconv.ParseUint(name[i+1:], 10, 64)
		if err == nil && id > 0 && NodeName(geo.Location(name[:i]), geo.NodeID(id)) == name {
			return geo.Location(name[:i]), geo.NodeID(id), nil
		}
	}
	return "", 0, fmt.Errorf("%q is no node: nodes are named location-number, such as northcentralus-1", name)
}
