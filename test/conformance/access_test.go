package conformance

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	authenticationFailed = "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."
	authorizationFailure = "This request is not authorized to perform this operation."
	invalidXML           = "XML specified is not syntactically valid."
)

// Cases 77 and 78: signatures with the account's keys.
func signatureCases() []testCase {
	return []testCase{
		{77, "signed paths", signedPaths},
		{78, "old date", oldDate},
	}
}

func signedPaths(r *rig) {
	r.create()
	r.added("p", "O'Hara", "")
	inPath := "/" + r.account
	hosts := map[string]string{inPath: r.suite.host, "": r.account + ".table." + r.suite.zoneHost()}
	for prefix, host := range hosts {
		for _, path := range []string{"/" + r.table + "?comp=acl", r.path("p", "O%27%27Hara"), "/" + r.table + "()?$top=1"} {
			for _, scheme := range []string{sharedKey, sharedKeyLite} {
				send := func(signed string) *answer {
					q := r.request("GET", path, "")
					q.host, q.target = host, prefix+path
					r.signAs(q, scheme, signed)
					return r.send(q)
				}
				target := prefix + path
				send(target).is(http.StatusOK)
				r.secret = secondKey() // Both keys are valid.
				send(target).is(http.StatusOK)
				r.secret = []byte("another")
				send(target).fails(http.StatusForbidden, "AuthenticationFailed", authenticationFailed)
				r.secret = firstKey()
				end := strings.IndexByte(target+"?", '?')
				for i := range end {
					changed := target[:i] + string(target[i]^1) + target[i+1:]
					a := send(changed)
					require.Equal(r, http.StatusForbidden, a.status, "signed %s, sent %s", changed, target)
				}
				send(target[:end-1]+target[end:]).fails(http.StatusForbidden, "AuthenticationFailed", authenticationFailed)
				if strings.Contains(path, "comp=acl") {
					send(target[:end]).fails(http.StatusForbidden, "AuthenticationFailed", authenticationFailed)
					send(target[:end]+"?comp=acm").fails(http.StatusForbidden, "AuthenticationFailed", authenticationFailed)
				}
			}
		}
	}
	// At the secondary, by its host, and with either account in the path.
	q := r.request("GET", "", "")
	q.host, q.target = r.account+"-secondary.table."+r.suite.zoneHost(), r.path("p", "O%27%27Hara")
	r.signAs(q, sharedKey, q.target)
	r.send(q).is(http.StatusOK)
	for _, signed := range []string{inPath + "-secondary/" + r.table, inPath + "/" + r.table} {
		q := r.request("GET", "", "")
		q.target = inPath + "-secondary/" + r.table
		r.signAs(q, sharedKeyLite, signed)
		r.send(q).is(http.StatusOK)
	}
}

func oldDate(r *rig) {
	r.create()
	for _, off := range []time.Duration{16 * time.Minute, -16 * time.Minute} {
		for _, version := range []string{latest, "2018-03-28"} {
			r.do("GET", "/"+r.table, "", "X-Ms-Date", ago(off), "X-Ms-Version", version).
				fails(http.StatusForbidden, "AuthenticationFailed", authenticationFailed)
		}
	}
	r.do("GET", "/"+r.table, "", "X-Ms-Date", "yesterday").fails(http.StatusForbidden, "AuthenticationFailed", authenticationFailed)
	require.Empty(r, r.do("GET", "/"+r.table, "", "X-Ms-Date", ago(5*time.Minute)).keys())
	r.do("GET", "/"+r.table, "", "Authorization", "nonsense").fails(http.StatusBadRequest, "InvalidAuthenticationInfo", "")
	q := r.request("GET", "/"+r.table+"?sig=", "") // Not signed at all.
	q.target = strings.TrimSuffix(q.target, "?sig=")
	a, err := r.suite.once(r.Context(), q)
	require.NoError(r, err)
	a.rig = r
	a.fails(http.StatusForbidden, "AuthenticationFailed", authenticationFailed)
}

// Cases 79 to 82: shared access signatures, and the ACL of a table.
func sharedCases() []testCase {
	return []testCase{
		{79, "key range of a signature", keyRange},
		{80, "upsert needs two permissions", upsertNeedsTwo},
		{81, "resource of a signature", resourceOfSignature},
		{82, "identifiers of an ACL", identifiers},
	}
}

// signature is the parameters of a shared access signature for the table of the case, with others
// beside sv, tn, sp and se. An empty resource is the right one.
func (r *rig) signature(sv, sp, resource string, others ...string) string {
	of := map[string]string{"sv": sv, "sp": sp, "tn": r.table, "se": "2099-01-01T00:00:00Z"}
	for i := 0; i+1 < len(others); i += 2 {
		of[others[i]] = others[i+1]
	}
	if resource == "" {
		resource = "/" + r.account + "/" + strings.ToLower(r.table)
		if sv >= "2015-02-21" {
			resource = "/table" + resource
		}
	}
	of["resource"] = resource
	order := "sp st se resource si sv spk srk epk erk"
	if sv >= "2015-04-05" {
		order = "sp st se resource si sip spr sv spk srk epk erk"
	}
	var lines []string
	for _, name := range strings.Fields(order) {
		lines = append(lines, of[name])
	}
	delete(of, "resource")
	query := url.Values{"sig": {mac(r.secret, strings.Join(lines, "\n"))}}
	for name, value := range of {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query.Encode()
}

func keyRange(r *rig) {
	r.create()
	for _, pk := range []string{"A", "a", "b"} {
		for _, rk := range []string{"1", "2"} {
			r.added(pk, rk, "")
		}
	}
	within := []string{"spk", "a", "epk", "a"}
	reads := r.signature(latest, "r", "", within...)
	require.Equal(r, []string{"a/1", "a/2"}, r.read("/"+r.table+"()?"+reads).keys())
	require.Empty(r, r.read(r.filtered("PartitionKey eq 'b'")+"&"+reads).keys())
	r.read(r.path("a", "1")+"?"+reads).is(http.StatusOK).has("a", "1", "")
	r.read(r.path("b", "1")+"?"+reads).fails(http.StatusNotFound, "ResourceNotFound", resourceNotFound)
	row := r.signature(latest, "r", "", "spk", "a", "srk", "2", "epk", "b", "erk", "1")
	require.Equal(r, []string{"a/2", "b/1"}, r.read("/"+r.table+"()?"+row).keys())
	a := r.read("/" + r.table + "()?$top=1&" + row)
	require.Equal(r, []string{"a/2"}, a.keys())
	require.Equal(r, []string{"b/1"}, r.read("/"+r.table+"()?$top=1&"+row+a.token()).keys())

	adds := r.signature(latest, "a", "", within...)
	r.do("POST", "/"+r.table+"?"+adds, entity("b", "3", "")).fails(http.StatusForbidden, "AuthorizationFailure", authorizationFailure)
	r.do("POST", "/"+r.table+"?"+adds, entity("a", "3", "")).is(http.StatusCreated)
	r.do("POST", "/"+r.table+"?"+reads, entity("a", "4", "")).fails(http.StatusForbidden, "AuthorizationPermissionMismatch", "")
	r.do("DELETE", r.path("b", "1")+"?"+r.signature(latest, "d", "", within...), "", "If-Match", "*").
		fails(http.StatusForbidden, "AuthorizationFailure", authorizationFailure)

	// A transaction is authorised by the outer URI, each operation for itself.
	var set changeSet
	set.insert(r, "b", "5", "")
	q := r.request("POST", "/$batch?"+adds, set.body(), "Content-Type", "multipart/mixed; boundary=batch")
	r.send(q).fails(http.StatusForbidden, "AuthorizationFailure", authorizationFailure)
	require.Equal(r, []string{"A/1", "A/2", "a/1", "a/2", "a/3", "b/1", "b/2"}, r.read("/"+r.table).keys())
}

func upsertNeedsTwo(r *rig) {
	r.create()
	for _, permissions := range []string{"a", "u", "r", "ard"} {
		for _, method := range []string{"PUT", "MERGE"} {
			r.do(method, r.path("p", "r")+"?"+r.signature(latest, permissions, ""), `{"v":1}`).
				fails(http.StatusForbidden, "AuthorizationPermissionMismatch", "")
		}
	}
	r.read(r.path("p", "r")).fails(http.StatusNotFound, "ResourceNotFound", resourceNotFound)
	r.do("PUT", r.path("p", "r")+"?"+r.signature(latest, "au", ""), `{"v":1}`).is(http.StatusNoContent)
	r.do("PUT", r.path("p", "r")+"?"+r.signature(latest, "u", ""), `{"v":2}`, "If-Match", "*").is(http.StatusNoContent)
	r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", `,"v":2`)
}

func resourceOfSignature(r *rig) {
	r.create()
	r.added("p", "r", "")
	short := "/" + r.account + "/case81"
	for _, c := range []struct {
		sv, resource string
		right        bool
	}{
		{"2012-02-12", short, true},
		{"2014-02-14", short, true},
		{"2014-02-14", "/table" + short, false},
		{"2015-02-21", "/table" + short, true},
		{"2019-02-02", "/table" + short, true},
		{"2019-02-02", short, false},
		{"2019-02-02", "/table/" + r.account + "/Case81", false},
		{"2019-02-02", "/table/" + r.account + "/other", false},
	} {
		version := latest
		if c.sv == "2012-02-12" {
			version = c.sv // It decides, whatever the header says.
		}
		for _, table := range []string{"Case81", "case81"} {
			a := r.read("/"+table+"()?"+r.signature(c.sv, "r", c.resource), "X-Ms-Version", version)
			if c.right {
				a.is(http.StatusOK)
				require.Contains(r, a.body, "p")
				continue
			}
			a.fails(http.StatusForbidden, "AuthenticationFailed", authenticationFailed)
		}
	}
	// One for another table; and what a signature for a table never allows.
	r.do("POST", "/Tables", `{"TableName":"Other81"}`).is(http.StatusCreated)
	r.read("/Other81()?"+r.signature(latest, "r", "")).fails(http.StatusForbidden, "AuthenticationFailed", authenticationFailed)
	all := r.signature(latest, "raud", "")
	for _, a := range []*answer{
		r.do("GET", "/Tables?"+all, ""), r.do("POST", "/Tables?"+all, `{"TableName":"More81"}`), r.do("DELETE", "/Tables('Case81')?"+all, ""),
		r.do("GET", "/Case81?comp=acl&"+all, ""),
	} {
		require.Equal(r, http.StatusForbidden, a.status, a.message())
	}
}

func identifiers(r *rig) {
	r.create()
	path := "/" + r.table + "?comp=acl"
	list := func(n int) string {
		var b strings.Builder
		b.WriteString(`<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers>`)
		for i := range n {
			b.WriteString(`<SignedIdentifier><Id>id` + string(rune('0'+i)) + `</Id><AccessPolicy><Permission>raud</Permission><Expiry>2099-01-01</Expiry>` +
				`<Start>2020-01-01T00:00Z</Start></AccessPolicy></SignedIdentifier>`)
		}
		return b.String() + `</SignedIdentifiers>`
	}
	printed := func(n int) string {
		return "\ufeff" + strings.ReplaceAll(list(n), `<Permission>raud</Permission><Expiry>2099-01-01</Expiry><Start>2020-01-01T00:00Z</Start>`,
			`<Start>2020-01-01T00:00:00.0000000Z</Start><Expiry>2099-01-01T00:00:00.0000000Z</Expiry><Permission>raud</Permission>`)
	}
	none := strings.TrimSuffix(printed(0), "></SignedIdentifiers>") + " />"
	xml := []string{"Content-Type", "application/xml"}
	require.Equal(r, none, r.read(path).is(http.StatusOK).body)
	r.do("PUT", path, list(5), xml...).is(http.StatusNoContent)
	require.Equal(r, printed(5), r.read(path).is(http.StatusOK).body)
	bad := strings.Replace(list(1), "2020-01-01T00:00Z", "2020-01-01T00:00:00.123456789Z", 1)
	for _, body := range []string{list(6), bad, "<SignedIdentifiers>"} {
		r.do("PUT", path, body, xml...).fails(http.StatusBadRequest, "InvalidXmlDocument", invalidXML)
		require.Equal(r, printed(5), r.read(path).is(http.StatusOK).body)
	}
	// They are in force, and gone when they are removed.
	r.added("p", "r", "")
	stored := r.signature(latest, "", "", "se", "", "si", "id4")
	require.Equal(r, []string{"p/r"}, r.read("/"+r.table+"()?"+stored).keys())
	r.do("PUT", path, "").is(http.StatusNoContent)
	require.Equal(r, none, r.read(path).is(http.StatusOK).body)
	r.read("/"+r.table+"()?"+stored).fails(http.StatusForbidden, "AuthenticationFailed", authenticationFailed)
}
