package conformance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/server/dev"
	"antipode/test/devproc"
)

// The accounts: the cases are spread over one with its primary in each location, and the third has
// the tables of one case alone, since that lists them all. All have the same two keys.
const (
	northAccount = "northacct"
	southAccount = "southacct"
	listAccount  = "listacct"
)

const (
	// latest is the version of a request that a case says nothing else of.
	latest = "2019-02-02"
	// waitMax bounds a wait for a condition. It is no measure of anything: a starved machine is slow.
	waitMax = time.Minute
	// pollEvery is the pause between two looks at a condition.
	pollEvery = 5 * time.Millisecond
)

// suite is a cluster of two locations under test.
type suite struct {
	cluster *dev.Cluster
	options dev.ClusterOptions
	host    string // of the gateway's tables, with its port
	http    *http.Client
	// before is what the two cases of a restart did before it.
	before earlier
}

// newSuite starts a cluster in which the name of a deleted table rests for an hour, lets the cases
// of a restart begin, and starts it again on the same folder without a rest.
func newSuite(t *testing.T) *suite {
	base, err := devproc.FreePortBase(t)
	require.NoError(t, err)
	s := &suite{http: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	// The nodes tick as those of antipode dev: quicker elections depose leaders of a busy machine, and
	// a write that this cuts off has no known outcome.
	s.options = dev.ClusterOptions{
		Dir: t.TempDir(), Host: "127.0.0.1", PortBase: base, Zones: []geo.Zone{geo.LocalZone}, NameRest: time.Hour,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	s.host = dev.Ports{Host: s.options.Host, Base: base}.Of(geo.Table)
	t.Cleanup(func() {
		s.http.CloseIdleConnections()
		if s.cluster != nil {
			require.NoError(t, s.cluster.Close())
		}
	})
	s.start(t)
	s.before = s.begin(t)
	s.http.CloseIdleConnections()
	require.NoError(t, s.cluster.Close())
	s.cluster, s.options.NameRest = nil, 0
	s.start(t)
	return s
}

func (s *suite) start(t *testing.T) {
	t.Helper()
	var err error
	s.cluster, err = dev.Open(s.options)
	require.NoError(t, err)
	require.NoError(t, s.cluster.Start(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), waitMax)
	defer cancel()
	for account, l := range map[geo.Account]geo.Location{northAccount: dev.North, listAccount: dev.North, southAccount: dev.South} {
		require.NoError(t, s.cluster.EnsureAccount(ctx, l, account, firstKey(), secondKey()))
		_, err := s.cluster.WaitLive(ctx, account)
		require.NoError(t, err)
	}
}

func firstKey() []byte { return bytes.Repeat([]byte("k"), 64) }

func secondKey() []byte { return bytes.Repeat([]byte("2"), 64) }

// rig is a case under way.
type rig struct {
	*testing.T
	suite   *suite
	account string
	table   string // the case's own
	secret  []byte // the key that signs
	made    bool
}

// zoneHost is the name of the zone of accounts, with the port.
func (s *suite) zoneHost() string {
	_, port, _ := strings.Cut(s.host, ":")
	return string(geo.LocalZone) + ":" + port
}

// rig returns that of a case. Cases with an odd number have their primary in the north.
func (s *suite) rig(t *testing.T, number int) *rig {
	account := southAccount
	if number%2 == 1 {
		account = northAccount
	}
	return &rig{T: t, suite: s, account: account, table: fmt.Sprintf("Case%02d", number), secret: firstKey()}
}

// base is the {base} of the primary, and of the secondary.
func (r *rig) base() string { return "http://" + r.suite.host + "/" + r.account + "/" }

func (r *rig) secondaryBase() string {
	return "http://" + r.suite.host + "/" + r.account + geo.SecondarySuffix + "/"
}

// create creates the table of the case.
func (r *rig) create() {
	r.Helper()
	r.do("POST", "/Tables", `{"TableName":"`+r.table+`"}`).is(http.StatusCreated)
	r.made = true
}

// settled requires that the whole table becomes the same at the secondary, if it was created.
func (r *rig) settled() {
	r.Helper()
	if r.made {
		r.read("/" + r.table + "()?$top=1000").is(http.StatusOK)
	}
}

// path is the path of an entity in the table of the case. pk and rk are as they stand in a URL.
func (r *rig) path(pk, rk string) string {
	return fmt.Sprintf("/%s(PartitionKey='%s',RowKey='%s')", r.table, pk, rk)
}

// filtered is the query of the table by a filter, in which blanks become %20.
func (r *rig) filtered(filter string) string {
	return "/" + r.table + "()?$filter=" + escape(filter)
}

// escape percent-encodes what may not stand in a query.
func escape(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"#%&+<>\^{|}`, c) >= 0 || c == '`' {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
