package docs_test

import (
	"path"
	"slices"
	"strings"
)

// room is a part of the house with one list of imports: one package or several.
//
// To add a package, add a line to rooms, or its name to order if the room has a whole folder, and run
// `go test ./docs -run House -args -rewrite`.
type room struct {
	name  string
	floor int
	// holds are the packages: "geo" is one, "client/*" each directly below, "stamp/**" all below that no
	// other room names. A path that ends in .go is one file.
	holds string
	// imports are what the packages may import beside the standard library, packages of this module without
	// "antipode/". One that ends in /* also stands for all packages below it. Rooms without a list are free.
	imports string
}

// vocabulary is what most rooms may import.
const vocabulary = "geo internal/clock internal/crc internal/plantedbugs "

// What the roles and the front end see of the services and of a stamp.
const (
	content  = "services/* stamp/* "
	accounts = "services/catalog services/storageerr stamp/* "
	handlers = vocabulary + "api/* services/* stats stamp/extent stamp/keys stamp/kv stamp/ranges stamp/route "
)

// rooms are the house of DESIGN section 8, lowest floor first. Two rooms of one floor may import each other where
// their lists permit it, but folders never in a circle.
var rooms = []room{
	{"geo", 0, "geo internal/plantedbugs internal/crc internal/malloc internal/hosts", "std"},
	{"clock", 0, "internal/clock", "golang.org/x/sys/unix"},
	{"identity", 0, "internal/identity", "geo internal/clock"},
	{"outbound", 0, "internal/outbound", "geo internal/clock"},
	{"client", 0, "client/*", "geo client/*"},
	{"client-check", 0, "client/check", "client/admin geo"},
	{"client-command", 0, "client/command", "github.com/spf13/cobra"},
	{"client-dashboards", 0, "client/dashboards", "internal/hosts github.com/grafana/grafana-foundation-sdk/go " +
		"github.com/prometheus/client_golang/api github.com/prometheus/common/model gonum.org/v1/plot"},
	{"client-policies", 0, "client", "geo internal/clock github.com/Azure/azure-sdk-for-go/sdk/azcore"},

	// A node takes its transport as an interface.
	{"stamp", 1, "stamp/**", vocabulary + "internal/malloc stamp/change/* stamp/cursor/* stamp/durable/* " +
		"stamp/extent/* stamp/feature/* stamp/fetch/* stamp/keys/* stamp/kv/* stamp/membership/* stamp/node/* " +
		"stamp/outbox/* stamp/ranges/* stamp/rawfile/* stamp/replica/* stamp/room/* stamp/route/* stamp/scrub/* " +
		"stamp/seglog/* stamp/skew/* stamp/snapshot/* stamp/state/* github.com/cespare/xxhash/v2 " +
		"github.com/cockroachdb/pebble/v2 github.com/prometheus/client_golang/prometheus go.etcd.io/raft/v3 " +
		"golang.org/x/sync golang.org/x/sys/unix google.golang.org/protobuf/proto"},
	{"transport", 1, "stamp/transport/**", "geo internal/clock internal/identity stamp/* go.etcd.io/raft/v3 " +
		"github.com/prometheus/client_golang/prometheus golang.org/x/sync google.golang.org/grpc google.golang.org/protobuf"},
	{"location", 1, "stamp", "geo internal/clock stamp/* github.com/prometheus/client_golang/prometheus"},

	{"services", 2, "services/**", "geo internal/clock internal/plantedbugs services/* stamp/change stamp/extent " +
		"stamp/feature stamp/keys stamp/kv"},
	// They read and write several partitions for one call, which may be in several ranges.
	{"queues-service", 2, "services/queues/service.go services/queues/keeper.go services/queues/walk.go", "geo " +
		"internal/clock services services/storageerr stamp/change stamp/keys stamp/kv stamp/ranges stamp/route"},
	{"bus", 2, "replication/bus/**", "geo internal/clock replication/bus/* github.com/nats-io"},
	{"replication", 2, "replication/**", vocabulary + "replication/* stamp/change stamp/cursor stamp/extent stamp/kv " +
		"stamp/outbox stamp/ranges stamp/skew golang.org/x/sync google.golang.org/protobuf"},
	// The switch sees nothing of what crosses it, and payload nothing of the other calls.
	{"link", 2, "replication/link", "geo replication/bus"},
	{"payload", 2, "replication/payload", "internal/clock replication/link replication/pace replication/ship " +
		"stamp/extent golang.org/x/sync"},
	{"verify", 2, "replication/verify", "geo internal/clock internal/plantedbugs stamp/change stamp/extent stamp/keys " +
		"stamp/kv github.com/cespare/xxhash/v2 golang.org/x/sync"},
	{"stats", 2, "stats", "geo internal/plantedbugs stamp/change stamp/cursor stamp/keys stamp/outbox stamp/route"},

	// The roles do not see each other, and the write role does not see the stream.
	{"primary", 3, "primary", vocabulary + content},
	{"secondary", 3, "secondary", vocabulary + content + "replication/receive"},
	// The directory stands above its parts, which never import it.
	{"record", 3, "directory/record", vocabulary + accounts},
	{"batch", 3, "directory/batch", "geo directory/record replication/link stamp/ranges"},
	{"rejoin", 3, "failover/rejoin", vocabulary + accounts + "directory/record services/blobs"},
	{"unplanned", 3, "failover/unplanned", vocabulary + accounts + "directory/record"},
	{"planned", 3, "failover/planned", vocabulary + accounts + "directory/record directory/batch failover/rejoin " +
		"replication/link"},
	{"bootstrap", 3, "replication/bootstrap", vocabulary + accounts + "directory/record replication/verify " +
		"services/blobs"},
	{"directory", 3, "directory", vocabulary + content + "directory/* failover/planned failover/rejoin " +
		"failover/unplanned replication/bootstrap replication/link"},

	{"metrics", 4, "metrics", "geo github.com/prometheus"},
	{"dns", 4, "failover/dns", "geo internal/clock internal/crc internal/identity services/catalog stamp/durable " +
		"github.com/cockroachdb/pebble/v2/vfs$ github.com/miekg/dns$ golang.org/x/sync"},
	{"confirm", 4, "failover/confirm", "geo failover/witness replication/link stamp/ranges"},
	{"witness", 4, "failover/witness", "geo internal/clock internal/identity internal/plantedbugs stamp/durable " +
		"github.com/cockroachdb/pebble/v2/vfs"},

	// The front end does not see the stream, nor the types that do the work.
	{"api", 5, "api/**", handlers + "github.com/minio/crc64nvme golang.org/x/sync"},
	{"api-request", 5, "api", handlers + "internal/hosts internal/outbound github.com/labstack/echo/v4"},
	{"api-admin", 5, "api/admin", "client/admin geo internal/hosts metrics services/storageerr " +
		"github.com/labstack/echo/v4 github.com/prometheus"},

	{"server", 6, "server/**", content + "geo internal/* replication/* stats primary secondary directory/* failover/* " +
		"metrics api/* client/admin server/* github.com/cockroachdb/pebble/v2/vfs$ " +
		"github.com/prometheus/client_golang/prometheus golang.org/x/sync golang.org/x/sys/unix"},
	{"config", 6, "server/config", "geo internal/identity internal/outbound go.yaml.in/yaml/v3"},
	{"cluster", 6, "server/cluster", "geo internal/clock internal/identity api/admin client/admin server/* " +
		"go.yaml.in/yaml/v3"},
	{"support", 6, "server/support", "client/admin github.com/prometheus/client_golang/prometheus " +
		"github.com/prometheus/common/expfmt go.yaml.in/yaml/v3"},

	{"inspect", 7, "inspect", vocabulary + content + "stats github.com/cockroachdb/pebble/v2 go.etcd.io/raft/v3 " +
		"google.golang.org/protobuf/proto"},
	{"sim", 7, "sim", vocabulary + content + "client/admin internal/identity replication/* stats primary secondary " +
		"directory/* failover/* server/flow github.com/cespare/xxhash/v2 github.com/cockroachdb/pebble/v2 " +
		"go.etcd.io/raft/v3 google.golang.org/protobuf/proto"},
	{"antipode", 7, "cmd/antipode", "client/admin client/command geo inspect internal/* server/* " +
		"github.com/cockroachdb/pebble/v2/vfs github.com/spf13/cobra golang.org/x/sys/unix"},
	{"antipodectl", 7, "cmd/antipodectl", "client/admin client/check client/command client/drill client/dashboards geo " +
		"internal/clock internal/hosts github.com/prometheus/client_golang/api github.com/spf13/cobra " +
		"github.com/Azure/azure-sdk-for-go/sdk/azcore github.com/Azure/azure-sdk-for-go/sdk/data/aztables " +
		"golang.org/x/sys/unix$"},
	{"free", 7, "bench/** test/** docs/**", ""},
}

// order are the packages below a folder whose packages share a floor, lowest first: each imports only those before it.
// "." is the folder itself.
var order = map[string][]string{
	"stamp": strings.Fields("kv keys route rawfile durable feature extent change cursor outbox state seglog room replica " +
		"skew fetch ranges membership snapshot scrub node memtransport transport ."),
	"server": strings.Fields("progress notices config listen support flow clone location operator epochs gateway " +
		"nameserver node witness dev cluster"),
}

// packages are the paths in holds that are no single files.
func (r room) packages() []string {
	return slices.DeleteFunc(strings.Fields(r.holds), func(p string) bool { return path.Ext(p) == ".go" })
}

// match returns how well a pattern of holds fits a package: the length of what fits, or -1.
func match(pattern, pkg string) int {
	if base, all := strings.CutSuffix(pattern, "/**"); all && (pkg == base || strings.HasPrefix(pkg, base+"/")) {
		return len(base)
	}
	if base, each := strings.CutSuffix(pattern, "/*"); each && path.Dir(pkg) == base {
		return len(base)
	}
	if pattern == pkg {
		return len(pkg) + 1
	}
	return -1
}

// roomWith returns the room of a package; ok is false if none holds it.
func roomWith(pkg string) (found room, ok bool) {
	best := -1
	for _, r := range rooms {
		for _, pattern := range r.packages() {
			if m := match(pattern, pkg); m > best {
				best, found = m, r
			}
		}
	}
	return found, best >= 0
}
