package auth

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/geo"
)

// sasVector is a shared access signature of protocol/auth.md 25. The query is without sig.
type sasVector struct {
	name    string
	service geo.Service
	on      Resource
	query   string
	sts     string
	sig     string
}

const (
	sasTimes   = "st=2024-01-02T03:04:05Z&se=2034-01-02T03:04:05Z"
	sasTimeSts = "2024-01-02T03:04:05Z\n2034-01-02T03:04:05Z\n"
)

var sasVectors = []sasVector{
	{
		"10", geo.Blob,
		Resource{},
		"sv=2024-08-04&ss=b&srt=sco&sp=rwdlacup&" + sasTimes + "&spr=https,http",
		"devstoreaccount1\nrwdlacup\nb\nsco\n" + sasTimeSts + "\nhttps,http\n2024-08-04\n\n", "JUaneDK2XD6seIxDq56rd822tuutwy2QkeItj/RL5Jk=",
	},
	{
		"11", geo.Table,
		Resource{"T", ""},
		"sv=2019-02-02&ss=bqt&srt=sco&sp=rl&" + sasTimes + "&sip=10.0.0.1-10.0.0.9&spr=https",
		"devstoreaccount1\nrl\nbqt\nsco\n" + sasTimeSts + "10.0.0.1-10.0.0.9\nhttps\n2019-02-02\n", "U3cvXZ07Oqo+h6ZSMa2KHYnX+WWfV/tnROsfd/GMeQA=",
	},
	{
		"12a", geo.Queue,
		Resource{"myqueue", ""},
		"sv=2020-02-10&sp=raup&" + sasTimes,
		"raup\n" + sasTimeSts + "/queue/devstoreaccount1/myqueue\n\n\n\n2020-02-10", "fnhgyZWuIXJstV1qlH35erQHQrJ7WEPPZnE9arxN2Bw=",
	},
	{
		"12b", geo.Queue,
		Resource{"myqueue", ""},
		"sv=2013-08-15&sp=raup&" + sasTimes,
		"raup\n" + sasTimeSts + "/devstoreaccount1/myqueue\n\n2013-08-15", "ZNpYcz84wOSvvrkmuB5EfcuySPTRYVf18xDDUausBw4=",
	},
	{
		"13a", geo.Blob,
		Resource{"mycontainer", "dir/a b.txt"},
		"sv=2024-08-04&sr=b&sp=racwd&" + sasTimes + "&spr=https&rsct=text/plain",
		"racwd\n" + sasTimeSts + "/blob/devstoreaccount1/mycontainer/dir/a b.txt\n\n\nhttps\n2024-08-04\nb\n\n\n\n\n\n\ntext/plain",
		"vsNEBy0Taj/FdHh7zVNb3LoM6RSLTPPkuddm+VfYmpM=",
	},
	{
		"13b", geo.Blob,
		Resource{"mycontainer", "any"},
		"sv=2024-08-04&sr=c&si=policy1",
		"\n\n\n/blob/devstoreaccount1/mycontainer\npolicy1\n\n\n2024-08-04\nc\n\n\n\n\n\n\n", "T2lU30k8u6NcuhydETQfihLw+OcTP4N4pzHk+TTa6Lc=",
	},
	{
		"14a", geo.Blob,
		Resource{"mycontainer", "blob1.txt"},
		"sv=2019-12-12&sr=b&sp=r&" + sasTimes,
		"r\n" + sasTimeSts + "/blob/devstoreaccount1/mycontainer/blob1.txt\n\n\n\n2019-12-12\nb\n\n\n\n\n\n", "wq7nmSzA9GnpIA3KbIrRR8XGM9Ja4jDWaeUwuhNIW8U=",
	},
	{
		"14b", geo.Blob,
		Resource{"mycontainer", "blob1.txt"},
		"sv=2018-03-28&sr=b&sp=r&" + sasTimes + "&spr=https,http",
		"r\n" + sasTimeSts + "/blob/devstoreaccount1/mycontainer/blob1.txt\n\n\nhttps,http\n2018-03-28\n\n\n\n\n",
		"OXG7m4Js/jYZrK2GmVwj/tWDxcAPX8KydgVsfdckhSk=",
	},
	{
		"14c", geo.Blob,
		Resource{"mycontainer", "blob1.txt"},
		"sv=2013-08-15&sr=b&sp=r&" + sasTimes,
		"r\n" + sasTimeSts + "/devstoreaccount1/mycontainer/blob1.txt\n\n2013-08-15\n\n\n\n\n", "C6NaGE1jAvR3QZz5J1gSm5j5OB/m15wAuA3W4+2TSmE=",
	},
	{
		"14d", geo.Blob,
		Resource{"mycontainer", "blob1.txt"},
		"sv=2012-02-12&sr=b&sp=r&" + sasTimes,
		"r\n" + sasTimeSts + "/devstoreaccount1/mycontainer/blob1.txt\n\n2012-02-12", "r8oChVO+etymsaFp1PbNS2DqbYAkvvTThFfAFgWwJkA=",
	},
	{
		"14e", geo.Blob,
		Resource{"mycontainer", ""},
		"sr=c&sp=r&se=2034-01-02T03:04:05Z&si=policy1",
		"r\n\n2034-01-02T03:04:05Z\n/devstoreaccount1/mycontainer\npolicy1", "/ZBexc8wqhU/ZOa1HzmUmk7/tWz6w0Ao+Xk+OS5i/tU=",
	},
	{
		"14f", geo.Blob,
		Resource{"mycontainer", "blob1.txt"},
		"sv=2024-08-04&sr=bs&sp=r&" + sasTimes + "&snapshot=2011-03-09T01:42:34.9360000Z",
		"r\n" + sasTimeSts + "/blob/devstoreaccount1/mycontainer/blob1.txt\n\n\n\n2024-08-04\nbs\n2011-03-09T01:42:34.9360000Z\n\n\n\n\n\n",
		"veD2TuUtJDx1YQ6X9/7s43Z1RqbYEvJ/V3z7eCfN+uw=",
	},
	{
		"15a", geo.Table,
		Resource{"MyTable", ""},
		"sv=2019-02-02&tn=mytable&sp=raud&" + sasTimes + "&spr=https,http&spk=a&epk=m",
		"raud\n" + sasTimeSts + "/table/devstoreaccount1/mytable\n\n\nhttps,http\n2019-02-02\na\n\nm\n", "aXru59POLmn+v3z41EslO0fZz+CGuhNjdD+6e7bC3f4=",
	},
	{
		"15b", geo.Table,
		Resource{"mytable", ""},
		"sv=2013-08-15&tn=myTable&sp=raud&" + sasTimes + "&spk=a&epk=m",
		"raud\n" + sasTimeSts + "/devstoreaccount1/mytable\n\n2013-08-15\na\n\nm\n", "2xI42yaYLPTkhwm9+bGrhzk8nV3DJtSwQhqt+Nu0Uq4=",
	},
}

func (v sasVector) target() protocol.Target {
	return protocol.Target{Service: v.service, Account: testAccount}
}

// parsed is the query of the vector with this sig.
func (v sasVector) parsed(t testing.TB, sig string) protocol.Query {
	t.Helper()
	q, err := protocol.ParseQuery(v.query + "&sig=" + url.QueryEscape(sig))
	require.NoError(t, err)
	return q
}

// Each vector is signed as protocol/auth.md 25 has it, verifies with either key, and with no other.
func TestSASVectors(t *testing.T) {
	for _, v := range sasVectors {
		t.Run(v.name, func(t *testing.T) {
			verifier, right := testVerifier(), testKey(t)
			sas, err := ParseSAS(v.target(), v.on, v.parsed(t, v.sig))
			require.NoError(t, err)
			require.Equal(t, v.sts, string(sas.appendText(nil, testAccount)))
			for _, keys := range []Keys{{Key1: right}, {Key1: []byte("other"), Key2: right}} {
				_, err = verifier.VerifySAS(v.target(), v.on, v.parsed(t, v.sig), keys)
				require.NoError(t, err)
			}
			_, err = verifier.VerifySAS(v.target(), v.on, v.parsed(t, v.sig), Keys{Key1: []byte("other")})
			wantFailed(t, err, "Signature did not match. String to sign used was "+v.sts)
			spaced := strings.ReplaceAll(v.sig, "+", " ")
			_, err = verifier.VerifySAS(v.target(), v.on, v.parsed(t, spaced), Keys{Key1: right})
			require.NoError(t, err, "a plus sign that was not escaped")
		})
	}
}

// Both locations and a clone: the account is signed without -secondary, and a clone by its own name.
func TestSASAccountName(t *testing.T) {
	v := sasVectors[2]
	target := v.target()
	target.Secondary = true
	_, err := testVerifier().VerifySAS(target, v.on, v.parsed(t, v.sig), Keys{Key1: testKey(t)})
	require.NoError(t, err)
	target = v.target()
	target.Clone = true
	_, err = testVerifier().VerifySAS(target, v.on, v.parsed(t, v.sig), Keys{Key1: testKey(t)})
	wantFailed(t, err, "/queue/devstoreaccount1-drill/myqueue")
}

// Whatever character of a signed field is changed, added or left out, and whatever is another resource or another
// service: 403 AuthenticationFailed.
func TestSASChanged(t *testing.T) {
	for _, v := range sasVectors {
		params, err := url.ParseQuery(v.query)
		require.NoError(t, err)
		params.Set("sig", v.sig)
		try := func(target protocol.Target, on Resource, changed url.Values) {
			t.Helper()
			q, err := protocol.ParseQuery(changed.Encode())
			require.NoError(t, err)
			_, err = testVerifier().VerifySAS(target, on, q, Keys{Key1: testKey(t), Key2: []byte("other")})
			wantFailed(t, err, "")
		}
		for name, values := range params {
			value := values[0]
			change := func(to string) {
				if name == "tn" && strings.EqualFold(to, value) {
					return // Names of tables compare without case.
				}
				changed := url.Values{}
				for n, list := range params {
					changed[n] = list
				}
				changed[name] = []string{to}
				try(v.target(), v.on, changed)
			}
			for i := range len(value) {
				for _, c := range []byte{'0', '1', '2', 'a', 'b', 'c', 'r', 'w', 'A', 'Z', '-', ',', '\n', ' ', '/', '=', '\x80'} {
					if value[i] != c && (name != "sig" || value[i] != '+' || c != ' ') {
						change(value[:i] + string(c) + value[i+1:])
					}
				}
				change(value[:i] + value[i+1:])
				change(value[:i] + "a" + value[i:])
			}
			change(value + "\n")
		}
		if v.on.Container != "" && !params.Has("ss") {
			try(v.target(), Resource{v.on.Container + "x", v.on.Blob}, params)
		}
		if strings.HasPrefix(params.Get("sr"), "b") {
			try(v.target(), Resource{v.on.Container, v.on.Blob + "x"}, params)
			try(v.target(), Resource{v.on.Container, ""}, params)
		}
		other := v.target()
		other.Account += "x"
		try(other, v.on, params)
		if !params.Has("ss") {
			for _, s := range geo.Services {
				if other = v.target(); s != v.service && s != geo.Catalog {
					other.Service = s
					try(other, v.on, params)
				}
			}
		}
	}
}

// A field that is signed but was not given cannot be added, and one that the version does not sign has no effect.
func TestSASAdded(t *testing.T) {
	for _, v := range sasVectors {
		params, err := url.ParseQuery(v.query)
		require.NoError(t, err)
		sas, err := ParseSAS(v.target(), v.on, v.parsed(t, v.sig))
		require.NoError(t, err)
		for name, value := range map[string]string{
			"st": "2024-01-02", "si": "p", "sip": "10.0.0.1", "spr": "https", "ses": "s", "spk": "a", "epk": "z",
			"rscc": "x", "rscd": "x", "rsce": "x", "rscl": "x", "rsct": "x",
		} {
			if params.Has(name) {
				continue
			}
			added := v
			added.query += "&" + name + "=" + value
			_, err := testVerifier().VerifySAS(v.target(), v.on, added.parsed(t, v.sig), Keys{Key1: testKey(t)})
			if strings.Contains(string(with(sas, name, "\x00").appendText(nil, testAccount)), "\x00") {
				wantFailed(t, err, "")
				continue
			}
			require.NoError(t, err, "%s %s", v.name, name)
			got, err := ParseSAS(v.target(), v.on, added.parsed(t, v.sig))
			require.NoError(t, err)
			require.Equal(t, effects(sas), effects(got), "%s: %s is not signed, and changes something", v.name, name)
		}
	}
}

// with is a signature with another text of one field.
func with(s *SAS, name, text string) *SAS {
	c := *s
	for f := range fieldSnapshot {
		if fieldNames[f] == name && c.version >= f.since() {
			c.text[f] = text
		}
	}
	return &c
}

// effects is all of a signature that has an effect.
func effects(s *SAS) []any {
	return []any{s.start, s.expiry, s.first, s.last, s.keys, s.shows(), s.Container(), s.text[fieldSP], s.text[fieldSPR], s.text[fieldSI]}
}

// The fields that are signed change with these versions and no others (protocol/auth.md 15, 17): each row is the last of
// an old form or the first of a new one.
func TestSASLayouts(t *testing.T) {
	const (
		blob = "sp=r&se=E&sr=b&si=I&sip=1.2.3.4&spr=https&ses=S&rscc=1&rscd=2&rsce=3&rscl=4&rsct=5"
		sip  = "\n1.2.3.4\nhttps\n"
	)
	for _, c := range []struct {
		service geo.Service
		sv, sts string
	}{
		{geo.Blob, "", "r\n\nE\n/devstoreaccount1/c/x\nI"},
		{geo.Blob, "2012-02-12", "r\n\nE\n/devstoreaccount1/c/x\nI\n2012-02-12"},
		{geo.Blob, "2013-08-15", "r\n\nE\n/devstoreaccount1/c/x\nI\n2013-08-15\n1\n2\n3\n4\n5"},
		{geo.Blob, "2014-02-14", "r\n\nE\n/devstoreaccount1/c/x\nI\n2014-02-14\n1\n2\n3\n4\n5"},
		{geo.Blob, "2015-02-21", "r\n\nE\n/blob/devstoreaccount1/c/x\nI\n2015-02-21\n1\n2\n3\n4\n5"},
		{geo.Blob, "2015-04-05", "r\n\nE\n/blob/devstoreaccount1/c/x\nI" + sip + "2015-04-05\n1\n2\n3\n4\n5"},
		{geo.Blob, "2018-03-28", "r\n\nE\n/blob/devstoreaccount1/c/x\nI" + sip + "2018-03-28\n1\n2\n3\n4\n5"},
		{geo.Blob, "2018-11-09", "r\n\nE\n/blob/devstoreaccount1/c/x\nI" + sip + "2018-11-09\nb\n\n1\n2\n3\n4\n5"},
		{geo.Blob, "2020-10-02", "r\n\nE\n/blob/devstoreaccount1/c/x\nI" + sip + "2020-10-02\nb\n\n1\n2\n3\n4\n5"},
		{geo.Blob, "2020-12-06", "r\n\nE\n/blob/devstoreaccount1/c/x\nI" + sip + "2020-12-06\nb\n\nS\n1\n2\n3\n4\n5"},
		{geo.Queue, "2012-02-12", "r\n\nE\n/devstoreaccount1/c\nI\n2012-02-12"},
		{geo.Queue, "2015-02-21", "r\n\nE\n/queue/devstoreaccount1/c\nI\n2015-02-21"},
		{geo.Queue, "2015-04-05", "r\n\nE\n/queue/devstoreaccount1/c\nI" + sip + "2015-04-05"},
		{geo.Table, "2012-02-12", "r\n\nE\n/devstoreaccount1/c\nI\n2012-02-12\na\nb\nc\nd"},
		{geo.Table, "2014-02-14", "r\n\nE\n/devstoreaccount1/c\nI\n2014-02-14\na\nb\nc\nd"},
		{geo.Table, "2015-02-21", "r\n\nE\n/table/devstoreaccount1/c\nI\n2015-02-21\na\nb\nc\nd"},
		{geo.Table, "2015-04-05", "r\n\nE\n/table/devstoreaccount1/c\nI" + sip + "2015-04-05\na\nb\nc\nd"},
	} {
		query := strings.ReplaceAll(blob, "se=E", "se=2030-01-01") + "&tn=C&spk=a&srk=b&epk=c&erk=d"
		if c.sv != "" {
			query += "&sv=" + c.sv
		}
		q, err := protocol.ParseQuery(query)
		require.NoError(t, err)
		s, err := ParseSAS(protocol.Target{Service: c.service, Account: testAccount}, Resource{"c", "x"}, q)
		require.NoError(t, err)
		require.Equal(t, strings.Replace(c.sts, "E", "2030-01-01", 1), string(s.appendText(nil, testAccount)), "%v %s", c.service, c.sv)
	}
	for sv, want := range map[string]string{"2015-04-05": "", "2020-10-02": "", "2020-12-06": "S\n"} {
		q, err := protocol.ParseQuery("ss=b&srt=o&sp=r&se=2030-01-01&ses=S&sv=" + sv)
		require.NoError(t, err)
		s, err := ParseSAS(protocol.Target{Service: geo.Blob, Account: testAccount}, Resource{}, q)
		require.NoError(t, err)
		require.Equal(t, "devstoreaccount1\nr\nb\no\n\n2030-01-01\n\n\n"+sv+"\n"+want, string(s.appendText(nil, testAccount)))
	}
}
