package dns

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	msg "github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/catalog"
)

// show writes a reply on lines: the code, and each record with its section.
func show(r reply) string {
	lines := []string{msg.RcodeToString[r.code]}
	for i, section := range [][]msg.RR{r.answer, r.authority, r.additional} {
		for _, rr := range section {
			lines = append(lines, string("=!+"[i])+" "+strings.Join(strings.Fields(rr.String()), " "))
		}
	}
	return strings.Join(lines, "\n")
}

const (
	soaLine = "storage.test. 5 IN SOA ns1.storage.test. hostmaster.storage.test. 6 60 10 86400 5"
	noName  = "NXDOMAIN\n! " + soaLine
	noData  = "NOERROR\n! " + soaLine
	refused = "REFUSED"
)

// The answer to each question (table), by RFC 1034 4.3.2. RFC 2308: a name that does not exist, and one without the
// type, have the SOA record. RFC 4592 2.2.2: a name with names below it exists. RFC 2181 10.1: nothing stands
// beside a CNAME. RFC 8482: one record answers any type. The zone is authoritative for nothing else.
func TestAnswer(t *testing.T) {
	z, v := newZone(t), filled(t)
	const cname = "NOERROR\n= pictures.blob.storage.test. 5 IN CNAME blob.north.store.storage.test."
	for question, want := range map[string]string{
		"pictures.blob.storage.test. A":                    cname + "\n= blob.north.store.storage.test. 5 IN A 192.0.2.1\n= blob.north.store.storage.test. 5 IN A 192.0.2.2",
		"pictures.blob.storage.test. AAAA":                 cname + "\n= blob.north.store.storage.test. 5 IN AAAA 2001:db8::1",
		"pictures.blob.storage.test. CNAME":                cname,
		"pictures.blob.storage.test. ANY":                  cname,
		"pictures.blob.storage.test. TXT":                  cname + "\n! " + soaLine,
		"pictures.blob.storage.test. HTTPS":                cname + "\n! " + soaLine,
		"pictures-secondary.table.storage.test. A":         "NOERROR\n= pictures-secondary.table.storage.test. 5 IN CNAME table.south.store.storage.test.\n= table.south.store.storage.test. 5 IN A 198.51.100.1",
		"pictures-secondary.table.storage.test. AAAA":      "NOERROR\n= pictures-secondary.table.storage.test. 5 IN CNAME table.south.store.storage.test.\n! " + soaLine,
		"_epoch.pictures.queue.storage.test. TXT":          "NOERROR\n= _epoch.pictures.queue.storage.test. 5 IN TXT \"v=antipode1 epoch=3@north location=north role=primary secondary=south\"",
		"_epoch.pictures.queue.storage.test. ANY":          "NOERROR\n= _epoch.pictures.queue.storage.test. 5 IN TXT \"v=antipode1 epoch=3@north location=north role=primary secondary=south\"",
		"_epoch.pictures.queue.storage.test. A":            noData,
		"_epoch.pictures-secondary.blob.storage.test. TXT": "NOERROR\n= _epoch.pictures-secondary.blob.storage.test. 5 IN TXT \"v=antipode1 epoch=3@north location=south role=secondary\"",

		// A clone is at the secondary, which need not be readable, and has no epoch.
		"pictures-drill.blob.storage.test. CNAME":       "NOERROR\n= pictures-drill.blob.storage.test. 5 IN CNAME blob.south.store.storage.test.",
		"mail-drill.blob.storage.test. CNAME":           "NOERROR\n= mail-drill.blob.storage.test. 5 IN CNAME blob.north.store.storage.test.",
		"alone-drill.blob.storage.test. A":              noName,
		"pictures-drill-secondary.blob.storage.test. A": noName,
		"pictures-secondary-drill.blob.storage.test. A": noName,
		"_epoch.pictures-drill.blob.storage.test. TXT":  noName,

		// The secondary of GRS cannot be read, LRS has none, and what is no account is none.
		"mail.blob.storage.test. CNAME":                "NOERROR\n= mail.blob.storage.test. 5 IN CNAME blob.south.store.storage.test.",
		"mail-secondary.blob.storage.test. A":          noName,
		"_epoch.mail-secondary.blob.storage.test. TXT": noName,
		"alone-secondary.blob.storage.test. A":         noName,
		"nobody.blob.storage.test. A":                  noName,
		"_epoch.nobody.blob.storage.test. TXT":         noName,
		"ab.blob.storage.test. A":                      noName,
		"pictures.file.storage.test. A":                noName,
		"pictures.catalog.storage.test. A":             noName,
		"pictures.storage.test. A":                     noName,
		"x.pictures.blob.storage.test. A":              noName,
		"_epoch._epoch.pictures.blob.storage.test. A":  noName,
		"pictures\\.blob.storage.test. A":              noName,
		"*.blob.storage.test. A":                       noName,

		// Names with names below them, and the zone.
		"blob.storage.test. A":                noData,
		"store.storage.test. TXT":             noData,
		"north.store.storage.test. A":         noData,
		"east.store.storage.test. A":          noName,
		"b.storage.test. A":                   noData,
		"storage.test. A":                     noData,
		"storage.test. SOA":                   "NOERROR\n= " + soaLine,
		"storage.test. ANY":                   "NOERROR\n= " + soaLine,
		"storage.test. NS":                    "NOERROR\n= storage.test. 5 IN NS ns1.storage.test.\n= storage.test. 5 IN NS ns.b.storage.test.\n= storage.test. 5 IN NS ns.elsewhere.example.\n+ ns1.storage.test. 5 IN A 192.0.2.53\n+ ns1.storage.test. 5 IN AAAA 2001:db8::53\n+ ns.b.storage.test. 5 IN A 192.0.2.54",
		"ns1.storage.test. AAAA":              "NOERROR\n= ns1.storage.test. 5 IN AAAA 2001:db8::53",
		"ns1.storage.test. TXT":               noData,
		"blob.north.store.storage.test. A":    "NOERROR\n= blob.north.store.storage.test. 5 IN A 192.0.2.1\n= blob.north.store.storage.test. 5 IN A 192.0.2.2",
		"catalog.north.store.storage.test. A": noName,
		"blob.north.store.storage.test. NS":   noData,

		// Not this zone, not a question for one name.
		"storage.example. A":               refused,
		"test. SOA":                        refused,
		". NS":                             refused,
		"notstorage.test. A":               refused,
		"storage.test. AXFR":               refused,
		"storage.test. IXFR":               refused,
		"pictures.blob.storage.test. TKEY": refused,
		"ns.elsewhere.example. A":          refused,
	} {
		name, kind, _ := strings.Cut(question, " ")
		require.Equal(t, want, show(z.answer(v, msg.Question{Name: name, Qtype: msg.StringToType[kind], Qclass: msg.ClassINET})), question)
	}
	for _, class := range []uint16{msg.ClassCHAOS, msg.ClassANY, msg.ClassNONE} {
		require.Equal(t, refused, show(z.answer(v, msg.Question{Name: "pictures.blob.storage.test.", Qtype: msg.TypeA, Qclass: class})))
	}
}

// Names are compared without case, and the answer has the case of the question.
func TestAnswerCase(t *testing.T) {
	z, v := newZone(t), filled(t)
	ask := func(name string, kind uint16) string {
		return show(z.answer(v, msg.Question{Name: name, Qtype: kind, Qclass: msg.ClassINET}))
	}
	require.Equal(t, "NOERROR\n= PicTures.BLOB.storage.TEST. 5 IN CNAME blob.north.store.storage.test.", ask("PicTures.BLOB.storage.TEST.", msg.TypeCNAME))
	require.Contains(t, ask("_EPOCH.pictures-SECONDARY.blob.storage.test.", msg.TypeTXT), "= _EPOCH.pictures-SECONDARY.blob.storage.test. 5 IN TXT")
	require.Equal(t, "NOERROR\n= STORAGE.test."+strings.TrimPrefix(soaLine, "storage.test."), ask("STORAGE.test.", msg.TypeSOA))
	require.Contains(t, ask("NS1.storage.test.", msg.TypeA), "= NS1.storage.test. 5 IN A")
}

// A move changes what the names lead to, and the serial; the former answer is gone at once.
func TestAnswerAfterMove(t *testing.T) {
	z, v := newZone(t), filled(t)
	require.NoError(t, v.Merge(south, []Entry{in("pictures", 4, south, catalog.RAGRS)}))
	ask := func(name string) string {
		return show(z.answer(v, msg.Question{Name: name, Qtype: msg.TypeCNAME, Qclass: msg.ClassINET}))
	}
	require.Contains(t, ask("pictures.blob.storage.test."), "CNAME blob.south.store.storage.test.")
	require.Contains(t, ask("pictures-secondary.blob.storage.test."), "CNAME blob.north.store.storage.test.")
	require.Equal(t, uint32(7), v.Serial())
}

// What is not known is not denied: an empty view fails until a stamp or a file has said what there is, and so does a
// location without addresses.
func TestAnswerUnknown(t *testing.T) {
	z, v := newZone(t), openView(t, vfs.NewMem())
	ask := func(name string) string {
		return show(z.answer(v, msg.Question{Name: name, Qtype: msg.TypeA, Qclass: msg.ClassINET}))
	}
	require.Equal(t, "SERVFAIL", ask("pictures.blob.storage.test."))
	require.Contains(t, ask("pictures.file.storage.test."), "NXDOMAIN", "no account has that name")
	require.NoError(t, v.Merge(north, []Entry{{Account: "far", Epoch: geo.Epoch{Number: 1, Location: "east"}, Redundancy: catalog.LRS}}))
	require.Contains(t, ask("pictures.blob.storage.test."), "NXDOMAIN")
	require.Equal(t, "SERVFAIL", ask("far.blob.storage.test."))
}

// Options that cannot be are refused, each with what is wrong (table).
func TestNewZone(t *testing.T) {
	for want, change := range map[string]func(o *ZoneOptions){
		`zone "a..b"`:                func(o *ZoneOptions) { o.Origin = "a..b" },
		"170 bytes at most":          func(o *ZoneOptions) { o.Origin = geo.Zone(strings.Repeat("abcdefghi.", 18) + "x") },
		"ttl 1ms":                    func(o *ZoneOptions) { o.TTL = 1e6 },
		"ttl 2h":                     func(o *ZoneOptions) { o.TTL = 72e11 },
		`name server "-x"`:           func(o *ZoneOptions) { o.Servers = []Host{{Name: "-x"}} },
		`name server "storage.test"`: func(o *ZoneOptions) { o.Servers = []Host{{Name: "storage.test"}} },
		"are for accounts":           func(o *ZoneOptions) { o.Servers = []Host{{Name: "ns.store.storage.test"}} },
		"locations are missing":      func(o *ZoneOptions) { o.Locations = nil },
		`location "North"`:           func(o *ZoneOptions) { o.Locations[0].Location = "North" },
		"location south: want":       func(o *ZoneOptions) { o.Locations[0].Location = south },
		"location north: want it":    func(o *ZoneOptions) { o.Locations[0].Addresses = nil },
	} {
		o := zoneOptions()
		change(&o)
		_, err := NewZone(o)
		require.ErrorContains(t, err, want)
	}
	z, err := NewZone(ZoneOptions{Origin: "Storage.Test", Locations: zoneOptions().Locations})
	require.NoError(t, err)
	require.Contains(t, z.soa(1).String(), "ns.storage.test. hostmaster.storage.test.")
}

// Any name is parsed, and what is an account is named so again; the longest names of all kinds are DNS names.
func FuzzParseName(f *testing.F) {
	for _, name := range []string{
		"pictures.blob.storage.test.", "_epoch.pictures-secondary.table.storage.test.", "queue.north.store.storage.test.", "storage.test.", ".", "\\.storage.test.",
		"pictures-drill.blob.storage.test.", "_epoch.pictures-drill.blob.storage.test.", "a\\046b.blob.storage.test.", "..storage.test.", "PICTURES.Blob.storage.test.",
	} {
		f.Add(name)
	}
	z := newZone(f)
	f.Fuzz(func(t *testing.T, name string) {
		n := z.parse(name)
		again := ""
		switch n.kind {
		case alias, epoch:
			require.True(t, n.account.Valid())
			account := n.account
			if n.clone {
				account += geo.CloneSuffix
			}
			if again = z.aliasName(account, n.service, n.secondary); n.kind == epoch {
				again = epochName(again)
			}
		case place:
			again = z.placeName(n.service, n.location)
		case server:
			again = n.host.name
		default:
			return
		}
		require.Equal(t, again, msg.CanonicalName(name))
		require.Equal(t, n, z.parse(again))
	})
}

func TestLongestNames(t *testing.T) {
	o := zoneOptions()
	o.Origin = geo.Zone(strings.Repeat(strings.Repeat("z", 33)+".", 5) + "tests")[:originMax]
	o.Origin = geo.Zone(strings.TrimSuffix(string(o.Origin), "."))
	long := geo.Location(strings.Repeat("l", 63))
	o.Servers, o.Locations = nil, []Place{{long, addrs("192.0.2.1")}}
	z, err := NewZone(o)
	require.NoError(t, err)
	account := geo.Account(strings.Repeat("a", 24))
	for _, name := range []string{epochName(z.aliasName(account, geo.Table, true)), z.placeName(geo.Table, long)} {
		_, ok := msg.IsDomainName(name)
		require.True(t, ok, "%d bytes", len(name))
		require.NotEqual(t, absent, z.parse(name).kind)
	}
}
